"""A package that only some functions need is missing: the error has the command to type."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import keras
import pytest
import tensorflow as tf

from pages import ROOT
from peers.frameworks import PEERS
from tf_lstm_ops import _optional, export, weights
from tf_lstm_ops.cli import CommandError, require_matplotlib
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import LSTM

# As the package calls it: module, purpose, extra.
CALL = re.compile(r'_optional\.require\(\s*"([\w.]+)", f?"[^"]+", "([\w-]+)"\s*\)')


def model() -> keras.Model:
    return keras.Sequential([keras.Input((3, 2)), LSTM(2)])


def read_checkpoint(path: Path) -> None:
    name = path.with_suffix(".index")
    name.write_bytes(b"x")
    try:
        weights.LSTMWeights.from_checkpoint(name)
    finally:
        name.unlink()


def read_h5(path: Path) -> None:
    name = path.with_suffix(".h5")
    name.write_bytes(b"\x89HDF\r\n\x1a\n")
    try:
        weights.LSTMWeights.from_checkpoint(name)
    finally:
        name.unlink()


def read_pt(path: Path) -> None:
    name = path.with_suffix(".pt")
    name.write_bytes(b"x")
    try:
        Session.from_torch(name, ["ReLU"])
    finally:
        name.unlink()


def read_safetensors(path: Path) -> None:
    weights.LSTMWeights.from_safetensors(path)


CALLS: dict[str, tuple[Callable[[Path], object], str]] = {
    "onnx": (lambda path: export.onnx(model(), path), "onnx"),
    "tf2onnx": (lambda path: export.onnx(model(), path), "onnx"),
    "ai_edge_litert": (lambda path: export.tflite(model(), path), "tflite"),
    "safetensors": (read_safetensors, "safetensors"),
    "torch": (read_pt, "torch"),
    "tensorflow": (read_checkpoint, "tensorflow"),
    "h5py": (read_h5, "tensorflow"),
    "matplotlib": (lambda path: require_matplotlib(), "demo"),
}


def hide(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [m for m in sys.modules if m.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.parametrize("package", CALLS)
def test_missing_package(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call, extra = CALLS[package]
    if package == "ai_edge_litert" and hasattr(tf, "lite"):
        monkeypatch.delattr(tf.lite, "Interpreter")  # else TensorFlow's own one runs
    hide(package, monkeypatch)
    with pytest.raises((ImportError, CommandError)) as raised:
        call(tmp_path / "file")
    message = str(raised.value)
    assert f" needs {package}, which cannot be imported" in message
    assert message.endswith(f"\npip install 'tf_lstm_ops[{extra}]'")
    assert list(tmp_path.iterdir()) == []


def test_every_extra_installs_its_package() -> None:
    text = "".join(file.read_text() for file in (ROOT / "tf_lstm_ops").rglob("*.py"))
    calls = CALL.findall(text)
    assert len(calls) == text.count("_optional.require(")
    assert {module.partition(".")[0] for module, _ in calls} == set(CALLS)
    pyproject = (ROOT / "pyproject.toml").read_text()
    for module, extra in calls:
        requirements = re.search(rf"^{extra} = \[([^]]*)\]", pyproject, re.MULTILINE)
        assert module.partition(".")[0] in requirements[1].replace("-", "_")


def test_no_other_import_of_these_packages() -> None:
    """Besides modules that are imported after `require`, and for type checkers."""
    after = {
        "cli/plot.py",
        *(f"export/{name}.py" for name in ("onnx", "onnx_nodes")),
        *("onnx_graph/run.py", "inference/from_torch/reference.py"),
    }
    # TensorFlow and h5py are not optional for the modules on Keras.
    names = "|".join([*(CALLS.keys() - {"tensorflow", "h5py"}), "onnxruntime"])
    found = {
        file.relative_to(ROOT / "tf_lstm_ops").as_posix()
        for file in (ROOT / "tf_lstm_ops").rglob("*.py")
        if re.search(rf"^\s*(import|from) ({names})\b", at_run_time(file), re.MULTILINE)
    }
    assert found == after


def at_run_time(file: Path) -> str:
    """The text without the imports for type checkers."""
    return re.sub(r"^if TYPE_CHECKING:\n(    .*\n|\n)+", "", file.read_text(), flags=re.MULTILINE)


def test_no_conversion_needs_pytorch() -> None:
    """As the list of extras and the guide say. weights/test_state_dicts.py has conversions."""
    files = [*(ROOT / "tf_lstm_ops").rglob("*.py")]
    text = "".join(file.read_text() for file in files if file.parent.name != "from_torch")
    assert not re.search(r"^\s*(import|from) torch\b|require\(\s*\"torch", text, re.MULTILINE)
    tutorial = (ROOT / "docs/guide/tutorial.md").read_text(encoding="utf-8")
    [extra] = re.findall(r"^\* (.*`torch`.*)$", tutorial, re.MULTILINE)
    assert extra.endswith("; [converting weights](weights.md#pytorch) does not need it")
    guide = (ROOT / "docs/guide/weights.md").read_text("utf-8")
    assert "PyTorch need not be installed" in " ".join(guide.split())
    assert re.search(
        r"^torch = .*no conversion needs it$", (ROOT / "pyproject.toml").read_text(), re.M
    )


@pytest.mark.parametrize("peer", ["torch", "onnxruntime", "openvino", "jax"])
def test_missing_peer(peer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`benchmarks/peers` then prints the command; bench/test_runner.py has the test of that."""
    hide(PEERS[peer].needs[-1], monkeypatch)
    assert not PEERS[peer].is_installed()
    assert peer.removesuffix("runtime") in PEERS[peer].pip


def test_the_module_itself() -> None:
    assert _optional.require("re", "this test", "test") is re
