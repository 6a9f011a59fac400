"""What a path is that a user gives as a model. This module imports nothing that takes long."""

from __future__ import annotations

from pathlib import Path

from tf_lstm_ops.cli import UsageError
from tf_lstm_ops.files import kinds

_COMMANDS = {"keras": "keras", "hdf5": "h5"}


def kind_of(path: Path) -> str:
    """Finds out what a path is.

    Args:
      path: the argument MODEL.

    Returns:
      "keras", "h5" or "saved_model".

    Raises:
      UsageError: it does not exist, or is no model; the message says what opens it.
    """
    if not path.exists():
        if Path(f"{path}.index").exists():
            raise UsageError(f"{path} is {kinds.TABLE['checkpoint'].advice}")
        raise UsageError(f"{path} does not exist")
    is_folder, kind, by_name = path.is_dir(), kinds.by_content(path), kinds.by_name(path)
    if is_folder and (path / "saved_model.pb").is_file():
        return "saved_model"
    if is_folder and any(path.glob("*.index")):
        raise UsageError(f"{path} has {kinds.TABLE['checkpoint'].advice}")
    if kind in _COMMANDS and kind == by_name:
        if kind == "hdf5":
            _require_model(path)
        return _COMMANDS[kind]
    other = is_folder or kind or by_name not in _COMMANDS
    if other and (advice := kinds.advice(path)):
        raise UsageError(f"{path} is {advice}")
    if is_folder:
        raise UsageError(f"the folder {path} is no SavedModel: it has no saved_model.pb")
    raise UsageError(f"{path} is no .keras file, no .h5 file and no folder with a SavedModel")


def _require_model(path: Path) -> None:
    import h5py

    try:
        with h5py.File(path) as file:
            if "model_config" in file.attrs:
                return
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    from tf_lstm_ops.files.contents import major
    from tf_lstm_ops.files.hdf5 import keras_version

    version = keras_version(path)
    what = "save the model with model.save"
    if version is not None and major(version) < 3:
        what = (
            f"Keras {version} wrote it. Make the model in Python and call "
            f"tf_lstm_ops.keras.load_h5_weights(model, {str(path)!r}); `tf-lstm-ops checkpoint "
            f"{path}` lists its recurrent layers"
        )
    raise UsageError(f"{path} has no model, only weights; {what}")
