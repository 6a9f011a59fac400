"""Runs ONNX files: by ONNX Runtime, else by the reference implementation of the package onnx."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tf_lstm_ops.onnx_graph.float32 import require_types

Runner = Callable[[list[np.ndarray]], list[Any]]


class NotRun(Exception):
    """Nothing on this machine can run a file; the message says why."""


def runner(source: str | bytes, proto: Any) -> Runner:
    """A function that runs a file.

    Args:
      source: the file, or its bytes.
      proto: its content, an ``onnx.ModelProto``.

    Returns:
      A function of the inputs, in the order of the file, that returns the outputs. It raises
      `NotRun` if the reference implementation would compute something else than the file.
    """
    try:
        import onnxruntime
    except ImportError:
        return _reference(source, proto)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised
    try:
        session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # classes of its own
        return _instead(source, proto, error)
    if any(n.op_type == "LSTM" and _has(n, "clip") for n in proto.graph.node):
        return _not_run  # it does not clip the cell state, onnxruntime#27224
    names = [argument.name for argument in session.get_inputs()]
    return lambda inputs: session.run(None, dict(zip(names, inputs, strict=True)))


def _has(node: Any, attribute: str) -> bool:
    return any(each.name == attribute for each in node.attribute)


def _not_run(inputs: list[np.ndarray]) -> list[Any]:
    raise NotRun("ONNX Runtime does not clip the argument of an LSTM's last function")


def _instead(source: str | bytes, proto: Any, error: Exception) -> Runner:
    """Runs a file that ONNX Runtime refuses by the reference implementation.

    Some files are right and have an operator of a type, or with an attribute, that it lacks.
    """
    try:
        require_types(proto)
    except ValueError:
        raise error from None
    run = _reference(source, proto)

    def run_or_not(inputs: list[np.ndarray]) -> list[Any]:
        try:
            return run(inputs)
        except NotRun as reason:
            raise NotRun(f"{reason}. ONNX Runtime says: {error}") from None
        except Exception as reason:
            raise NotRun(f"{error}; onnx.reference says: {reason}") from reason

    return run_or_not


def _reference(source: str | bytes, proto: Any) -> Runner:
    from onnx.reference import ReferenceEvaluator

    def run(inputs: list[np.ndarray]) -> list[Any]:
        for limit in _limits(proto.graph):
            raise NotRun(
                f"the reference implementation of the package onnx {limit}. To check the file, "
                "type: pip install onnxruntime"
            )
        session = ReferenceEvaluator(source)
        return session.run(None, dict(zip(session.input_names, inputs, strict=True)))

    return run


def _limits(graph: Any) -> Iterator[str]:
    """Where the reference implementation of onnx 1.22 or 1.23 is not what ONNX specifies."""
    import onnx

    old = [int(part) for part in onnx.__version__.split(".")[:2]] < [1, 23]
    read = {name for node in graph.node for name in node.input}
    read |= {output.name for output in graph.output}
    for node in graph.node:
        is_recurrent = node.op_type in ("LSTM", "GRU", "RNN")
        for name in ("clip", "input_forget"):
            if is_recurrent and _has(node, name):
                yield f"ignores {name} of {node.op_type}"
        if is_recurrent and _has(node, "activations"):
            verb = "lacks" if node.op_type == "RNN" else "ignores"
            yield f"{verb} the activations of {node.op_type}"
        if old and is_recurrent and any(a.s == b"reverse" for a in node.attribute):
            yield f"ignores the direction of {node.op_type} before version 1.23"
        if old and node.op_type == "GRU" and any(node.input[4:5]):
            yield "cannot use the lengths of GRU before version 1.23"
        # Steps after the length change the cell state only: see onnx_nodes.
        if is_recurrent and any(node.input[4:5]) and read.intersection(node.output[2:]):
            yield f"ignores the lengths of {node.op_type}"
        if node.op_type == "Loop" and read.intersection(node.output[len(node.input) - 2 :]):
            yield "joins the outputs of a Loop's steps along the batch"
