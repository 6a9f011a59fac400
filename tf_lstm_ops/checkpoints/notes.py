"""What the reader of converted weights must know beside the numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tf_lstm_ops._activations import DEFAULTS
from tf_lstm_ops.checkpoints.contents import Contents
from tf_lstm_ops.checkpoints.stacks import Group

_HARD_SIGMOID = "recurrent_activation is hard_sigmoid of Keras 2, clip(0.2 x + 0.5, 0, 1)"


def of(group: Group, contents: Contents) -> str:
    """The note of a candidate.

    Args:
      group: its cells.
      contents: those of the file.

    Returns:
      Text, maybe empty.
    """
    return "; ".join(dict.fromkeys(filter(None, _notes(group, contents))))


def _notes(group: Group, contents: Contents) -> Iterator[str]:
    for cell in group.cells:
        yield cell.note
    if group.layers > 1:
        yield (
            "a stack by its names; if its program adds residual connections, take each layer: "
            + ", ".join(cell.name for cell in group.cells)
        )
    if contents.keras_version is None:
        return
    old = _numbers(contents.keras_version) < (3, 0)
    for cell in group.cells:
        if cell.kind == "gru" and cell.family == "Keras" and not _has_bias(cell.roles):
            yield "there is no bias, so reset_after=True is assumed"
    config = _config(group.cells[0].name, contents.layers)
    if config is not None:
        yield from _activations(config, old)
    elif _may_be_hard(contents.keras_version) and not group.cells[0].family.startswith(
        "Keras 2 Cu"
    ):
        yield (
            "the file does not say the activations; before Keras 2.3 the default of "
            "recurrent_activation was hard_sigmoid, clip(0.2 x + 0.5, 0, 1)"
        )


def _activations(config: Mapping[str, Any], old: bool) -> Iterator[str]:
    for name, usual in DEFAULTS.items():
        former = "inner_activation" if name == "recurrent_activation" else name
        value = config.get(name, config.get(former, usual))
        if value == "hard_sigmoid" and old:
            yield _HARD_SIGMOID if name == "recurrent_activation" else f"{name} is that of Keras 2"
        elif value != usual:
            yield f"{name} is {value if isinstance(value, str) else 'a function of its own'}"
    if config.get("go_backwards") is True and "backward" not in config["name"]:
        yield "it runs backwards in time"


def _config(name: str, layers: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The configuration of the layer that a part of a name names; the last part that does."""
    parts = [part for part in name.split("/") if part in layers]
    return layers[parts[-1]] if parts else None


def _has_bias(roles: Mapping[str, Any]) -> bool:
    return "bias" in roles or "keras 2" in roles


def _may_be_hard(version: str) -> bool:
    """Whether the version is one of Keras, not of tf.keras, before 2.3."""
    return not version.endswith("-tf") and _numbers(version) < (2, 3)


def _numbers(version: str) -> tuple[int, int]:
    """The major and the minor version; 3.0 if the text is no version."""
    match = re.match(r"(\d{1,4})(?:\.(\d{1,4}))?", version)
    return (int(match[1]), int(match[2] or 0)) if match else (3, 0)
