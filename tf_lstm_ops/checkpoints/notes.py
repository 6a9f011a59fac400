"""What the reader of converted weights must know beside the numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tf_lstm_ops._activations import DEFAULTS
from tf_lstm_ops.checkpoints.stacks import Group

_HARD_SIGMOID = "recurrent_activation is hard_sigmoid of Keras 2, clip(0.2 x + 0.5, 0, 1)"


def of(group: Group, version: str, layers: Mapping[str, Mapping[str, Any]]) -> str:
    """The note of a candidate.

    Args:
      group: its cells.
      version: of Keras, as of `files.contents.Contents`.
      layers: as of `layers_of`.

    Returns:
      Text, maybe empty.
    """
    return "; ".join(dict.fromkeys(filter(None, _notes(group, version, layers))))


def _notes(group: Group, version: str, layers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for cell in group.cells:
        yield cell.note
    if group.layers > 1:
        yield (
            "a stack by its names; if its program adds residual connections, take each layer: "
            + ", ".join(cell.name for cell in group.cells)
        )
    if not version:
        return
    for cell in group.cells:
        has_bias = "bias" in cell.roles or "keras 2" in cell.roles
        if cell.kind == "gru" and cell.family == "Keras" and not has_bias:
            yield "there is no bias, so reset_after=True is assumed"
    # The last part of a name that is that of a layer counts.
    parts = [part for part in group.cells[0].name.split("/") if part in layers]
    is_cudnn = group.cells[0].family.startswith("Keras 2 Cu")
    if parts:
        yield from _activations(layers[parts[-1]], _numbers(version) < (3, 0))
    elif not version.endswith("-tf") and _numbers(version) < (2, 3) and not is_cudnn:
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


def _numbers(version: str) -> tuple[int, int]:
    """The major and the minor version; 3.0 if the text is no version."""
    match = re.match(r"(\d{1,4})(?:\.(\d{1,4}))?", version)
    return (int(match[1]), int(match[2] or 0)) if match else (3, 0)


def layers_of(config: Any) -> dict[str, dict[str, Any]]:
    """The configurations of a model's recurrent layers.

    Args:
      config: the model's class_name and config, as of JSON; None for no layers.

    Returns:
      The configurations by the layers' names, and by those of wrappers around them.
    """
    found: dict[str, dict[str, Any]] = {}
    for part in _dictionaries(config):
        inner = part.get("layer")
        own = inner.get("config") if isinstance(inner, dict) else part
        if (
            isinstance(part.get("name"), str)
            and isinstance(own, dict)
            and ("recurrent_activation" in own or "inner_activation" in own)
        ):
            found[part["name"]] = own
    return found


def _dictionaries(value: Any) -> Iterator[dict[str, Any]]:
    """All dictionaries in a value of JSON."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            yield part
            pending += part.values()
        elif isinstance(part, list):
            pending += part
