"""The check of nodes against the operators that the package onnx defines."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from tf_lstm_ops.onnx_graph.attributes import Attributes, attributes, short, value_of

if TYPE_CHECKING:
    import onnx


def check(node: onnx.NodeProto, opset: int) -> None:
    """Checks the attributes of a node of the default domain, and the number of its operands.

    Args:
      node: the node. If onnx has no such operator, nothing is checked.
      opset: the version of the default domain.

    Raises:
      ValueError: an attribute is unknown, missing or of another type; or there are too many or few
        inputs or outputs. The text does not name the node.
    """
    schema = _schema(node.op_type, opset)
    if schema is None:
        return
    given = {attribute.name: attribute.type for attribute in node.attribute}
    for name, kind in given.items():
        if name not in schema.attributes:
            raise ValueError(f"it has the attribute {short(name)}, which the operator does not")
        if kind != int(schema.attributes[name].type.value):
            raise ValueError(f"its attribute {name} is of another type than that of the operator")
    for name, attribute in schema.attributes.items():
        if attribute.required and name not in given:
            raise ValueError(f"its attribute {name} is missing")
    _check_count("inputs", len(node.input), schema.min_input, schema.max_input)
    _check_count("outputs", len(node.output), schema.min_output, schema.max_output)
    kinds = type(schema).FormalParameterOption
    for name, parameter in zip(node.input, schema.inputs, strict=False):
        if not name and parameter.option == kinds.Single:
            raise ValueError(f"its input {parameter.name} is missing")


def attributes_of(node: onnx.NodeProto, opset: int) -> Attributes:
    """The attributes of a node, with the defaults of its operator.

    Args:
      node: the node.
      opset: the version of the default domain.

    Returns:
      The attributes.

    Raises:
      ValueError: as of `attributes`.
    """
    is_own = node.domain not in ("", "ai.onnx")
    return attributes(node, None if is_own else _defaults(node.op_type, opset))


@functools.cache
def _defaults(op_type: str, opset: int) -> dict[str, Any]:
    schema = _schema(op_type, opset)
    every = {} if schema is None else {n: a.default_value for n, a in schema.attributes.items()}
    return {name: value_of(default) for name, default in every.items() if default.type}


def require_read(
    node: onnx.NodeProto, given: Attributes, opset: int, ignored: Collection[str] = ()
) -> None:
    """Refuses attributes that nothing has read, unless their values are the defaults.

    Args:
      node: the node.
      given: its attributes, after what computes the node has read them.
      opset: the version of the default domain.
      ignored: attributes without an effect on what is computed.

    Raises:
      ValueError: there is such an attribute. The text does not name the node.
    """
    unread = {name: value for name, value in given.unread.items() if name not in ignored}
    if not unread:
        return
    is_own = node.domain not in ("", "ai.onnx")
    schema = None if is_own else _schema(node.op_type, opset)
    defaults = {} if is_own else _defaults(node.op_type, opset)
    for name, value in unread.items():
        if schema is None or name not in schema.attributes:
            raise ValueError(f"it has the attribute {short(name)}, which is not read")
        if name not in defaults or value != defaults[name]:
            raise ValueError(f"its attribute {name} is {short(str(value))}, which is not read")


def _check_count(what: str, count: int, least: int, most: int) -> None:
    if not least <= count <= most:
        raise ValueError(f"it has {count} {what}, and the operator {least} to {most}")


@functools.cache
def _schema(op_type: str, opset: int) -> Any:
    """The operator of an opset, else its newest one: ONNX Runtime has some in any opset."""
    defs = importlib.import_module("onnx.defs")
    for version in ((opset,), ()):
        try:
            return defs.get_schema(op_type, *version, "")
        except defs.SchemaError:
            continue
    return None
