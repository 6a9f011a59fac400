"""A package that only some functions need is missing: the error has the command to type."""

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import keras
import pytest
import tensorflow as tf

from pages import ROOT
from peers.frameworks import PEERS
from tf_lstm_ops import _optional, export, weights
from tf_lstm_ops.cli import CommandError, doctor_environment, require_matplotlib
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import LSTM

# Imported where Keras runs on PyTorch.
OF_KERAS_ON_PYTORCH = (
    *("keras/torch_backend/loop.py", "keras/torch_backend/passes.py", "_torch_private.py"),
)
COMMAND = re.compile(r"pip install( '[\w-]+[<>=.,\d]*')+")


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


def read_whole() -> None:
    """The packages of the exporter are looked for before PyTorch is."""
    module = type("Module", (), {"__module__": "torch.nn.modules.module"})()
    Session.from_torch(module, example=1)


def read_safetensors(path: Path) -> None:
    weights.LSTMWeights.from_safetensors(path)


CALLS: dict[str, Callable[[Path], object]] = {
    "onnx": lambda path: export.onnx(model(), path),
    "tf2onnx": lambda path: export.onnx(model(), path),
    "ai_edge_litert": lambda path: export.tflite(model(), path),
    "safetensors": read_safetensors,
    "torch": read_pt,
    "onnxscript": lambda path: read_whole(),
    "tensorflow": read_checkpoint,
    "h5py": read_h5,
    "matplotlib": lambda path: require_matplotlib(),
}


def hide(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [m for m in sys.modules if m.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.full
@pytest.mark.parametrize("package", CALLS)
def test_missing_package(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if package == "ai_edge_litert" and hasattr(tf, "lite"):
        monkeypatch.delattr(tf.lite, "Interpreter")  # else TensorFlow's own one runs
    hide(package, monkeypatch)
    with pytest.raises((ImportError, CommandError)) as raised:
        CALLS[package](tmp_path / "file")
    message = str(raised.value)
    assert f" needs {package}, which cannot be imported" in message
    command = message.splitlines()[-1]
    assert COMMAND.fullmatch(command)
    assert f"'{package.replace('_', '-')}>" in command  # a package of this name
    assert "tensorflow" not in command or package == "tensorflow"
    assert list(tmp_path.iterdir()) == []


def test_every_package_has_a_call() -> None:
    text = "".join(file.read_text() for file in (ROOT / "tf_lstm_ops").rglob("*.py"))
    modules = re.findall(r'_optional\.require\(\s*"([\w.]+)"', text)
    assert len(modules) == text.count("_optional.require(")
    assert {module.partition(".")[0] for module in modules} == set(CALLS)


def test_versions_are_those_of_the_extras() -> None:
    """Of each extra that a feature needs."""
    pyproject = (ROOT / "pyproject.toml").read_text()
    extras = ("onnx", "tflite", "safetensors", "demo", "torch", "tensorflow", "tensorflow-cpu")
    found = {}
    for extra in extras:
        [line] = re.findall(rf"^{extra} = \[([^]]*)\]", pyproject, re.MULTILINE)
        found |= dict(re.findall(r'"([\w-]+)([^";]*)', line))
    assert found == _optional.VERSIONS
    [metal] = re.findall(r"^metal = \[\n((?:.*\n)*?)\]", pyproject, re.MULTILINE)
    command = doctor_environment.METAL.removeprefix("pip install ")
    assert re.findall(r'"([^";]*);', metal) == shlex.split(command)


def test_no_message_names_an_extra() -> None:
    """It would install TensorFlow from a clone, and exists on no index."""
    files = (ROOT / "tf_lstm_ops").rglob("*.py")
    found = [file for file in files if "pip install 'tf_lstm_ops[" in file.read_text()]
    assert [file.name for file in found] == ["_optional.py"]  # its comment
    pages = [ROOT / "README.md", *(ROOT / "docs/guide").glob("*.md")]
    assert not [page for page in pages if "tf_lstm_ops[" in page.read_text("utf-8")]


def test_no_other_import_of_these_packages() -> None:
    """Besides modules that are imported after `require`, and for type checkers."""
    after = {
        *("cli/plot.py", "export/onnx.py"),
        *("onnx_graph/run.py", "inference/from_torch/reference.py"),
        *OF_KERAS_ON_PYTORCH,
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
    own = {ROOT / "tf_lstm_ops" / name for name in OF_KERAS_ON_PYTORCH}
    files = [file for file in files if file.parent.name != "from_torch" and file not in own]
    text = "".join(file.read_text() for file in files)
    assert not re.search(r"^\s*(import|from) torch\b|require\(\s*\"torch", text, re.MULTILINE)
    tutorial = (ROOT / "docs/guide/tutorial.md").read_text(encoding="utf-8")
    [extra] = re.findall(r"^\* (.*`torch`.*)$", tutorial, re.MULTILINE)
    assert extra.endswith("; [converting weights](weights.md#pytorch) does not need it")
    guide = (ROOT / "docs/guide/weights.md").read_text("utf-8")
    assert "PyTorch need not be installed" in " ".join(guide.split())
    assert re.search(
        r"^torch = .*no conversion needs it$", (ROOT / "pyproject.toml").read_text(), re.M
    )


@pytest.mark.parametrize("peer", ["torch", "onnxruntime", "openvino", "tract", "jax"])
def test_missing_peer(peer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`benchmarks/peers` then prints the command; bench/test_runner.py has the test of that."""
    hide(PEERS[peer].needs[-1], monkeypatch)
    assert not PEERS[peer].is_installed()
    assert peer.removesuffix("runtime") in PEERS[peer].pip


def test_the_module_itself() -> None:
    assert _optional.require("re", "this test", "test") is re
