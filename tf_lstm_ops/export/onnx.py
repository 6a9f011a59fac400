"""Export of Keras models to ONNX."""

from __future__ import annotations

import contextlib
import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops import _files, _keras_private, _optional
from tf_lstm_ops.export import batch, check, errors, onnx_nodes, states
from tf_lstm_ops.export.onnx_trace import Trace, trace, why_loop
from tf_lstm_ops.export.signature import signature
from tf_lstm_ops.onnx_graph.run import runner

DEFAULT_OPSET, OLDEST_OPSET = 17, 14


def onnx(
    model: keras.Model,
    filepath: str | os.PathLike[str],
    opset: int | None = None,
    verbose: bool = False,
    *,
    input_signature: Sequence[Any] | None = None,
) -> None:
    """Writes a model as an ONNX file for inference, and checks the file.

    A recurrent layer becomes one node LSTM, GRU or RNN, a bidirectional layer two, with any mask.
    A layer that these nodes cannot express, for example with ``cell_clip``, becomes a Loop. The
    converter tf2onnx writes the Loops and all other layers. Sizes that are unknown in the model are
    dynamic in the file: the batch size, and the number of steps if the model's Input has it None.
    Each run of the file starts from zero states, also that of a stateful layer.

    Before it returns, the function runs the file with ONNX Runtime, or with the reference
    implementation of the package onnx, and compares it with the model, as `saved_model` does. If
    the reference implementation cannot run the file as ONNX specifies, a warning says that the file
    was not compared.

    >>> import keras
    >>> from tf_lstm_ops import export
    >>> from tf_lstm_ops.keras import LSTM
    >>> model = keras.Sequential([keras.Input((None, 8)), LSTM(4)])
    >>> export.onnx(model, "model.onnx")

    Args:
      model: a ``keras.Model`` in float32 whose inputs are known, with layers of this package, stock
        layers or both.
      filepath: the file to write.
      opset: the version of ONNX' operators, at least 14; None: 17. tf2onnx 1.17 has versions up to
        18.
      verbose: whether to print the number of nodes of each operator, the reason for each Loop, and
        the largest difference to the model.
      input_signature: the inputs of the file, as of `saved_model`.

    Raises:
      TypeError: model is not a ``keras.Model``, or a model of tf_keras; opset is not an integer;
        input_signature is not a list of specs.
      ImportError: the package tf2onnx or onnx is not installed.
      ValueError: the model is not built, or computes in another type than float32; the batch size
        is 0; opset is too old; tf2onnx cannot convert the model; the file cannot run, or predicts
        something else than the model. There is no new file then; a file that was there before is
        unchanged.
    """
    specs = signature(model, input_signature, states.batch_size(model))
    if any(spec.shape[0] == 0 for spec in tf.nest.flatten(specs)):  # ONNX Runtime would abort
        raise ValueError(f"the batch size of an ONNX file must not be 0. Received: {specs}")
    specs = batch.with_needed_sizes(model, specs)
    opset = _checked_opset(opset)
    errors.require_float32(model, "the export to ONNX writes")
    tf2onnx = _tf2onnx()
    traced = trace(model, specs)
    proto = _convert(tf2onnx, traced, opset)
    name = f"the ONNX file {os.fspath(filepath)}"
    _require_names(name, traced, proto)
    if verbose:
        _print(os.fspath(filepath), proto, model)
    with (
        errors.with_unknown_steps(model),
        _files.replacement(os.fspath(filepath), proto.SerializeToString()) as unchecked,
    ):
        run = runner(unchecked, proto)
        check.compare(model, run, specs, name, from_zeros=True, verbose=verbose)


def _checked_opset(opset: int | None) -> int:
    if opset is None:
        return DEFAULT_OPSET
    if not isinstance(opset, int) or isinstance(opset, bool):
        raise TypeError(f"opset must be None or an integer. Received: opset={opset!r}")
    if opset < OLDEST_OPSET:
        raise ValueError(f"opset must be at least {OLDEST_OPSET}. Received: opset={opset}")
    return opset


def _tf2onnx() -> ModuleType:
    packages = "onnx", "onnxruntime", "tf2onnx"
    _optional.require("onnx", "the export to ONNX", *packages)
    return _optional.require("tf2onnx", "the export to ONNX", *packages)


def _convert(tf2onnx: ModuleType, traced: Trace, opset: int) -> Any:
    """The ONNX model."""
    import onnx

    with _quiet(), errors.in_words("tf2onnx cannot convert the model"):
        proto, _ = tf2onnx.convert.from_function(
            traced, traced.inputs, opset=opset, custom_op_handlers=onnx_nodes.handlers()
        )
        onnx.checker.check_model(proto, full_check=True)
    return proto


def _require_names(name: str, traced: Trace, proto: Any) -> None:
    """Of the inputs and outputs, in their order."""
    initializers = {array.name for array in proto.graph.initializer}
    sides = (
        ("inputs", traced.names, [x.name for x in proto.graph.input if x.name not in initializers]),
        ("outputs", list(traced.structured_outputs), [x.name for x in proto.graph.output]),
    )
    for kind, wanted, found in sides:
        if found != wanted:
            raise ValueError(f"{name} has the {kind} {found}, but the model has {wanted}")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the messages of tf2onnx, which logs the errors that it raises, too."""
    logger = logging.getLogger("tf2onnx")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _print(path: str, proto: Any, model: keras.Model) -> None:
    nodes = sorted(Counter(node.op_type for node in proto.graph.node).items())
    print(f"{path}: {', '.join(f'{name} {count}' for name, count in nodes)}")
    for layer in _keras_private.layers_of(model):
        if isinstance(layer, keras.layers.RNN) and (reason := why_loop(layer)):
            print(f"  layer {layer.name} is a Loop: {reason}")
