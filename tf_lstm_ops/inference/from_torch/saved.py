"""Files of torch.save, which PyTorch itself reads."""

from __future__ import annotations

import os
import re
import textwrap
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from tf_lstm_ops import _optional
from tf_lstm_ops.files import limits


def read(path: str) -> Any:
    """Reads what torch.save wrote, if it has tensors only: nothing of the file is executed.

    Args:
      path: the file.

    Returns:
      Such as a dictionary of tensors.

    Raises:
      ImportError: PyTorch is not installed.
      OSError: the file cannot be opened.
      ValueError: it has something else than tensors, or is damaged.
    """
    name = limits.readable(path)
    torch = _optional.require("torch", "a file of torch.save", "torch")
    _require_small(name, _size_of_members(name))
    try:
        found: Any = torch.load(name, map_location="cpu", weights_only=True)
    except Exception as error:  # of a damaged file anything
        text = re.sub(r"\x1b\[\d*m", "", str(error))  # without colours
        classes = re.search(r"GLOBAL (\S+)", text)
        said = f"it has a {classes[1]}" if classes else textwrap.shorten(text, 200)
        raise ValueError(
            f"{name} cannot be read as a state dict: {type(error).__name__}: {said}. A file must "
            "have tensors only: write it with torch.save(model.state_dict(), path). A whole model "
            "is code, as is a checkpoint with other objects. If you trust it, load it yourself "
            "with torch.load(path, weights_only=False), and pass its modules or state dict"
        ) from None
    tensors = [each for each in _values(found) if isinstance(each, torch.Tensor)]
    _require_small(name, sum(each.numel() * each.element_size() for each in tensors))
    return found


def _size_of_members(name: str) -> int:
    """The bytes of the members of an archive, which torch.save does not compress."""
    try:
        with zipfile.ZipFile(name) as archive:
            members = archive.infolist()
    except zipfile.BadZipFile:  # of PyTorch before 1.6
        return 0
    limits.require_different((member.filename for member in members), name)
    return sum(member.file_size for member in members)


def _require_small(name: str, size: int) -> None:
    most = limits.most_bytes(limits.NAMES_OF_A_TENSOR * os.path.getsize(name))
    if size > most:
        raise ValueError(
            f"{name} stands for {size} bytes, more than {most}, which its own size allows. Write "
            "copies of its tensors: {name: tensor.clone() for name, tensor in state.items()}"
        )


def _values(value: Any) -> Iterator[Any]:
    """The values of nested dictionaries."""
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _values(each)
    else:
        yield value
