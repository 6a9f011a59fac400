"""``info`` tells what is installed, from whichever folder it is asked."""

import platform
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import _library, _version
from tf_lstm_ops.cli import info

CHECKOUT = Path(__file__).parents[2]
BLOCK_CELL_OPS = (
    "LSTMBlockCell",
    "LSTMBlockCellGrad",
    "BlockLSTM",
    "BlockLSTMGrad",
    "BlockLSTMV2",
    "BlockLSTMGradV2",
)


@pytest.fixture(scope="module")
def printed(command) -> str:
    result = command("info")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def facts(printed: str) -> dict[str, str]:
    """The lines above the table: a name, two or more blanks, a value."""
    lines = printed.partition("\n\n")[0].splitlines()
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
        "GPU kernels": "registered, but TensorFlow has no GPU",
        "stock names served": "the CudnnRNN family, on the CPU",
    }
    assert _library.path().is_file()
    assert cpu["instruction_set"] in cpu["instruction_sets"]


def test_table_has_every_block_cell_op_in_all_dtypes(printed: str) -> None:
    heading, *rows = (line.split() for line in printed.partition("\n\n")[2].splitlines())
    assert heading == ["op", "device", "float16", "bfloat16", "float32", "float64"]
    for op in BLOCK_CELL_OPS:
        assert [f"TfLstmOps>{op}", "CPU", "yes", "yes", "yes", "yes"] in rows


def test_table_has_the_cudnn_family_under_both_names(printed: str) -> None:
    rows = [line.split() for line in printed.partition("\n\n")[2].splitlines()]
    family = [name for name in dir(tf.raw_ops) if name.startswith("CudnnRNN")]
    assert sorted(info.STOCK_NAMES) == sorted(family)
    for op in family:
        for name in (op, f"TfLstmOps>{op}"):
            assert [name, "CPU", "yes", "yes", "yes", "yes"] in rows


@pytest.mark.full
@pytest.mark.skipif(not (CHECKOUT / "tf_lstm_ops").is_dir(), reason="tests are not in a checkout")
def test_source_folder_does_not_shadow_the_installed_package(command, printed: str) -> None:
    assert _library.path().parents[1] != CHECKOUT / "tf_lstm_ops"
    result = command("info", cwd=CHECKOUT)
    assert result.returncode == 0, result.stderr
    assert result.stdout == printed


def test_table_tells_missing_kernels() -> None:
    # TensorFlow has its own LSTMBlockCell for half and float only, and it has no kernel for an op
    # that does not exist.
    _, *rows = info.kernel_table(["LSTMBlockCell", "NoSuchOp"])
    assert ("LSTMBlockCell", "CPU", "yes", "-", "yes", "-") in rows
    assert ("NoSuchOp", "none", "-", "-", "-", "-") in rows


def test_own_ops_are_those_of_the_package_alone() -> None:
    ops = info.own_ops()
    assert {f"TfLstmOps>{op}" for op in BLOCK_CELL_OPS} <= set(ops)
    assert all(op.startswith("TfLstmOps>") for op in ops)
