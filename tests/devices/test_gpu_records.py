"""Whether GPU kernels may run, by the records of self-tests; tests/cuda and tests/metal run them on
an emulated device."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

import tf_lstm_ops
from tf_lstm_ops import _gpu, _kernels, _placement, dialects, op_definitions, raw_ops

CARD = {"card": "H100 9.0", "driver": "550", "TensorFlow": "2.21", "plugin": "cuDNN 9"}


@pytest.fixture
def decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Decides on a machine with these cards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(_gpu.VARIABLE, raising=False)
    monkeypatch.setattr(_gpu, "_status", _gpu.status())
    monkeypatch.setattr(_gpu, "_has_gpu", lambda: True)
    monkeypatch.setattr(_gpu, "machine", lambda device, library: device)

    def decide(*cards: dict[str, str]) -> _gpu.Status:
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: list(cards))
        return _gpu.decide(tmp_path / "tf_lstm_ops_cuda.so")

    return decide


def test_never_run(decide):
    status = decide(CARD)
    assert (status.on, status.state) == (False, "never run")


def test_passed(decide):
    _gpu.write_record(CARD, [])
    assert decide(CARD)[:2] == (True, "passed")


def test_calls_take_ops_of_tensorflow_on_cuda_only(decide, tmp_path, monkeypatch):
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [CARD])
    decide(CARD)
    assert _placement.may_use_cuda()
    _gpu.decide(tmp_path / "tf_lstm_ops_metal.so")
    assert not _placement.may_use_cuda()


def test_calls_with_a_kernel(decide):
    decide(CARD)
    assert not _placement._has_kernel("KerasLSTM")
    _gpu.write_record(CARD, [])
    decide(CARD)
    none, some = tf.zeros([0]), tf.ones([4, 2, 3])
    assert _placement._has_kernel("KerasLSTM", {"recurrent_dropout": none})
    assert not _placement._has_kernel("KerasLSTM", {"recurrent_dropout": some})
    assert not _placement._has_kernel("KerasLSTM", {"projection": some})
    assert not _placement._has_kernel(
        "KerasLSTM", {"activation": "relu", "recurrent_activation": "tanh"}
    )
    assert not _placement._has_kernel("KerasGRU")
    assert not _placement._has_kernel("KerasLayerNormLSTM")
    assert not _placement._has_kernel("CudnnRNNParamsToCanonical")
    assert _placement._has_kernel("CudnnRNNV3", {"input": tf.ones([1])})
    assert not _placement._has_kernel("CudnnRNNV3", {"input": tf.ones([1], tf.bfloat16)})


def test_a_package_without_the_library(monkeypatch):
    """TensorFlow's op for cuDNN needs none."""
    monkeypatch.setattr(_gpu, "_status", _gpu.Status(False, "no library", ""))
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: True)
    monkeypatch.setattr(_gpu, "_has_gpu", lambda: True)
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [CARD])
    assert not _placement.may_use_cuda()
    _gpu.set_missing()
    assert _placement.may_use_cuda()


LSTM, GRU = tf_lstm_ops.keras.LSTM, tf_lstm_ops.keras.GRU
StackedGRU, StackedLSTM = tf_lstm_ops.keras.StackedGRU, tf_lstm_ops.keras.StackedLSTM


@pytest.mark.parametrize(
    ("layer", "off", "on"),
    [
        (LSTM(2), "cuDNN", "cuDNN"),
        (GRU(2), "cuDNN", "cuDNN"),
        (StackedGRU(2, 2), "cuDNN", "cuDNN"),
        (StackedLSTM(2, 2, projection_size=1), "plain ops", "GPU kernels"),
        (LSTM(2, cell_clip=1.0), "plain ops", "GPU kernels"),
        (LSTM(2, activation="relu"), "plain ops", "plain ops"),  # there is no kernel
        (GRU(2, reset_after=False), "plain ops", "plain ops"),
        (LSTM(2, activation=lambda x: x), "Keras' own loop", "Keras' own loop"),
    ],
    ids=["one", "gru", "stack", "projection", "clip", "relu", "reset_before", "lambda"],
)
def test_what_computes_a_layer(layer, off, on, decide, tmp_path, monkeypatch):
    """Keras may compile a call with XLA where that replaces neither cuDNN nor our kernels."""
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [CARD])
    decide(CARD)
    assert (layer.gpu_path, layer.supports_jit) == (off, off != "cuDNN")
    _gpu.write_record(CARD, [])
    decide(CARD)
    assert (layer.gpu_path, layer.supports_jit) == (on, on not in ("GPU kernels", "cuDNN"))
    if layer.uses_fused_op:
        _gpu.write_record(CARD, ["KerasLSTM differs"])
        _gpu.decide(tmp_path / "tf_lstm_ops_metal.so")
        assert (layer.gpu_path, layer.supports_jit) == ("CPU kernels", True)
        monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [])
        assert (layer.gpu_path, layer.supports_jit) == ("no GPU", True)


@pytest.mark.parametrize("layer", [LSTM, GRU])
def test_the_cudnn_path_of_keras_is_not_compiled_with_xla(layer):
    """As of the stock layer on a GPU; without one such a layer cannot be called."""
    assert not layer(2, use_cudnn=True).supports_jit


def test_failed(decide):
    _gpu.write_record(CARD, ["KerasLSTM differs", "KerasGRU differs"])
    status = decide(CARD)
    assert status[:2] == (False, "failed")
    assert status.reason.endswith("KerasLSTM differs")


@pytest.mark.parametrize("name", [name for name in CARD if name != "card"])
def test_outdated(decide, name):
    _gpu.write_record(CARD, [])
    status = decide(CARD | {name: "another"})
    assert status[:2] == (False, "outdated")
    assert status.reason.endswith(f"changed: {name}")


def test_every_card_needs_a_record(decide):
    other = CARD | {"card": "A100 8.0"}
    _gpu.write_record(CARD, [])
    status = decide(CARD, other)
    assert status[:2] == (False, "never run")
    assert "A100 8.0" in status.reason
    _gpu.write_record(other, [])
    assert decide(CARD, other).on


def test_machines_that_share_a_home_folder_have_records_of_their_own(decide, monkeypatch):
    _gpu.write_record(CARD, [])
    monkeypatch.setattr(platform, "node", lambda: "another")
    assert decide(CARD).state == "never run"


def test_a_later_failure_turns_the_kernels_off(decide):
    _gpu.write_record(CARD, [])
    _gpu.write_record(CARD, ["KerasLSTM differs"])
    assert not decide(CARD).on


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"machine": 1, "failures": [], "date": ""}'])
def test_a_broken_record_is_none(decide, content):
    _gpu.write_record(CARD, []).write_text(content)
    assert decide(CARD).state == "never run"


def test_a_record_that_others_can_write_is_none(decide):
    _gpu.write_record(CARD, []).chmod(0o606)
    assert decide(CARD).state == "never run"


@pytest.mark.parametrize(("value", "on"), [("1", True), ("0", False)])
def test_the_variable_overrides_the_record(decide, monkeypatch, value, on):
    _gpu.write_record(CARD, [] if value == "0" else ["KerasLSTM differs"])
    monkeypatch.setenv(_gpu.VARIABLE, value)
    assert decide(CARD).on == on


def test_a_wrong_value_of_the_variable(decide, monkeypatch):
    monkeypatch.setenv(_gpu.VARIABLE, "on")
    with pytest.raises(ValueError, match="TF_LSTM_OPS_GPU must be 0, 1 or auto, but is on"):
        decide(CARD)


def test_the_record_describes_the_machine(decide, tmp_path, monkeypatch):
    monkeypatch.undo()  # of machine
    library = tmp_path / "kernels.so"
    library.write_text("one")
    [cpu] = tf.config.list_physical_devices("CPU")
    one = _gpu.machine(cpu, library)
    names = {"card", "driver", "TensorFlow", "plugin", "CUDA libraries", "tf_lstm_ops", "library"}
    assert set(one) == names
    assert one["TensorFlow"].startswith(tf.__version__)
    library.write_text("two")
    assert {k for k, v in _gpu.machine(cpu, library).items() if v != one[k]} == {"library"}
    assert json.loads(json.dumps(one)) == one


@pytest.mark.full  # a process that imports TensorFlow
def test_a_library_that_cannot_be_loaded_leaves_the_cpu_kernels(tmp_path):
    broken = tmp_path / "tf_lstm_ops_cuda.so"
    broken.write_text("not a library")
    variables = {"TF_LSTM_OPS_GPU": "1", "TF_LSTM_OPS_CUDA_LIBRARY": str(broken)}
    program = """
import tensorflow as tf
import tf_lstm_ops
from tf_lstm_ops import _gpu, _placement
print(_gpu.status().state, tf_lstm_ops.keras.LSTM(2)(tf.ones([1, 3, 2])).shape)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    assert done.stdout == "broken (1, 2)\n", done.stderr
    assert "GPU kernels are off, because their library cannot be loaded" in done.stderr


@pytest.fixture
def off(monkeypatch):
    """A process with a GPU whose kernels are off. The GPU is not real: calls run on the CPU."""
    monkeypatch.setattr(_gpu, "_status", _gpu.Status(False, "never run", "off", True))
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [kind])


def ops_of_a_trace(device: str | None) -> set[str]:
    zeros = {"cs_prev": [1, 2], "h_prev": [1, 2], "w": [5, 8], "b": [8], "x": [1, 3]}
    arguments = {name: tf.zeros(shape) for name, shape in zeros.items()}
    arguments |= {name: tf.zeros([2]) for name in ("wci", "wcf", "wco")}

    @tf.function
    def step():
        with tf.device(device):
            return raw_ops.LSTMBlockCell(**arguments)

    graph = step.get_concrete_function().graph
    return {op.type for op in graph.get_operations() if op.type.startswith("TfLstmOps>")}


@pytest.mark.parametrize(
    ("device", "fused"), [("CPU:0", True), ("GPU:0", False), ("/gpu:1", False), (None, False)]
)
def test_only_a_trace_for_the_cpu_has_fused_ops(off, device, fused):
    assert ops_of_a_trace(device) == ({"TfLstmOps>LSTMBlockCell"} if fused else set())


def test_eager_calls_without_cudnn_run_the_cpus_kernel(off, monkeypatch):
    """A loop of plain ops would be slower."""
    want = LSTM(2, cell_clip=1.0, seed=1)
    x = tf.ones([1, 3, 2])
    for op in ("KerasLSTM", "LSTMBlockCell"):
        monkeypatch.setitem(dialects.COMPOSITES, op, None)
    assert want(x).shape == (1, 2)
    state, gates = tf.zeros([1, 2]), tf.zeros([2])
    peepholes = dict.fromkeys(("wci", "wcf", "wco"), gates)
    zeros = {"w": tf.zeros([4, 8]), "b": tf.zeros([8])}
    step = raw_ops.LSTMBlockCell(x=x[:, 0], cs_prev=state, h_prev=state, **zeros, **peepholes)
    assert step.h.shape == (1, 2)


@pytest.mark.parametrize(("inputs", "fused"), [(3, False), (None, True)])
def test_sizes_that_are_not_static_have_fused_ops(off, inputs, fused):
    @tf.function(input_signature=[tf.TensorSpec([5, 2, inputs])])
    def call(x):
        state, params = tf.zeros([1, 2, 4]), tf.zeros([4 * 4 * (3 + 4) + 2 * 16])
        return raw_ops.CudnnRNN(input=x, input_h=state, input_c=state, params=params).output

    types = {op.type for op in call.get_concrete_function().graph.get_operations()}
    assert ("TfLstmOps>CudnnRNN" in types) == fused


def test_a_process_that_hides_its_gpus_has_fused_ops(off, monkeypatch):
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [])
    assert ops_of_a_trace(None) == {"TfLstmOps>LSTMBlockCell"}


@pytest.mark.parametrize(
    ("version", "rows", "device"),
    [
        ("13.6.1", 32769, "CPU:0"),
        ("13.6.1", 32768, ""),
        ("14.3", 32769, "CPU:0"),
        ("14.4", 2**20, ""),
    ],
)
@pytest.mark.parametrize("op", sorted(_kernels.ON_METAL))
def test_products_that_an_old_macos_refuses_are_placed_on_the_cpu(
    op, version, rows, device, monkeypatch
):
    monkeypatch.setattr(_gpu, "_status", _gpu.Status(True, "passed", "on", cuda=False))
    monkeypatch.setattr(platform, "mac_ver", lambda: (version, ("", "", ""), "arm64"))

    def where(*_: tf.Tensor, **inputs: tf.Tensor) -> str:
        return context.context().device_name or ""

    name, *_ = op_definitions.inputs(op)
    value = tf.zeros([rows, 1] if name == "x" else [rows, 1, 1])
    call = _placement.placed(op, where)
    assert [call(value)[-5:], call(**{name: value})[-5:]] == [device, device]


def test_eager_calls_follow_the_device(off):
    with tf.device("CPU:0"):
        assert not _placement.may_use_cuda()
    with tf.device("GPU:0"):
        assert _placement.may_use_cuda()
    assert _placement.may_use_cuda()
