"""Keras 2, PyTorch and Keras 3 as they read files of models, in another process."""

import json
import os
import resource
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

STEPS = 6
LARGEST = 12 << 30  # bytes of address space of the process, of which the libraries need some


def inputs_of(model: Any) -> list[np.ndarray]:
    """Small whole numbers, which are also indices of words, for every input of a model."""
    rng = np.random.default_rng(0)
    shapes = [tuple(x.shape) for x in model.inputs]
    sizes = [[2, *(STEPS if n is None else n for n in shape[1:])] for shape in shapes]
    if any(np.prod([float(n) for n in each]) > 1 << 16 for each in sizes):
        raise ValueError("the inputs are large")
    return [rng.integers(0, 3, each).astype("float32") for each in sizes]


def outputs_of(model: Any) -> list[np.ndarray]:
    """The outputs of a model of Keras 2 or 3, with stateful layers at their beginning."""
    found = model(inputs_of(model) if len(model.inputs) > 1 else inputs_of(model)[0])
    flat = list(found.values()) if isinstance(found, dict) else found
    return [np.array(y) for y in (flat if isinstance(flat, list | tuple) else [flat])]


def run(pipe: Connection) -> None:
    """Answers requests (kind, path, further path) by what the kind's own program computes."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    warnings.simplefilter("ignore")
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (LARGEST if most < 0 else min(most, LARGEST), most))
    while True:
        kind, path, more = pipe.recv()
        try:
            pipe.send(_READERS[kind](Path(path), Path(more)))
        except Exception as error:
            pipe.send(f"{type(error).__name__}: {error}")


def _keras_2(path: Path, more: Path) -> list[np.ndarray]:
    import tf_keras

    tf_keras.backend.clear_session()
    return outputs_of(tf_keras.models.load_model(path, compile=False))


def _keras_2_weights(path: Path, more: Path) -> list[np.ndarray]:
    import tf_keras

    tf_keras.backend.clear_session()
    model = tf_keras.models.load_model(more, compile=False)
    model.load_weights(path)
    return outputs_of(model)


def _keras_3(path: Path, more: Path) -> list[np.ndarray]:
    import keras

    return outputs_of(keras.models.load_model(path, compile=False))


def _torch(path: Path, more: Path) -> list[np.ndarray]:
    """Of a state dict of an LSTM and a Linear, "lstm" and "head"."""
    import torch
    from safetensors.torch import load_file

    is_open = path.suffix == ".safetensors"
    state = load_file(path) if is_open else torch.load(path, weights_only=True)
    lstm, head = ({k.partition(".")[2]: v for k, v in state.items() if k.startswith(f"{name}.")}
                  for name in ("lstm", "head"))  # fmt: skip
    layers = sum("weight_ih" in k and "reverse" not in k for k in lstm)
    first = lstm["weight_ih_l0"]
    module = torch.nn.LSTM(
        *(first.shape[1], first.shape[0] // 4, layers, "bias_ih_l0" in lstm, True),
        bidirectional=any("reverse" in k for k in lstm),
        proj_size=lstm["weight_hr_l0"].shape[0] if "weight_hr_l0" in lstm else 0,
    )
    module.load_state_dict(lstm)
    linear = torch.nn.Linear(*head["weight"].shape[::-1], "bias" in head)
    linear.load_state_dict(head)
    x = torch.arange(2 * STEPS * first.shape[1]).reshape(2, STEPS, -1) % 3
    with torch.no_grad():
        return [linear(module(x.float())[0]).numpy()]


def _rtneural(path: Path, more: Path) -> list[np.ndarray]:
    """By layers of Keras, or for GuitarML by those of PyTorch."""
    from session.rtneural_models import Model
    from session.test_rtneural_models import keras_model

    found = json.loads(path.read_text())
    if "model_data" in found:
        return _guitarml(found)
    if found.get("in_gain") or found.get("out_gain"):
        raise ValueError("gains")
    if any(len(layer["shape"]) != 3 for layer in found["layers"]):
        raise ValueError("not all layers return sequences")
    features = found["in_shape"][-1]
    x = _small(features)
    model = keras_model(Model(path, features, found["layers"], x, x))
    return [np.asarray(model(x)) + x[..., :1] * bool(found.get("in_skip"))]


def _guitarml(found: Any) -> list[np.ndarray]:
    import torch

    said, state = found["model_data"], found["state_dict"]
    own = {k: torch.tensor(v) for k, v in state.items()}
    kind = getattr(torch.nn, said["unit_type"])
    sizes = said["input_size"], said["hidden_size"], said["num_layers"], said.get("bias_fl", True)
    module, linear = kind(*sizes, True), torch.nn.Linear(said["hidden_size"], said["output_size"])
    module.load_state_dict({k[4:]: v for k, v in own.items() if k[:4] == "rec."})
    linear.load_state_dict({k[4:]: v for k, v in own.items() if k[:4] == "lin."})
    x = torch.from_numpy(_small(said["input_size"]))
    with torch.no_grad():
        y = linear(module(x)[0])
    return [(y + x[..., : said["skip"]] if said["skip"] else y).numpy()]


def _small(features: int) -> np.ndarray:
    """The input of a session of one sequence of features, as model_kinds makes it."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, (2, STEPS, features)).astype("float32")


_READERS: dict[str, Callable[[Path, Path], list[np.ndarray]]] = {
    "keras 2": _keras_2,
    "keras 2 weights": _keras_2_weights,
    "keras 3": _keras_3,
    "torch": _torch,
    "rtneural": _rtneural,
}
