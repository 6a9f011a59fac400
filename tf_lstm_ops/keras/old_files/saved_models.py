"""Reads SavedModels that Keras 2 wrote: the layers, and the values of their variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tf_lstm_ops.files import tensorflow
from tf_lstm_ops.files.contents import Contents, NamedArray


def read(folder: Path) -> tuple[Contents, list[NamedArray]]:
    """Reads the folder of ``model.save(path, save_format="tf")`` of Keras 2.

    Args:
      folder: the folder.

    Returns:
      Its contents, without the functions, and the values of the model's variables in Keras 2's
      order. The configuration has class_name and config.

    Raises:
      OSError: a file cannot be read.
      ValueError: no Keras model is in the folder, or a file is damaged.
    """
    metadata = _metadata(folder)
    if not isinstance(metadata.get("config"), dict | list):
        raise ValueError(
            f"the model in {folder} is of class {metadata.get('class_name')}, whose layers only "
            "its Python code makes. Make it in Python and take the weights by LSTMWeights or "
            "GRUWeights.from_checkpoint, or run it whole: keras.layers.TFSMLayer(path, "
            "call_endpoint='serving_default')"
        )
    config = {"class_name": metadata.get("class_name"), "config": metadata["config"]}
    found = tensorflow.checkpoint(str(folder / "variables" / "variables"))
    arrays = _variables(folder, found)
    # Keras 3 writes no layers into a SavedModel.
    return Contents(str(folder), tensorflow.SAVED_MODEL, dict(arrays), "2", config), arrays


def _metadata(folder: Path) -> dict[str, Any]:
    """What Keras 2 wrote of the root object."""
    found = tensorflow.saved_metadata(folder)
    if isinstance(found, dict):
        return found
    raise ValueError(
        f"{folder} is no SavedModel with layers of Keras 2. Run it whole: "
        "keras.layers.TFSMLayer(path, call_endpoint='serving_default')"
    )


def _variables(folder: Path, found: Contents) -> list[NamedArray]:
    """The children of the root's list `variables`, by the graph of objects in the checkpoint."""
    objects = tensorflow.objects(found.objects or b"")
    try:
        listed = objects[objects[0].children["variables"]].children
    except LookupError:
        raise ValueError(f"{folder} is damaged: its checkpoint has no list of variables") from None
    arrays: list[NamedArray] = []
    for number in range(len(listed)):
        if (node := listed.get(str(number))) is None:
            break
        for name, key in objects[node].variables[:1] if node < len(objects) else ():
            if key not in found.arrays:
                raise ValueError(f"{folder} is damaged: it has no array of numbers {name}")
            arrays.append(NamedArray(name, found.arrays[key]))
    return arrays
