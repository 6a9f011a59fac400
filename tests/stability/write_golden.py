"""Writes the files that later versions must read: ``python -m stability.write_golden FOLDER``.

Run from ``tests``, once for a release, with the oldest TensorFlow and Keras that it supports.
FOLDER is named after the release.

* ``ops``: a SavedModel of all ops and their gradients, internal ops among them.
* ``layers``: a SavedModel of all layers and their gradients; ``layers.keras`` and
  ``layers.weights.h5``: the same model, and its weights, as Keras saves them.
* ``stateful``: what `export.saved_model` makes of a stateful model; ``stateful.keras``: the model.
* ``NAME.safetensors``: the weights of a layer.
* ``results.npz``: what all of them return for the input ``x`` in it.
* The files of ``golden_session.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tf_lstm_ops import export, weights

from . import golden_session
from .golden_layers import BATCH, CHUNK, I, Layers, layers_model, stateful_model
from .golden_ops import B, Ops, T, fixed

# Layers whose weights have a form that other libraries read.
SAFETENSORS = {
    "lstm": weights.LSTMWeights,
    "lstm_peephole": weights.LSTMWeights,
    "lstm_both": weights.LSTMWeights,
    "gru": weights.GRUWeights,
    "stacked_lstm": weights.LSTMWeights,
    "stacked_gru": weights.GRUWeights,
}


def chunks(results: Mapping[str, Any], call: Any) -> list[Any]:
    """The outputs of two calls, the second with the state that the first left."""
    return [call(results["chunk"]), call(results["chunk"])]


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    ops, model, stateful = Ops(), layers_model(), stateful_model()
    layers = Layers(model)
    options = tf.saved_model.SaveOptions(experimental_debug_stripper=True)
    tf.saved_model.save(ops, str(folder / "ops"), options=options)
    tf.saved_model.save(layers, str(folder / "layers"), options=options)
    model.save(folder / "layers.keras")
    model.save_weights(folder / "layers.weights.h5")
    for name, form in SAFETENSORS.items():
        form.from_keras(model.get_layer(name)).to_safetensors(folder / f"{name}.safetensors")
    stateful.save(folder / "stateful.keras")
    export.saved_model(stateful, str(folder / "stateful"))

    x, rows = fixed(0, T, B, I), fixed(1, BATCH, CHUNK, I)
    results = {"x": x, "rows": rows, "chunk": fixed(2, BATCH, CHUNK, I)}
    outputs = chunks(results, stateful)
    results |= {f"stateful/{k}": value for k, value in enumerate(outputs)}
    for kind, values in (
        ("ops", ops.results(x)),
        ("sizes", ops.sizes(x)),
        ("layers", layers.serve(rows)),
        ("gradients", layers.gradients(rows)),
    ):
        results |= {f"{kind}/{name}": value for name, value in values.items()}
    arrays = {name: np.asarray(value) for name, value in results.items()}
    np.savez_compressed(folder / "results.npz", **arrays)
    golden_session.write(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
