"""Models in Keras' own format (.keras), loaded in a new process without custom_objects.

One new process loads all that the fixture `run` saved (this file, run as a script).
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest

BATCH, TIME, INPUTS, UNITS = 4, 6, 3, 5
Results = dict[str, np.ndarray]

SEED = 1
COMMON = {
    "default": {},
    "no bias": {"use_bias": False},
    "dropout": {"dropout": 0.3, "recurrent_dropout": 0.3, "seed": SEED},
    "backwards": {"go_backwards": True, "zero_output_for_mask": True},
    "stateful": {"stateful": True},
    "regularized": {"kernel_regularizer": "l2", "recurrent_constraint": "max_norm"},
    "float64": {"dtype": "float64"},
    "mixed": {"dtype": "mixed_bfloat16"},
}
# name: layer and options
MODELS = {f"LSTM {name}": ("LSTM", options) for name, options in COMMON.items()}
MODELS |= {f"GRU {n}": ("GRU", COMMON[n]) for n in ("default", "no bias", "dropout", "stateful")}
RELU = {"activation": "relu", "recurrent_activation": "hard_sigmoid"}
MODELS |= {
    "LSTM mixed, peephole and clip": (
        "LSTM",
        {"dtype": "mixed_bfloat16", "use_peephole": True, "cell_clip": 0.5},
    ),
    "LSTM peephole and clip": ("LSTM", {"use_peephole": True, "cell_clip": 0.5}),
    "LSTM fallback": ("LSTM", {**RELU, "cell_clip": 0.5}),
    "GRU fallback": ("GRU", {**RELU, "reset_after": False}),
}


# Each takes a second, so by default there is one.
BY_DEFAULT = {FIRST := "LSTM mixed, peephole and clip"}
SLOW = {
    *("LSTM default", "LSTM stateful", "LSTM regularized", "GRU default", "GRU dropout"),
    *("GRU no bias", "LSTM mixed"),
}


def cases() -> Iterator[Any]:
    for name in MODELS:
        mark = pytest.mark.slow if name in SLOW else pytest.mark.full
        yield pytest.param(name, marks=() if name in BY_DEFAULT else mark)


def make_data() -> tuple[np.ndarray, np.ndarray]:
    """Inputs with padding, and targets."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    x[0, 4:] = 0
    x[1, :3] = 0
    return x, rng.normal(size=(BATCH, TIME, UNITS)).astype("float32")


def make_model(layer: str, options: dict) -> keras.Model:
    import tf_lstm_ops

    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input(batch_shape=(BATCH, None, INPUTS)),
            keras.layers.Masking(),
            getattr(tf_lstm_ops.keras, layer)(UNITS, return_sequences=True, **options),
        ]
    )
    model.compile("adam", "mse")
    return model


def forget(model: keras.Model) -> None:
    """What the format does not hold, for stock's layers neither: states, and that of the seed."""
    layer = model.layers[-1]
    layer.reset_state()
    layer.cell.seed_generator.state.assign([SEED, 0])


def results_of(name: str, model: keras.Model) -> Results:
    """Two predictions (of which a stateful layer makes two), then the weights after training on."""
    forget(model)
    x, y = make_data()
    results = {f"{name} {k}": model.predict(x, BATCH, verbose=0) for k in ("once", "again")}
    model.fit(x, y, BATCH, epochs=2, shuffle=False, verbose=0)
    weights = {f"{name} trained {w.name}": w.numpy() for w in model.trainable_weights}
    return {k: v.astype("float64") for k, v in (results | weights).items()}


def save_models(folder: Path, names: Iterable[str]) -> Results:
    results = {}
    for name in names:
        model = make_model(*MODELS[name])
        model.fit(*make_data(), BATCH, verbose=0)
        model.save(folder / f"{name}.keras")
        results |= results_of(name, model)
    return results


# The new process.


def load_models(folder: Path) -> None:
    """Prints the error that comes before the import."""
    try:
        keras.models.load_model(folder / f"{FIRST}.keras")
    except Exception as error:
        print(type(error).__name__, str(error).replace("\n", " "))
    else:
        print("loaded before import")
    import tf_lstm_ops  # not too late

    results = {}
    for file in folder.glob("*.keras"):
        model = keras.models.load_model(file)
        layer, _ = MODELS[file.stem]
        assert type(model.layers[-1]) is getattr(tf_lstm_ops.keras, layer)
        results |= results_of(file.stem, model)
    np.savez(folder / "loaded.npz", **results)


class Run(NamedTuple):
    """What was calculated after saving, and by a new process from the files; what it printed."""

    saved: Results
    loaded: Results
    printed: str


@pytest.fixture(scope="module")
def run(request, tmp_path_factory) -> Run:
    """Of those models that some test of this run is about."""
    folder = tmp_path_factory.mktemp("keras_format")
    tests = [item for item in request.session.items if item.path == request.path]
    names = [item.callspec.params["name"] for item in tests if hasattr(item, "callspec")]
    saved = save_models(folder, {FIRST, *names})
    process = subprocess.run(
        [sys.executable, __file__, folder],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    with np.load(folder / "loaded.npz") as loaded:
        return Run(saved, dict(loaded), process.stdout)


@pytest.mark.full
@pytest.mark.parametrize("name", cases())
def test_loaded_models_predict_and_train_on(run, name):
    """Bit for bit; the state of the optimiser is saved too."""
    saved, loaded, _ = run
    assert saved.keys() == loaded.keys()
    keys = [key for key in saved if key.startswith(f"{name} ")]
    _, options = MODELS[name]
    weights = 3 + ("use_peephole" in options) - ("use_bias" in options)
    assert len(keys) == 2 + weights
    for key in keys:
        assert np.any(saved[key])
        np.testing.assert_array_equal(loaded[key], saved[key], key)
    moved = np.any(saved[f"{name} once"] != saved[f"{name} again"])
    assert moved == ("stateful" in options)


@pytest.mark.full
def test_without_import_the_error_names_the_class(run):
    """Once the package is imported, the same process loads the same file. (Keras 3.8 imports the
    package by itself.)"""
    if run.printed.strip() != "loaded before import":
        assert "Could not locate class 'LSTM'" in run.printed
        assert "tf_lstm_ops>LSTM" in run.printed
    assert f"{FIRST} once" in run.loaded


if __name__ == "__main__":
    load_models(Path(sys.argv[1]))
