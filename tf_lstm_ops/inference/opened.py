"""A session that the library has opened, and what becomes of other sources and files."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any

from tf_lstm_ops import _files, _received
from tf_lstm_ops.files import limits
from tf_lstm_ops.inference import arguments, arrays, file, native
from tf_lstm_ops.inference.arrays import Floats


class Opened:
    """A session of the library, which is closed when this object goes.

    Args:
      threads: as of `Session`.
      names: of the layers; empty for a file, which has none.
      function: of the library, that opens a file.
      source: its first arguments.
      keep: an object that lives as long.

    Raises:
      ValueError, OSError, MemoryError: those of the library.

    Attributes:
      handle: what functions of the library take.
      content: the bytes of the file. They must not outlive this object.
      info: what the library says of it.
      inputs, masks, lengths: what the arguments x, mask and lengths of a call consist of.
      outputs: what the result and the argument out consist of.
      layers: the number of layers.
      state_shapes: as of `Session`.
      is_single: whether there are one input of type float32 and one output, the common case of a
        stream.
      names: the argument.
      advice: for errors of sizes.
    """

    def __init__(
        self, threads: int, names: Sequence[str], function: str, *source: Any, keep: Any = None
    ) -> None:
        self.names, self.advice = names, ""
        handle, info = native.owned(self, "session", keep), native.Info()
        options = native.Options(threads=threads)
        native.call(
            *(function, *source, ctypes.addressof(options), ctypes.addressof(handle)), names=names
        )
        native.call("session_get_info", handle, ctypes.addressof(info))
        self.handle, self.info, self.content = handle, info, native.content(handle)
        summary = file.summary(self.content)
        self.layers = summary.layers
        inputs = arguments.specs("input", handle, info.input_count)
        outputs = arguments.specs("output", handle, info.output_count)
        self.inputs = arguments.Arguments("x", inputs, summary.input_structure)
        self.masks = arguments.Arguments("mask", inputs, summary.input_structure)
        self.lengths = arguments.Arguments("lengths", inputs, summary.input_structure)
        self.outputs = arguments.Arguments("out", outputs, summary.output_structure)
        structures = summary.input_structure, summary.output_structure
        self.is_single = not any(structures) and inputs[0].dtype == "float32"
        states = info.state_count if info.can_stream else 0
        self.state_shapes = [native.described("state", handle, k)[1][1:] for k in range(states)]

    def checked_out(
        self, out: Any, shapes: Sequence[arguments.Shape], inputs: Sequence[file.Array]
    ) -> list[Floats]:
        """The arrays of the argument out.

        Args:
          out: the argument.
          shapes: of the outputs.
          inputs: arrays with which they must not share memory.

        Returns:
          An array for each output.

        Raises:
          TypeError, ValueError: an array is wrong.
        """
        results: list[Floats] = []
        given = self.outputs.flat(out)
        for label, array, shape in zip(self.outputs.labels, given, shapes, strict=True):
            results.append(arrays.checked_out(array, shape, (*inputs, *results), label))
        return results


def of_graph(model: file.Graph, threads: int) -> Opened:
    """Opens a graph.

    Args:
      model: the graph.
      threads: as of `Session`.

    Returns:
      The session.

    Raises:
      ValueError: a layer does not fit. The message names it.
    """
    content = file.write(model)
    names = [node.layer.name for node in model.nodes]
    source = arrays.pointer(content), content.nbytes
    return Opened(threads, names, "session_open_data", *source, keep=content)


def of_file(path: _files.Path, threads: int) -> Opened:
    """Opens a file that `Session.save` wrote.

    Args:
      path: as of `Session.load`.
      threads: likewise.

    Returns:
      The session.

    Raises:
      OSError, TypeError, ValueError: as of `Session.load`.
    """
    name = limits.readable(path)
    try:
        return Opened(threads, (), "session_open", os.fsencode(name))
    except ValueError as error:
        raise ValueError(f"{name}{_explained(error, name)}") from None


def _explained(error: ValueError, path: Any) -> str:
    """An error of the library after the name of the file."""
    if not isinstance(error, native.NotASessionFileError):
        return f": {error}"
    if method := _method_of(path):
        return f" is not a file of Session.save ({error}). Session.{method} reads it"
    return (
        f" is not a file of Session.save ({error}). For a Keras model: "
        f"Session(keras.models.load_model({os.fspath(path)!r}))"
    )


def require_keras(model: Any) -> None:
    """Refuses sources that need another method of `Session`, not Keras.

    Args:
      model: the argument of `Session`.

    Raises:
      TypeError: it is such a source.
    """
    method = _method_of(model)
    listed = model if isinstance(model, list | tuple) else [model]
    if isinstance(model, Mapping) or any(map(_received.is_torch_module, listed)):
        method = "from_torch"
    if method:
        raise TypeError(
            f"Session(model) takes a model of Keras. Use Session.{method}. Received: "
            f"{_received.text(model)}"
        )


def _method_of(path: Any) -> str | None:
    """The method that reads a file of another program; None if there is none."""
    if not _received.is_path(path):
        return None
    end = os.path.splitext(os.fsdecode(path))[1].lower()
    return {
        ".onnx": "from_onnx",
        **dict.fromkeys((".pt", ".pth", ".safetensors"), "from_torch"),
    }.get(end)
