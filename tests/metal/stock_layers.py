"""What stock GRU and LSTM layers do in a process with an emulated plugin. Not a test itself.

`python stock_layers.py PLUGIN FOLDER [own]` prints a line of JSON: of each call "right", "wrong" or
the type of its error. FOLDER/wanted.npz has the results without a plugin; "none" for PLUGIN writes
it. With "own" the package is imported first.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import load_library

LAYERS = {"GRU": keras.layers.GRU, "LSTM": keras.layers.LSTM}
X = np.random.default_rng(0).normal(size=(4, 6, 3)).astype("float32")


def model_of(kind: str) -> keras.Model:
    model = keras.Sequential([keras.Input((6, 3)), LAYERS[kind](5), keras.layers.Dense(1)])
    rng = np.random.default_rng(1)
    model.set_weights([0.5 * rng.normal(size=w.shape) for w in model.get_weights()])
    model.compile("sgd", "mse", jit_compile=False)
    return model


def fit(model: keras.Model) -> Any:
    model.fit(X, X[:, 0, :1], epochs=2, verbose=0, shuffle=False)
    return np.concatenate([np.ravel(w) for w in model.get_weights()])


MODES: dict[str, Callable[[keras.Model], Any]] = {
    "eager": lambda model: model(X).numpy(),
    "traced": lambda model: tf.function(model)(X).numpy(),
    "predict": lambda model: model.predict(X, verbose=0),
    "fit": fit,
}


def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    for kind in LAYERS:
        for mode, run in MODES.items():
            yield f"{kind} {mode}", lambda kind=kind, run=run: run(model_of(kind))


def outcome(call: Callable[[], Any], device: str, want: np.ndarray) -> str:
    try:
        with tf.device(device):
            got = call()
    except (tf.errors.OpError, ValueError) as error:
        return type(error).__name__
    return "right" if np.allclose(got, want, atol=1e-5) else "wrong"


def main(plugin: str, folder: str, *package: str) -> None:
    if plugin == "none":
        np.savez(f"{folder}/wanted.npz", **{name: call() for name, call in calls()})
        return
    load_library.load_pluggable_device_library(plugin)
    if package:
        import tf_lstm_ops  # noqa: F401
    wanted = np.load(f"{folder}/wanted.npz")
    found = {
        f"{name} on {device or 'any device'}": outcome(call, device, wanted[name])
        for name, call in calls()
        for device in ("", "CPU:0")
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
