"""Calls TensorFlow's converter to TensorFlow Lite."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from tf_lstm_ops import _tf_private
from tf_lstm_ops.export import errors
from tf_lstm_ops.export.lite import flatbuffer
from tf_lstm_ops.export.lite.trace import Traced


def convert(
    traced: Traced, quantize: str | None, configure: Callable[[Any], None], flex: bool = False
) -> bytes:
    """Converts a traced model.

    Args:
      traced: the function.
      quantize: None, "float16", "dynamic" or "int8".
      configure: sets the attributes of the converter, as `configured` does.
      flex: whether the file may have ops of TensorFlow.

    Returns:
      The file.

    Raises:
      ValueError: TensorFlow's converter fails; or the file needs ops that TensorFlow Lite does not
        have; or, with "int8", it has loops, or sums that are always zero.
    """
    with tempfile.TemporaryDirectory() as folder:
        module = tf.Module()
        module.variables_read = list(traced.function.variables)
        tf.saved_model.save(module, folder, signatures={"serving_default": traced.function})
        if quantize == "int8":  # the converter ends the process if it quantises a loop
            _reject_loops(_finished(folder, traced, lambda converter: None, flex))
        return _finished(folder, traced, configure, flex)


def configured(
    quantize: str | None, samples: Iterable[dict[str, Any]] | None
) -> Callable[[Any], None]:
    """The attributes of the converter for `quantize`.

    Args:
      quantize: None, "float16", "dynamic" or "int8".
      samples: for "int8", the inputs and states by name with which ranges are measured.

    Returns:
      A function of the converter.
    """

    def configure(converter: Any) -> None:
        lite = _tf_private.lite()
        if quantize is not None:
            converter.optimizations = [lite.Optimize.DEFAULT]
        if quantize == "float16":
            converter.target_spec.supported_types = [tf.float16]
        if quantize == "int8":
            converter.representative_dataset = lambda: iter(samples or [])
            converter.target_spec.supported_ops = [
                lite.OpsSet.TFLITE_BUILTINS_INT8,
                lite.OpsSet.TFLITE_BUILTINS,  # what int8 has not stays float32
            ]

    return configure


def _finished(folder: str, traced: Traced, configure: Callable[[Any], None], flex: bool) -> bytes:
    lite = _tf_private.lite()
    converter = lite.TFLiteConverter.from_saved_model(folder)
    if flex:
        converter.target_spec.supported_ops = [
            lite.OpsSet.TFLITE_BUILTINS,
            lite.OpsSet.SELECT_TF_OPS,
        ]
    configure(converter)
    with errors.in_words("TensorFlow's converter cannot convert the model"):
        content = flatbuffer.finish(converter.convert(), traced.lowering.fused)
    sums = flatbuffer.zero_sums(content)
    if sums:  # the interpreter would end the process
        raise ValueError(
            f"quantize='int8' needs a range for each value, and {len(sums)} sums are zero for all "
            f"of representative_data; the first is {sums[0]}. A reason can be a step that is zero "
            "or masked in all rows. Give rows of different lengths, one of them with all steps"
        )
    custom = sorted(name for name in flatbuffer.operations(content) if name.startswith("CUSTOM"))
    if custom and not flex:
        raise ValueError(
            f"the file would need ops that TensorFlow Lite does not have: {', '.join(custom)}. "
            "Which layer of the model computes them?"
        )
    return content


def _reject_loops(content: bytes) -> None:
    loops = flatbuffer.operations(content)["WHILE"]
    if loops:
        raise ValueError(
            f"quantize='int8' needs a model without loops, because TensorFlow's converter does not "
            f"quantise them; the model has {loops} besides its recurrent layers"
        )
