"""``info`` tells what is installed, from whichever folder it is asked."""

import contextlib
import io
import json
import platform
import re
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import __main__, _gpu, _library, _placement, _targets, _version, inference
from tf_lstm_ops.cli import info, info_of_sessions
from tf_lstm_ops.inference import native

CHECKOUT = Path(__file__).parents[2]
BLOCK_CELL_OPS = (
    "LSTMBlockCell",
    "LSTMBlockCellGrad",
    "BlockLSTM",
    "BlockLSTMGrad",
    "BlockLSTMV2",
    "BlockLSTMGradV2",
)


def run(*arguments: str) -> str:
    """What the command prints, run in this process."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert __main__.main(list(arguments)) == 0
    return printed.getvalue()


@pytest.fixture(scope="module")
def printed() -> str:
    return run("info")


@pytest.fixture(scope="module")
def table() -> str:
    """What ``info --all`` prints below the facts."""
    return run("info", "--all").partition("\n\n")[2]


def test_caches_and_rates_are_for_those_who_ask() -> None:
    found = facts(run("info", "--all").partition("\n\n")[0])
    cpu = _library.cpu_info()
    assert found["caches"] == info._words_of_caches(cpu["caches"])
    assert found["rates"] == info._words_of_rates(cpu["rates"])
    assert "next" not in found


def facts(printed: str) -> dict[str, str]:
    """The lines: a name, two or more blanks, a value, which may go on in the next lines."""
    lines = re.sub(r"\n {5,}", " ", printed).splitlines()
    return {name: value.strip() for name, _, value in (line.partition("  ") for line in lines)}


def test_facts(printed: str) -> None:
    cpu = _library.cpu_info()
    assert facts(printed) == {
        "tf_lstm_ops": _version.__version__,
        "TensorFlow": tf.__version__,
        "Keras": f"{keras.__version__} (tensorflow backend)",
        "NumPy": np.__version__,
        "Python": platform.python_version(),
        "platform": platform.platform(),
        "native library": str(_library.path()),
        "instruction set": cpu["instruction_set"],
        "available": ", ".join(cpu["instruction_sets"]),
        "threads": str(cpu["threads"]),
        "GPU": "none that TensorFlow can use",
        "GPU kernels": "not loaded, because TensorFlow has no GPU",
        "self-test": "; ".join(_gpu.records()) or info.NO_RECORD,
        "stock names served": "the CudnnRNN family, on the CPU",
        "session library": str(native.path()),
        "sessions": f"version {native.API_VERSION} of the C API, {cpu['instruction_set']}",
        "next": "tf-lstm-ops doctor MODEL",
    }
    lines = [line for line in printed.splitlines() if "/" not in line]  # a path stays whole
    assert max(map(len, lines)) <= 80
    assert len(printed.splitlines()) <= 24  # one screen
    assert _library.path().is_file()
    assert cpu["instruction_set"] in cpu["instruction_sets"]


def sysfs_caches() -> dict[str, int]:
    """The caches of the first processor: of L1 and L2 its part, of the last level all."""
    sizes = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind, level, size, sharers = (
            (folder / name).read_text().strip()
            for name in ("type", "level", "size", "shared_cpu_list")
        )
        if kind != "Instruction":
            total = int(size.rstrip("KM")) << {"K": 10, "M": 20}[size[-1]]
            ranges = [[int(end) for end in each.split("-")] for each in sharers.split(",")]
            part = total // sum(each[-1] - each[0] + 1 for each in ranges)
            sizes.update({f"l{level}": part} if int(level) < 3 else {}, shared=total)
    return sizes


@pytest.mark.skipif(
    not list(Path("/sys/devices/system/cpu/cpu0/cache").glob("index2/size")),
    reason="the system has no files with the sizes of the caches",
)
def test_caches_are_those_of_sysfs() -> None:
    assert _library.cpu_info()["caches"] == sysfs_caches()


def test_caches_in_words() -> None:
    caches = {"l1": 48 << 10, "l2": 1280 << 10, "shared": 33 << 20}
    words = "L1 48 KiB, L2 1.25 MiB a processor; shared 33 MiB"
    assert info._words_of_caches(caches) == words


def test_rates() -> None:
    rates = _library.cpu_info()["rates"]
    assert list(rates) == ["multiply_add", "l2_byte", "shared_byte"]
    # Within a factor of 8 of the defaults of cost.h, which measured_rates.cc sees to.
    for rate, default in zip(rates.values(), (0.125, 0.005, 0.004), strict=True):
        assert default / 8 <= rate <= default * 8
    assert _library.cpu_info()["rates"] == rates  # they are measured once in a process


def test_rates_in_words() -> None:
    rates = {"multiply_add": 0.1234, "l2_byte": 0.00471, "shared_byte": 0.0058}
    assert info._words_of_rates(rates) == (
        "0.123 ns a vector multiply-add, 0.0047 ns a byte of L2, 0.0058 ns more of the shared "
        "cache; measured, used for weights that exceed L2"
    )


def test_no_cache_and_no_rate_has_another_number() -> None:
    native = _library._native()
    assert [native.tf_lstm_ops_cache_size(level) for level in (-1, 0, 4)] == [0, 0, 0]
    assert all(rate != rate for rate in map(native.tf_lstm_ops_measured_rate, (-1, 3)))


def test_json(printed: str) -> None:
    found = json.loads(run("info", "--json"))
    cpu, words = _library.cpu_info(), facts(printed)
    assert {name: found[name] for name in cpu} == cpu
    for key, name in (("tensorflow", "TensorFlow"), ("native_library", "native library")):
        assert found[key] == words[name]
    assert found["gpus"] == []
    assert found["gpu_kernels"] == {
        "on": False,
        "state": "no GPU",
        "reason": "not loaded, because TensorFlow has no GPU",
    }
    assert "kernels" not in found
    assert found["session_library"] == {
        "path": str(native.path()),
        "api_version": native.API_VERSION,
        "instruction_set": cpu["instruction_set"],
        "problem": None,
    }


@pytest.mark.parametrize(
    ("options", "folders"),
    [
        (["--include-dir"], [inference.get_include()]),
        (["--library-dir"], [inference.get_library_dir()]),
        (
            ["--library-dir", "--include-dir"],
            [inference.get_include(), inference.get_library_dir()],
        ),
    ],
    ids=["header", "library", "both"],
)
def test_folders(options: list[str], folders: list[str]) -> None:
    assert run("info", *options).splitlines() == folders


def test_a_library_of_sessions_that_is_missing(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("TF_LSTM_OPS_INFERENCE_LIBRARY", str(tmp_path / "none.so"))
    native.library.cache_clear()
    try:
        found = info_of_sessions.library()
    finally:
        native.library.cache_clear()
    assert (found["api_version"], found["instruction_set"]) == (None, None)
    assert "none.so" in found["problem"]
    [(_, words)] = info_of_sessions.rows(found)
    assert words.startswith("cannot be loaded: ")


def test_json_with_kernels() -> None:
    kernels = json.loads(run("info", "--all", "--json"))["kernels"]
    [row] = [each for each in kernels if (each["op"], each["device"]) == ("CudnnRNNV3", "CPU")]
    assert row["bfloat16"] == "yes"


def test_table_has_every_block_cell_op_in_all_dtypes(table: str) -> None:
    heading, *rows = (line.split() for line in table.splitlines())
    assert heading == ["op", "device", "float16", "bfloat16", "float32", "float64"]
    for op in BLOCK_CELL_OPS:
        assert [f"TfLstmOps>{op}", "CPU", "yes", "yes", "yes", "yes"] in rows


def test_table_has_the_cudnn_family_under_both_names(table: str) -> None:
    rows = [line.split() for line in table.splitlines()]
    family = [name for name in dir(tf.raw_ops) if name.startswith("CudnnRNN")]
    assert sorted(info.STOCK_NAMES) == sorted(family)
    for op in family:
        for name in (op, f"TfLstmOps>{op}"):
            assert [name, "CPU", "yes", "yes", "yes", "yes"] in rows


@pytest.mark.full  # another process that imports TensorFlow
@pytest.mark.skipif(not (CHECKOUT / "tf_lstm_ops").is_dir(), reason="tests are not in a checkout")
def test_source_folder_does_not_shadow_the_installed_package(command, printed: str) -> None:
    assert _library.path().parents[1] != CHECKOUT / "tf_lstm_ops"
    result = command("info", cwd=CHECKOUT)
    assert (result.returncode, result.stderr) == (0, "")
    first, second = (facts(text) for text in (result.stdout, printed))
    assert first == second


def test_no_kernel_of_a_device_that_is_not_there_is_called_available(table: str) -> None:
    rows = [line for line in table.splitlines() if line.split()[1] == "GPU"]
    if not rows:
        pytest.skip("the package was built without GPU kernels")
    for row in rows:
        assert "yes" not in row
        assert re.search(r"(no GPU here( |$)\s*){1,4}|(-\s+){4}", row)


def test_kernels_of_a_device_that_is_there(monkeypatch) -> None:
    gpu = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind=None: [gpu])
    _, *rows = info._kernel_table(["LSTMBlockCell"])
    assert ("LSTMBlockCell", "CPU", "no CPU here", "-", "no CPU here", "-") in rows


def test_a_gpu_and_its_records_in_words(monkeypatch, tmp_path, capsys) -> None:
    gpu = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind=None: [gpu])
    monkeypatch.setattr(
        tf.config.experimental, "get_device_details", lambda _: {"device_name": "Some card"}
    )
    monkeypatch.setattr(
        _placement, "path", lambda *has: f"cuDNN is {_targets.computes(_targets.CUDNN, *has[1])}"
    )
    for card, failures in (("Some card 9.0", []), ("Other card 8.0", ["BlockLSTM: too large"])):
        _gpu.write_record({"card": card}, failures)
    (tmp_path / "tf_lstm_ops" / "selftest" / "broken.json").write_text("{")
    assert __main__.main(["info"]) == 0
    found = facts(capsys.readouterr().out)
    assert found["GPU"] == "Some card"
    assert found["layers on the GPU"].split("; ") == [
        "LSTM: cuDNN is True",
        "GRU: cuDNN is True",
        "StackedLSTM: cuDNN is True",
        "LSTM with peepholes: cuDNN is False",
        "LSTM with layer normalisation: cuDNN is False",
    ]
    passed, failed = sorted(found["self-test"].split("; "), reverse=True)
    assert re.fullmatch(r"passed on Some card 9.0 \([-0-9]+ [0-9:]+\)", passed)
    assert re.fullmatch(
        r"failed on Other card 8.0 \([-0-9]+ [0-9:]+\): BlockLSTM: too large", failed
    )


def test_table_tells_missing_kernels() -> None:
    # TensorFlow has its own LSTMBlockCell for half and float only, and it has no kernel for an op
    # that does not exist.
    _, *rows = info._kernel_table(["LSTMBlockCell", "NoSuchOp"])
    assert ("LSTMBlockCell", "CPU", "yes", "-", "yes", "-") in rows
    assert ("NoSuchOp", "none", "-", "-", "-", "-") in rows


def test_own_ops_are_those_of_the_package_alone() -> None:
    ops = info._own_ops()
    assert {f"TfLstmOps>{op}" for op in BLOCK_CELL_OPS} <= set(ops)
    assert all(op.startswith("TfLstmOps>") for op in ops)
