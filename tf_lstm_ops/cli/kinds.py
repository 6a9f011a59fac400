"""What a path is that a user gives as a model. This module imports nothing that takes long."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tf_lstm_ops import _file_kinds
from tf_lstm_ops.cli import UsageError


def kind_of(path: Path) -> str:
    """Finds out what a path is.

    Args:
      path: the argument MODEL.

    Returns:
      "keras", "h5" or "saved_model".

    Raises:
      UsageError: it does not exist, or is no model.
    """
    if not path.exists():
        if Path(f"{path}.index").exists():
            raise UsageError(f"{path} is {_file_kinds.advice('.index')}")
        raise UsageError(f"{path} does not exist")
    if path.is_dir():
        if not (path / "saved_model.pb").is_file():
            if any(path.glob("*.index")):
                raise UsageError(f"{path} has {_file_kinds.advice('.index')}")
            raise UsageError(f"the folder {path} is no SavedModel: it has no saved_model.pb")
        return "saved_model"
    if path.suffix == ".keras" and zipfile.is_zipfile(path):
        return "keras"
    if path.suffix in (".h5", ".hdf5"):
        import h5py

        if h5py.is_hdf5(path):
            try:
                with h5py.File(path) as file:
                    if "model_config" in file.attrs:
                        return "h5"
            except OSError as error:
                raise UsageError(f"{path} cannot be read: {error}") from error
            raise UsageError(f"{path} has no model, only weights; {_of_weights(path)}")
    if path.suffix not in (".keras", ".h5", ".hdf5") and (advice := _file_kinds.advice(path)):
        raise UsageError(f"{path} is {advice}")
    raise UsageError(f"{path} is no .keras file, no .h5 file and no folder with a SavedModel")


def _of_weights(path: Path) -> str:
    """What to do with a file of weights."""
    from tf_lstm_ops.weights import h5_file

    version = h5_file.keras_version(path)
    if version is None or h5_file.major(version) >= 3:
        return "save the model with model.save"
    return (
        f"Keras {version} wrote it. Make the model in Python and call "
        f"tf_lstm_ops.keras.load_h5_weights(model, {str(path)!r}); `tf-lstm-ops checkpoint {path}` "
        "lists its recurrent layers"
    )
