"""``selftest`` where there is no device; tests/metal has the rest."""

import tensorflow as tf

from tf_lstm_ops import __main__, _gpu, _library
from tf_lstm_ops.cli import selftest


def test_without_a_device_it_says_so(capsys):
    assert __main__.main(["selftest", "--device", "GPU:7"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "TensorFlow has no device GPU:7 here, only CPU:0" in printed.err
    assert "tensorflow-metal" in printed.err


def test_a_report_of_the_cpu_begins_with_the_processor():
    """Neither a card nor a driver: there is none."""
    [cpu] = tf.config.list_physical_devices("CPU")
    machine = _gpu.machine(cpu, _library.path())
    assert machine["card"] not in ("", "unknown card")
    head = selftest._description("CPU:0", machine)
    assert f"CPU:0: {machine['card']}" in head
    assert not [line for line in head if "driver" in line or "CUDA" in line]
    head = selftest._description("GPU:0", {**machine, "driver": "CUDA 12"})
    assert f"GPU:0: {machine['card']}; driver: CUDA 12" in head


def test_time_left():
    """The mean of those that have run, once there are five."""
    assert selftest._time_left(4, 100, 8.0) == ""
    assert selftest._time_left(5, 20, 10.0) == ", 30 s left"
    assert selftest._time_left(10, 160, 20.0) == ", 5 min left"


def test_the_name_of_a_processor(tmp_path, monkeypatch):
    """Some processors have no name in Linux' file, and other systems have no file."""
    monkeypatch.setattr(_gpu.platform, "system", lambda: "Linux")
    monkeypatch.setattr(_gpu.platform, "processor", lambda: "")
    monkeypatch.setattr(_gpu.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(_gpu, "_CPU_INFO", tmp_path / "cpuinfo")
    assert _gpu._processor() == "aarch64"
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nBogoMIPS\t: 50.00\n")
    assert _gpu._processor() == "aarch64"
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: AMD EPYC \nmodel name\t: b\n")
    assert _gpu._processor() == "AMD EPYC"
