"""`Session.from_rtneural`: options of the files, those of GuitarML, and files that are wrong."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf_lstm_ops
from session import rtneural_models
from session.without_tensorflow import HOOK
from tf_lstm_ops.inference import Session, layers
from tf_lstm_ops.weights import GRUWeights, LSTMWeights, RNNWeights

Edit = Callable[[dict[str, Any]], Any]
H = 4


def written(folder: Path, model: Any) -> Path:
    path = folder / "model.json"
    path.write_text(json.dumps(model))
    return path


def parsed(name: str) -> dict[str, Any]:
    model: dict[str, Any] = json.loads((rtneural_models.FOLDER / f"{name}.json").read_text())
    return model


def floats(rng: np.random.Generator, *shape: int) -> list[Any]:
    drawn: list[Any] = rng.standard_normal(shape).astype(np.float32).tolist()
    return drawn


def lstm(rng: np.random.Generator, inputs: int, shape: list[Any]) -> dict[str, Any]:
    weights = [floats(rng, *size) for size in ((inputs, 4 * H), (H, 4 * H), (4 * H,))]
    return {"type": "lstm", "activation": "tanh", "shape": shape, "weights": weights}


def guitarml(rng: np.random.Generator, unit: str, inputs: int, **options: Any) -> dict[str, Any]:
    """A model of two recurrent layers."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[unit]
    said = {"model": "SimpleRNN", "unit_type": unit, "input_size": inputs, "output_size": 1}
    said |= {"hidden_size": H, "num_layers": 2, "bias_fl": True, "skip": 1, **options}
    state = {}
    for layer, size in enumerate((inputs, H)):
        state[f"rec.weight_ih_l{layer}"] = floats(rng, gates * H, size)
        state[f"rec.weight_hh_l{layer}"] = floats(rng, gates * H, H)
        for side in ("ih", "hh"):
            state[f"rec.bias_{side}_l{layer}"] = floats(rng, gates * H)
    state |= {"lin.weight": floats(rng, said["output_size"], H), "lin.bias": floats(rng, 1)}
    state["lin.bias"] *= said["output_size"]
    return {"model_data": said, "state_dict": state}


def test_needs_no_tensorflow(tmp_path: Path) -> None:
    path = str(rtneural_models.FOLDER / "lstm.json")
    imports = "from tf_lstm_ops.inference import Session"
    code = f"{HOOK}\n{imports}\nprint(Session.from_rtneural({path!r}))"
    root = str(Path(tf_lstm_ops.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
        timeout=60,
    )
    assert done.returncode == 0 and "Session(layers=3" in done.stdout, done.stderr


def test_last_step(tmp_path: Path, rng: np.random.Generator) -> None:
    """The shape of a layer with return_sequences=False has no axis of time."""
    first = lstm(rng, 1, [None, None, H])
    last = lstm(rng, H, [None, H])
    whole = Session.from_rtneural(
        written(
            tmp_path, {"in_shape": [None, 9, 1], "layers": [first, {**last, "shape": [1, 9, H]}]}
        )
    )
    session = Session.from_rtneural(
        written(tmp_path, {"in_shape": [None, None, 1], "layers": [first, last]})
    )
    x = rng.standard_normal((2, 9, 1)).astype(np.float32)
    np.testing.assert_array_equal(session(x), whole(x)[:, -1])


@pytest.mark.parametrize("skip", [0, 1])
def test_aida_x(tmp_path: Path, skip: int, rng: np.random.Generator) -> None:
    model = parsed("lstm_1d")
    found = rtneural_models.read("lstm_1d")
    plain = Session.from_rtneural(found.path)(found.x)
    options = {"in_skip": skip, "in_gain": 0, "out_gain": 0.0, "metadata": {"name": "x"}}
    session = Session.from_rtneural(written(tmp_path, model | options))
    np.testing.assert_array_equal(session(found.x), plain + skip * found.x)


UNITS: dict[str, Any] = {
    "LSTM": (LSTMWeights, layers.LSTM),
    "GRU": (GRUWeights, layers.GRU),
    "RNN": (RNNWeights, layers.SimpleRNN),
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("inputs", "outputs", "skip"), [(1, 1, 0), (1, 1, 1), (3, 1, 1), (3, 2, 2)]
)
def test_guitarml(
    tmp_path: Path, unit: str, inputs: int, outputs: int, skip: int, rng: np.random.Generator
) -> None:
    """As layers from the weights, plus the input. `test_pytorch` compares with PyTorch."""
    model = guitarml(rng, unit, inputs, skip=skip, output_size=outputs)
    state = {name: np.array(value, np.float32) for name, value in model["state_dict"].items()}
    linear = state.pop("lin.weight").T, state.pop("lin.bias")
    weights, kind = UNITS[unit]
    recurrent = kind(weights.from_torch(state, prefix="rec."), return_sequences=True)
    plain = Session.from_layers([recurrent, layers.Dense(*linear)])
    session = Session.from_rtneural(written(tmp_path, model))
    x = rng.standard_normal((2, 7, inputs)).astype(np.float32)
    want = plain(x) + (x[..., :skip] if skip else np.float32(0))
    np.testing.assert_array_equal(session(x), want)
    stream = session.stream(2)
    np.testing.assert_array_equal(np.stack([stream(x[:, t]) for t in range(7)], 1), want)


@pytest.mark.torch
def test_pytorch(tmp_path: Path, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch, the peer compared with")
    rnn, linear = torch.nn.LSTM(2, H, 2, batch_first=True), torch.nn.Linear(H, 1)
    modules = torch.nn.ModuleDict({"rec": rnn, "lin": linear})
    model = guitarml(rng, "LSTM", 2)
    modules.load_state_dict({k: torch.tensor(v) for k, v in model["state_dict"].items()})
    x = rng.standard_normal((2, 7, 2)).astype(np.float32)
    with torch.no_grad():
        want = (linear(rnn(torch.tensor(x))[0]) + torch.tensor(x[..., :1])).numpy()
    got = Session.from_rtneural(written(tmp_path, model))(x)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)  # roundings of float32 in 7 steps


def changed(name: str, layer: int, **fields: Any) -> dict[str, Any]:
    model = parsed(name)
    model["layers"][layer] |= fields
    return model


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "no object": (lambda: [1], "must have 'in_shape' and 'layers'"),
    "other keys": (lambda: {"a": 1}, r"It has \['a'\]"),
    "nam": (lambda: {"architecture": "LSTM"}, "Neural Amp Modeler"),
    "no layers": (lambda: parsed("lstm") | {"layers": []}, "layers must be a list"),
    "input": (lambda: parsed("lstm") | {"in_shape": [None, None, None]}, "in_shape must end with"),
    "axes": (lambda: parsed("lstm") | {"in_shape": [None, 1, 1, 1]}, "a list of 2 or 3 sizes"),
    "gain": (lambda: parsed("lstm") | {"in_gain": 3}, "in_gain must be 0. Received: 3"),
    "skip": (lambda: parsed("lstm") | {"in_skip": 2}, "first 2 channels of 1"),
    "layer": (lambda: parsed("lstm") | {"layers": [1]}, r"layer 0 \(None\): the type must be"),
    "type": (lambda: changed("conv", 1, type="conv2d"), r"layer 1 \('conv2d'\): the type must be"),
    "option": (lambda: changed("conv", 1, strides=2), r"has \['strides'\], which is unknown"),
    "function": (lambda: changed("conv", 1, activation="gelu"), "activation must be one of"),
    "cell": (lambda: changed("lstm", 1, activation="relu"), "activation must be one of"),
    "shape": (
        lambda: changed("lstm", 1, shape=[None, None, 7]),
        r"weights\[0\] must have the shape",
    ),
    "valid": (lambda: changed("conv", 1, shape=[None, 98, 4]), "98 steps behind 100"),
    "groups": (lambda: changed("conv", 1, groups=3), "groups must divide 8 and 4"),
    "dilation": (lambda: changed("conv", 1, dilation=[0]), "dilation must be an integer"),
    "window": (lambda: changed("conv", 1, kernel_size=[True]), "kernel_size must be an integer"),
    "count": (lambda: changed("conv", 2, weights=[[1.0] * 4] * 3), "a list of 2 or 4 arrays"),
    "epsilon": (lambda: changed("conv", 2, epsilon="1"), "epsilon must be an array"),
    "variance": (
        lambda: changed("conv", 6, weights=[[0.0] * 6, [-9.0] * 6]),
        r"layer 6 .*must be finite",
    ),
    "alpha": (lambda: changed("conv", 3, weights=[[[1.0] * 3]]), "must have 1 or 4 elements"),
    "text": (lambda: changed("conv", 3, weights=[[["1"] * 4]]), "array of finite numbers"),
    "large": (lambda: changed("conv", 3, weights=[[[1e39] * 4]]), "array of finite numbers"),
    "integers": (lambda: changed("conv", 3, weights=[[[10**400] * 4]]), "array of finite numbers"),
    "ragged": (lambda: changed("dense", 0, weights=[[[1.0], [1.0, 2.0]]]), "array of finite"),
    "activation": (lambda: changed("dense", 1, shape=[None, 7]), "must have 8 features"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(tmp_path: Path, name: str) -> None:
    model, text = WRONG[name]
    path = written(tmp_path, model())
    with pytest.raises(ValueError, match=text) as caught:
        Session.from_rtneural(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_several_layers_are_refused_at_once(tmp_path: Path) -> None:
    model = changed("conv", 1, strides=2)
    model["layers"][2] |= {"type": "conv2d"}
    model["layers"][3] |= {"weights": [[["1"] * 4]]}
    path = written(tmp_path, model)
    with pytest.raises(ValueError) as raised:
        Session.from_rtneural(path)
    first, *lines = str(raised.value).splitlines()
    assert first == f"{path}: 3 layers are refused:"
    begins = (
        "layer 1 ('conv1d'): it has",
        "layer 2 ('conv2d'): the type",
        "layer 3 ('prelu'): wei",
    )
    assert all(line.startswith(begin) for line, begin in zip(lines, begins, strict=True))


STATE = "state_dict"
WRONG_STATES: dict[str, tuple[Edit, str]] = {
    "model": (lambda m: m["model_data"].update(model="RecNet"), "of a 'SimpleRNN'"),
    "option": (lambda m: m["model_data"].update(gain=1), "without other options"),
    "directions": (lambda m: m["model_data"].update(bidirectional=True), "of one direction"),
    "unit": (lambda m: m["model_data"].update(unit_type="TCN"), "unit_type must be one of"),
    "kind": (lambda m: m["model_data"].update(unit_type="GRU"), "those of an LSTM, not of a GRU"),
    "size": (lambda m: m["model_data"].update(hidden_size=5), "do not have the sizes"),
    "layers": (lambda m: m["model_data"].update(num_layers=1), "do not have the sizes"),
    "output": (lambda m: m["model_data"].update(output_size=2), "do not have the sizes"),
    "skip": (lambda m: m["model_data"].update(skip=2), "first 2 channels of 1"),
    "missing": (lambda m: m[STATE].pop("rec.bias_hh_l0"), "bias_hh_l0"),
    "linear": (lambda m: m[STATE].pop("lin.weight"), "do not have the sizes"),
    "unknown": (lambda m: m[STATE].update({"b.c": [1]}), r"has \['b.c'\], which is unknown"),
    "values": (lambda m: m[STATE].update({"lin.bias": [None]}), "lin.bias must be an array"),
    "no object": (lambda m: m.update(state_dict=[1]), "must be objects"),
}


@pytest.mark.parametrize("name", WRONG_STATES)
def test_errors_of_guitarml(tmp_path: Path, name: str, rng: np.random.Generator) -> None:
    edit, text = WRONG_STATES[name]
    model = guitarml(rng, "LSTM", 1)
    edit(model)
    with pytest.raises(ValueError, match=text):
        Session.from_rtneural(written(tmp_path, model))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"[" * 100_000, b"9" * 10_000])
def test_no_json(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"empty|no complete JSON|layers"):
        Session.from_rtneural(path)


def test_arguments(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="path must be a string"):
        Session.from_rtneural(7)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        Session.from_rtneural(tmp_path / "none.json")
    with pytest.raises(ValueError, match="threads must be from 1"):
        Session.from_rtneural(rtneural_models.FOLDER / "lstm.json", threads=0)


TOKENS = [b"null", b"[]", b"{}", b"-1", b"1e400", b'"lstm"', b"true", b"[[", b",", b"", b"0", b"\0"]


def mutate(rng: np.random.Generator, content: bytes) -> bytes:
    """Bytes cut off, replaced, or with a token in between."""
    at = int(rng.integers(len(content)))
    kind = rng.integers(8)
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + bytes([rng.integers(256)]) + content[at + 1 :]
    return content[:at] + TOKENS[rng.integers(len(TOKENS))] + content[at + int(rng.integers(9)) :]


@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.full)])
def test_mutated_files(tmp_path: Path, count: int, rng: np.random.Generator) -> None:
    """Each gives a session, or a ValueError after the name of the file."""
    path, opened = tmp_path / "model.json", 0
    conv = {"type": "conv1d", "shape": [None, 1], "kernel_size": [1], "dilation": [1], "groups": 1}
    conv |= {"weights": [[[[0.5]] * H], [0.1]], "activation": "elu"}
    norm = {"type": "batchnorm", "shape": [None, 1], "epsilon": 0.1, "weights": [[0.5], [1]]}
    model = {"in_shape": [1, 9, 1], "layers": [lstm(rng, 1, [1, 9, H]), conv, norm]}
    files = [json.dumps(model).encode() for model in (model, guitarml(rng, "GRU", 1))]
    for k in range(count):
        path.write_bytes(mutate(rng, files[k % 2]))
        try:
            Session.from_rtneural(path)
            opened += 1
        except ValueError as error:
            assert str(error).startswith(str(path))
    assert count / 50 < opened < count / 2
