"""Sessions of state dicts: arrays and files. PyTorch is not needed but for files of torch.save."""

import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from session.without_tensorflow import HOOK, run
from tf_lstm_ops.inference import Session, layers
from tf_lstm_ops.weights import GRUWeights, LSTMWeights, RNNWeights

C, H, T = 3, 4, 5


def recurrent(rng: np.random.Generator, gates: int, prefix: str = "") -> dict[str, Any]:
    shapes = {"weight_ih": (C,), "weight_hh": (H,), "bias_ih": (), "bias_hh": ()}
    return {
        f"{prefix}{name}_l0": rng.normal(size=(gates * H, *shape)) for name, shape in shapes.items()
    }


def model(rng: np.random.Generator) -> dict[str, Any]:
    """A tagger whose modules are in two submodules."""
    return {
        "words.weight": rng.normal(size=(20, C)),
        **recurrent(rng, 4, "encoder.lstm."),
        "encoder.norm.weight": rng.normal(size=H),
        "encoder.norm.bias": rng.normal(size=H),
        "conv.weight": rng.normal(size=(6, H, 3)),
        "bn.running_mean": rng.normal(size=6),
        "bn.running_var": rng.random(size=6) + 0.5,
        "bn.num_batches_tracked": np.array(7),
        "head.weight": rng.normal(size=(2, 6)),
        "head.bias": rng.normal(size=2),
    }


LISTED: list[Any] = [
    ("words", "Embedding"),
    ("encoder.lstm.", "LSTM"),
    ("encoder.norm", "LayerNorm", {"eps": 0.1}),
    "ReLU",
    ("conv", "Conv1d", {"padding": "same"}),
    ("LeakyReLU", {"negative_slope": 0.2}),
    ("bn", "BatchNorm1d"),
    ("drop", "Dropout"),
    layers.LastStep(),
    ("head", "Linear"),
]


def by_layers(state: dict[str, Any]) -> Session:
    get = state.get
    lstm = LSTMWeights.from_torch(state, prefix="encoder.lstm.")
    return Session.from_layers(
        [
            layers.Embedding(get("words.weight")),
            layers.LSTM(lstm, return_sequences=True),
            layers.LayerNormalization(H, get("encoder.norm.weight"), get("encoder.norm.bias"), 0.1),
            layers.Activation("relu"),
            layers.Conv1D(get("conv.weight").transpose(2, 1, 0), padding="same"),
            layers.LeakyReLU(0.2),
            layers.BatchNormalization(
                mean=get("bn.running_mean"), variance=get("bn.running_var"), epsilon=1e-5
            ),
            layers.LastStep(),
            layers.Dense(get("head.weight").T, get("head.bias")),
        ]
    )


def test_arrays(rng: np.random.Generator) -> None:
    """The result is that of the layers by hand, bit for bit."""
    state, words = model(rng), rng.integers(0, 20, (2, T))
    session = Session.from_torch(state, LISTED, check=False)
    np.testing.assert_array_equal(session(words), by_layers(state)(words))


@pytest.mark.torch
def test_arrays_are_compared(rng: np.random.Generator) -> None:
    pytest.importorskip("torch")
    state, words = model(rng), rng.integers(0, 20, (2, T))
    np.testing.assert_array_equal(Session.from_torch(state, LISTED)(words), by_layers(state)(words))


KINDS = {"LSTM": (LSTMWeights, layers.LSTM, 4), "GRU": (GRUWeights, layers.GRU, 3)}


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_single_module(kind: str, rng: np.random.Generator) -> None:
    """Its names have no prefix. The option return_sequences gives the final h."""
    weights, layer, gates = {**KINDS, "RNN": (RNNWeights, layers.SimpleRNN, 1)}[kind]
    state, x = recurrent(rng, gates), rng.normal(size=(2, T, C))
    options = {"return_sequences": False}
    got = Session.from_torch(state, [("", kind, options)], check=False)(x)
    expected = Session.from_layers([layer(weights.from_torch(state))])(x)
    np.testing.assert_array_equal(got, expected)


def test_a_fixed_input(rng: np.random.Generator) -> None:
    state = {"0.weight": rng.normal(size=(2, C * T))}
    listed = [layers.Input((T, C)), "Flatten", ("0", "Linear")]
    x = rng.normal(size=(2, T, C)).astype("float32")
    got = Session.from_torch(state, listed, check=False)(x)
    # the rounding of 15 products
    np.testing.assert_allclose(got, x.reshape(2, -1) @ state["0.weight"].T, rtol=1e-4, atol=1e-5)


def test_safetensors(tmp_path: Path, rng: np.random.Generator) -> None:
    """Other tensors of the file are not read."""
    numpy = pytest.importorskip("safetensors.numpy")
    state, words = model(rng), rng.integers(0, 20, (2, T))
    numpy.save_file({**state, "other": np.zeros(3, bool)}, tmp_path / "m.safetensors")
    session = Session.from_torch(tmp_path / "m.safetensors", LISTED, check=False)
    np.testing.assert_array_equal(session(words), by_layers(state)(words))


@pytest.mark.torch
def test_torch_save(tmp_path: Path, rng: np.random.Generator) -> None:
    """A file with code in it is refused, and the code is not run."""
    torch = pytest.importorskip("torch")
    state, words = model(rng), rng.integers(0, 20, (2, T))
    path = tmp_path / "m.pt"
    torch.save({name: torch.from_numpy(array) for name, array in state.items()}, path)
    session = Session.from_torch(str(path), LISTED)
    np.testing.assert_array_equal(session(words), by_layers(state)(words))

    class Code:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "run",)

    torch.save({"a": Code()}, path)
    with pytest.raises(ValueError, match=r"torch.save\(model.state_dict\(\), path\)") as caught:
        Session.from_torch(path, LISTED)
    assert "\x1b" not in str(caught.value)
    assert not (tmp_path / "run").exists()
    for value, text in ((torch.zeros(2), "has torch.Tensor in it"), (torch.nn.ReLU(), "cannot be")):
        torch.save(value, path)
        with pytest.raises(ValueError, match=text):
            Session.from_torch(path, LISTED)


def test_without_other_packages(tmp_path: Path, rng: np.random.Generator) -> None:
    """Arrays need NumPy only. A warning says that nothing was compared."""
    state, x = recurrent(rng, 4, "lstm."), rng.normal(size=(2, T, C))
    np.savez(tmp_path / "state.npz", x=x, **state)
    process: subprocess.CompletedProcess[str] = run(
        HOOK
        + "import numpy as np\n"
        + "from tf_lstm_ops.inference import Session, layers\n"
        + "state = dict(np.load('state.npz'))\n"
        + "session = Session.from_torch(state, [('lstm', 'LSTM'), layers.LastStep()])\n"
        + "np.save('y.npy', session(state['x']))\n"
        + "try:\n"
        + "    Session.from_torch('state.pt', [])\n"
        + "except (ImportError, FileNotFoundError) as error:\n"
        + "    print(type(error).__name__)\n",
        tmp_path,
    )
    assert process.returncode == 0, process.stderr
    assert "UserWarning: the session was not compared with PyTorch: torch cannot" in process.stderr
    expected = Session.from_torch(state, [("lstm", "LSTM"), layers.LastStep()], check=False)(x)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)


STATE = model(np.random.default_rng(0))
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no list": (
        lambda: Session.from_torch(STATE),
        ValueError,
        r"Session.from_torch\(state, layers=\[\('words', 'Embedding'\), "
        r"\('encoder.lstm', 'LSTM'\), \('encoder.norm', 'LayerNorm'\), \('conv', 'Conv1d'\), "
        r"\('bn', 'BatchNorm1d'\), \('head', 'Linear'\)\]\)",
    ),
    "an unknown prefix": (
        lambda: Session.from_torch(STATE, [("lstm", "LSTM")]),
        ValueError,
        r"lstm \(LSTM\): the state dict has no names that begin so.*'encoder.lstm', 'LSTM'",
    ),
    "a part of a name": (
        lambda: Session.from_torch(STATE, [("hea", "Linear")]),
        ValueError,
        r"hea \(Linear\): the state dict has no names that begin so",
    ),
    "another class": (
        lambda: Session.from_torch(STATE, [("encoder.lstm", "Linear")]),
        ValueError,
        r"encoder.lstm \(Linear\): the state dict has no weight for it.*like those of LSTM",
    ),
    "a GRU": (
        lambda: Session.from_torch(STATE, [("encoder.lstm", "GRU")]),
        ValueError,
        r"encoder.lstm \(GRU\): the weights are those of an LSTM, not of a GRU",
    ),
    "a bias too many": (
        lambda: Session.from_torch(STATE, [("head", "Embedding")]),
        ValueError,
        r"head \(Embedding\): the state dict has bias, which is none of it.*those of Linear",
    ),
    "weights of a function": (
        lambda: Session.from_torch(STATE, [("head", "ReLU")]),
        ValueError,
        r"head \(ReLU\): the state dict has weight, which is none of it",
    ),
    "an unknown class": (
        lambda: Session.from_torch(STATE, [("head", "Conv2d")]),
        ValueError,
        r"head \(Conv2d\): a session does not compute torch.nn.Conv2d",
    ),
    "a cell": (
        lambda: Session.from_torch(STATE, [("head", "LSTMCell")]),
        ValueError,
        r"layers.LSTM\(LSTMWeights.from_torch\(cell\), return_sequences=True\)",
    ),
    "an unknown option": (
        lambda: Session.from_torch(STATE, [("conv", "Conv1d", {"strides": 2})]),
        ValueError,
        "the options of Conv1d that change results are stride, padding.*Received: strides",
    ),
    "a wrong option": (
        lambda: Session.from_torch(STATE, [("conv", "Conv1d", {"stride": 1.5})]),
        ValueError,
        r"conv \(Conv1d\): stride must be an integer. Received: stride=1.5",
    ),
    "no array": (
        lambda: Session.from_torch({"head.weight": "text"}, [("head", "Linear")]),
        ValueError,
        "head.weight must be an array",
    ),
    "no pair": (lambda: Session.from_torch(STATE, [3]), TypeError, "Received: 3"),
    "no list of pairs": (
        lambda: Session.from_torch(STATE, ("head", "Linear")),
        ValueError,
        "head: a session does not compute torch.nn.head",
    ),
    "one text": (
        lambda: Session.from_torch(STATE, "Linear"),
        TypeError,
        "layers must be a list such as",
    ),
    "an empty list": (
        lambda: Session.from_torch(STATE, []),
        ValueError,
        "a chain has one module or more",
    ),
    "a checkpoint": (
        lambda: Session.from_torch({"model": STATE, "ema": STATE}, [("head", "Linear")]),
        ValueError,
        r"a dictionary of model, ema, not a state dict.*checkpoint\['model'\]",
    ),
    "no texts": (
        lambda: Session.from_torch({1: STATE}, [("head", "Linear")]),
        ValueError,
        "the names of a state dict must be texts. Received: 1",
    ),
    "no source": (lambda: Session.from_torch(3), TypeError, "source must be a module of PyTorch"),
    "onnx": (
        lambda: Session.from_torch("m.onnx"),
        ValueError,
        r"m.onnx is an ONNX file. tf_lstm_ops.inference.Session.from_onnx reads it",
    ),
    "another file": (
        lambda: Session.from_torch("m.h5"),
        ValueError,
        "m.h5 is a file of Keras. keras.models.load_model reads it",
    ),
    "no file": (lambda: Session.from_torch("none.pt", LISTED), FileNotFoundError, "none.pt"),
    "Session of a state dict": (
        lambda: Session(STATE),
        TypeError,
        "takes a model of Keras. Use Session.from_torch. Received: dict",
    ),
    "Session of a file": (
        lambda: Session("m.pt"),
        TypeError,
        "takes a model of Keras. Use Session.from_torch. Received: 'm.pt'",
    ),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_errors(kind: str) -> None:
    call, error, text = ERRORS[kind]
    with pytest.raises(error, match=text) as raised:
        call()
    assert len(str(raised.value)) < 600


def test_several_elements_are_refused_at_once() -> None:
    listed = [("head", "Conv2d"), ("conv", "Conv1d", {"stride": 1.5}), ("none", "Linear")]
    with pytest.raises(ValueError) as raised:
        Session.from_torch(STATE, listed)
    first, *lines = str(raised.value).splitlines()
    assert first == "3 modules are refused:"
    begins = ("head (Conv2d): a session", "conv (Conv1d): stride must", "none (Linear): the state")
    assert all(line.startswith(begin) for line, begin in zip(lines, begins, strict=True))


def test_torch_script(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.jit.script(torch.nn.Linear(C, 2)).save(tmp_path / "m.pt")
    with pytest.raises(ValueError, match=r"torch.jit.load\(.*\).state_dict\(\), layers"):
        Session.from_torch(tmp_path / "m.pt", [("", "Linear")])


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model"])
def test_checkpoints(key: str, tmp_path: Path, rng: np.random.Generator) -> None:
    """A dictionary with one state dict is read by its key; of two the caller names one."""
    torch = pytest.importorskip("torch")
    state = {"weight": torch.from_numpy(rng.normal(size=(2, C)))}
    optimizer = {"state": {0: {"step": torch.zeros(())}}, "param_groups": [{"lr": 0.1}]}
    saved = {key: state, "optimizer": optimizer, "epoch": 3, "hyper_parameters": {"units": 4}}
    torch.save(saved, tmp_path / "m.ckpt")
    got = Session.from_torch(tmp_path / "m.ckpt", [("", "Linear")])
    x = np.ones((1, 2, C), np.float32)
    np.testing.assert_array_equal(got(x), Session.from_torch(state, [("", "Linear")])(x))
    with pytest.raises(ValueError, match=rf"such as checkpoint\['{key}'\]"):
        Session.from_torch(saved | {"ema": state}, [("", "Linear")])


@pytest.mark.parametrize("key", ["weight_g", "weight_orig", "parametrizations.weight.original0"])
def test_weights_that_pytorch_computes(key: str) -> None:
    state = {f"m.{key}": np.ones((2, C)), "m.bias": np.ones(2)}
    with pytest.raises(ValueError, match=f"m.{key} is an array of weight_norm, spectral_norm"):
        Session.from_torch(state, [("m", "Linear")])
    recurrent = {f"m.{key.replace('weight', 'weight_ih_l0')}": np.ones((8, C))}
    with pytest.raises(ValueError, match="is an array of weight_norm"):
        LSTMWeights.from_torch(recurrent, prefix="m.")


def test_a_small_file_of_large_tensors(tmp_path: Path) -> None:
    """A tensor of stride 0, and an archive that is compressed."""
    torch = pytest.importorskip("torch")
    torch.save({"weight": torch.zeros(1).expand(2**14, 2**16)}, tmp_path / "m.pt")
    with pytest.raises(
        ValueError, match=r"m\.pt stands for 4294967296 bytes, more than \d+, which"
    ):
        Session.from_torch(tmp_path / "m.pt", [("", "Linear")])
    with zipfile.ZipFile(tmp_path / "z.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("z/data/0", bytes(2**27))
    with pytest.raises(ValueError, match=r"z\.pt stands for 134217728 bytes"):
        Session.from_torch(tmp_path / "z.pt", [("", "Linear")])


def test_a_tensor_of_many_names(tmp_path: Path, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    weight = torch.from_numpy(rng.normal(size=(50, C)))
    torch.save({f"{k}.weight": weight for k in range(20)}, tmp_path / "m.pt")
    Session.from_torch(tmp_path / "m.pt", [("7", "Linear")])


@pytest.mark.parametrize("end", ["onnx", "pt", "safetensors"])
def test_load_names_the_method(end: str, tmp_path: Path) -> None:
    path = tmp_path / f"m.{end}"
    path.write_bytes(b"x" * 1000)
    method = "from_onnx" if end == "onnx" else "from_torch"
    with pytest.raises(ValueError, match=f"not a file of Session.save .*Session.{method} reads it"):
        Session.load(path)
    if end == "pt":
        pytest.importorskip("torch")
    if end != "onnx":
        with pytest.raises(ValueError, match=f"m.{end}"):
            Session.from_torch(path, LISTED)
