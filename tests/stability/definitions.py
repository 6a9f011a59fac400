"""What docs/stability.md promises, as text: op definitions, Python signatures, names in files.

As a program, prints it. To record an addition:
``python tests/stability/definitions.py > tests/stability/definitions.txt``.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import re
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session

import tf_lstm_ops
from tf_lstm_ops import __main__
from tf_lstm_ops.keras.of_cell import GRUOfCell, LSTMOfCell, SimpleRNNOfCell

MODULES = ["export", "inference", "keras", "raw_ops", "stock", "weights"]
COMMANDS = ["checkpoint", "convert", "demo", "doctor", "info", "run", "selftest"]


def definitions() -> list[str]:
    """All lines."""
    return [*_ops(), "", *_functions(), "", *_layers(), "", *_commands()]


def _ops() -> Iterator[str]:
    registered = pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList())
    for op in sorted(op_def_pb2.OpList.FromString(registered).op, key=lambda op: op.name):
        if op.name.startswith("TfLstmOps>"):
            yield f"op {op.name}{' stateful' if op.is_stateful else ''}"
            yield from (f"  input {_argument(a)}" for a in op.input_arg)
            yield from (f"  output {_argument(a)}" for a in op.output_arg)
            yield from (f"  attribute {_attribute(a)}" for a in op.attr)


def _argument(argument: Any) -> str:
    dtype = argument.type_attr or tf.as_dtype(argument.type).name
    return f"{argument.name}: {argument.number_attr + ' * ' if argument.number_attr else ''}{dtype}"


def _attribute(attribute: Any) -> str:
    allowed = [_value(attribute.type, v) for v in _items(attribute.allowed_values.list)]
    kind = f"{{{', '.join(allowed)}}}" if allowed else attribute.type
    least = f" >= {attribute.minimum}" if attribute.has_minimum else ""
    if not attribute.HasField("default_value"):
        return f"{attribute.name}: {kind}{least}"
    default = attribute.default_value
    value = getattr(default, default.WhichOneof("value"))
    return f"{attribute.name}: {kind}{least} = {_value(attribute.type, value)}"


def _items(values: Any) -> list[Any]:
    return [*values.s, *values.type]


def _value(kind: str, value: Any) -> str:
    if kind == "type":
        return tf.as_dtype(value).name
    return value.decode() if isinstance(value, bytes) else str(value)


def _functions() -> Iterator[str]:
    for module in MODULES:
        namespace = getattr(tf_lstm_ops, module)
        for name in sorted(namespace.__all__):
            value = getattr(namespace, name)
            if inspect.ismodule(value):
                yield from (
                    f"{module}.{name}.{n}{_signature(getattr(value, n))}" for n in value.__all__
                )
                continue
            yield f"{module}.{name}{_signature(value)}"
            if module == "inference":
                own = {n for cls in getattr(value, "__mro__", (object,))[:-1] for n in vars(cls)}
                names = [n for n in own if n == "__call__" or not n.startswith("_")]
                yield from (
                    f"{module}.{name}.{n}{_signature(member) if callable(member) else ''}"
                    for n, member in ((n, getattr(value, n)) for n in sorted(names))
                )
            if module == "weights":
                yield from (
                    f"{module}.{name}.{method}{_signature(getattr(value, method))}"
                    for method in sorted(dir(value))
                    if method.startswith(("from_", "to_"))
                )


def _signature(function: Any) -> str:
    """Names, kinds and defaults of the arguments, without types."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def _layers() -> Iterator[str]:
    """The names that a `.keras` file has, and the weights of a layer."""
    for layer in (tf_lstm_ops.keras.LSTM(2, use_peephole=True), tf_lstm_ops.keras.GRU(2)):
        layer.build((None, None, 3))
        yield f"saved as {keras.saving.get_registered_name(type(layer))}"
        yield from (f"  weight {w.name} {list(w.shape)}" for w in layer.weights)
    for cls in (tf_lstm_ops.keras.LSTMCell, LSTMOfCell, GRUOfCell, SimpleRNNOfCell):
        yield f"saved as {keras.saving.get_registered_name(cls)}"


def _commands() -> Iterator[str]:
    for command in COMMANDS:
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
            __main__.main([command, "--help"])
        options = sorted(set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", text.getvalue())))
        yield f"tf-lstm-ops {command} {' '.join(options)}"


if __name__ == "__main__":
    print("\n".join(definitions()))
