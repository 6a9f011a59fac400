"""Writes tf_lstm_ops/raw_ops/types.py, the types in the signatures of `raw_ops`.

    python scripts/raw_ops_types.py

The fields of results are the outputs in TensorFlow's registry of op definitions, which the native
library fills. Run it with the installed package after an op has changed.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session

from tf_lstm_ops import op_definitions

FILE = Path(__file__).resolve().parents[1] / "tf_lstm_ops" / "raw_ops" / "types.py"

HEAD = '''\
"""The types in the signatures of `raw_ops`, for type checkers and editors.

Written by scripts/raw_ops_types.py from the op definitions. An op of several outputs returns a
namedtuple that TensorFlow generates, not an instance of the class here: the class has its fields.
Ops with the same outputs share a class.
The ops import this module for type checkers only. At run time `typing.get_type_hints` therefore
needs `localns=vars(types)`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

# TensorFlow has no types of its own, so that a checker accepts everything here.
Tensor: TypeAlias = Any  # tf.Tensor
TensorLike: TypeAlias = Any  # a tensor, a variable, an array, or plain Python values
DTypeLike: TypeAlias = Any  # a tf.DType, or what tf.as_dtype converts to one
'''

CLASS = '''

class {first}Results(NamedTuple):
{summary}

    Attributes:
{attributes}
    """

{fields}
{others}'''


def definitions() -> dict[str, Any]:
    """The definitions of the ops with a name of TensorFlow's, by name without the namespace."""
    registered = pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList())
    ours = {
        definition.name.removeprefix(op_definitions.NAMESPACE): definition
        for definition in op_def_pb2.OpList.FromString(registered).op
        if definition.name.startswith(op_definitions.NAMESPACE)
    }
    return {op: ours[op] for op in sorted(ours) if hasattr(tf.raw_ops, op)}


def render() -> str:
    """The text of the file."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for op, definition in definitions().items():
        outputs = tuple((output.name, _type(output)) for output in definition.output_arg)
        if len(outputs) > 1:
            alike.setdefault(outputs, []).append(op)
    return HEAD + "".join(_class(outputs, ops) for outputs, ops in alike.items())


def _class(outputs: tuple[tuple[str, str], ...], ops: list[str]) -> str:
    """The class of the first op, and its names of the other ops with the same outputs."""
    first, *others = ops
    words = f'"""The results of {", ".join(ops)}.'
    aliases = [f"{op}Results: TypeAlias = {first}Results\n" for op in others]
    return CLASS.format(
        first=first,
        summary=textwrap.indent(words, "    "),
        attributes=_attributes([name for name, _ in outputs]),
        fields="\n".join(f"    {name}: {kind}" for name, kind in outputs),
        others="".join(["\n\n", *aliases] if aliases else []),
    )


def _attributes(names: list[str]) -> str:
    text = f"{', '.join(names)}: see the function."
    return textwrap.fill(text, 100, initial_indent=" " * 6, subsequent_indent=" " * 8)


def _type(output: Any) -> str:
    return "list[Tensor]" if output.number_attr else "Tensor"


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
