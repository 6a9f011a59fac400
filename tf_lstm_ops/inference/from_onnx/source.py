"""The model of a file, for a comparison with the session."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tf_lstm_ops import _optional
from tf_lstm_ops.inference import source_check
from tf_lstm_ops.inference.from_onnx import inputs
from tf_lstm_ops.inference.from_onnx.inputs import Given
from tf_lstm_ops.inference.from_onnx.trace import nodes_before
from tf_lstm_ops.inference.from_onnx.values import Array
from tf_lstm_ops.inference.source_check import ROWS, STEPS
from tf_lstm_ops.inference.tracing.axes import Traced, real
from tf_lstm_ops.onnx_graph import tensors
from tf_lstm_ops.onnx_graph.float32 import in_float32
from tf_lstm_ops.onnx_graph.load import opset
from tf_lstm_ops.onnx_graph.run import NotRun, runner


@dataclasses.dataclass(frozen=True)
class Source:
    """What a comparison needs.

    Attributes:
      model: the ``onnx.ModelProto``.
      every: the inputs of the model.
      given: those of the session.
      outputs: the names of its outputs.
      constants: the values of further inputs.
      axes: of each input and output its axes.
      words: as of `source_check.compare`.
      name: the model in messages.
      tolerance: as of `source_check.compare`.
      program: computes all outputs of the model from all its inputs, in order; None: the model.
    """

    model: Any
    every: Sequence[Given]
    given: Sequence[Given]
    outputs: Sequence[str]
    constants: Mapping[str, Array]
    axes: Mapping[str, Traced]
    words: Sequence[range | None]
    tolerance: float = source_check.TOLERANCE
    name: str = "the ONNX model"
    program: Callable[[Sequence[Array]], Sequence[Array]] | None = None

    @property
    def advice(self) -> str:
        """How to open sizes that the file fixes, to follow an error; empty where it fixes none."""
        if not any(inputs.is_closed(each, self.axes[each.name]) for each in self.given):
            return ""
        shapes = {each.name: inputs.opened(each, self.axes[each.name]) for each in self.given}
        return (
            ". The ONNX file fixes sizes, and its constants may depend on them. If they do "
            f"not, pass shapes={shapes} to Session.from_onnx"
        )

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Runs the model.

        Args:
          arrays: the inputs in the shapes of the session.

        Returns:
          The outputs with the batch as the first axis.

        Raises:
          NotRun: nothing here can run the model.
        """
        free = {
            each.name: self._of_file(each, array)
            for each, array in zip(self.given, arrays, strict=True)
        }
        feeds = free | self._constants(arrays[0].shape[0])
        if self.program is not None:
            results = self.program([feeds[value.name] for value in self.model.graph.input])
            return [
                self._of_session(value.name, np.asarray(result))
                for value, result in zip(self.model.graph.output, results, strict=True)
            ]
        needed = self._needed_model()
        model = in_float32(needed, opset(needed))
        kinds = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
        feeds = {
            name: array.astype(tensors.dtype_of(kinds[name]))
            for name, array in feeds.items()
            if name in kinds
        }
        try:
            run = runner(model.SerializeToString(), model)
            results = run([feeds[value.name] for value in model.graph.input])
        except NotRun:
            raise
        except Exception as error:  # ONNX Runtime has exceptions of its own
            raise RuntimeError(str(error)) from error
        return [
            self._of_session(name, np.asarray(result))
            for name, result in zip(self.outputs, results, strict=True)
        ]

    def _needed_model(self) -> Any:
        """The part of the model that its outputs depend on, with the inputs of a session."""
        onnx = _optional.require("onnx", "an ONNX file", "onnx", "onnxruntime")
        nodes, read = nodes_before(self.model.graph.node, self.outputs)
        inputs = {each.name for each in self.every} & read
        own = {value.name: value for value in self.model.graph.output}
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        graph = model.graph
        parts = {
            "node": nodes,
            "input": [each for each in self.model.graph.input if each.name in inputs],
            "initializer": [each for each in self.model.graph.initializer if each.name in read],
            "output": [own.get(name) or onnx.ValueInfoProto(name=name) for name in self.outputs],
        }
        for name, elements in parts.items():
            graph.ClearField(name)
            getattr(graph, name).extend(elements)
        return model

    def _constants(self, batch: int) -> dict[str, Array]:
        """The inputs that do not change; a number stands for an array of it."""
        found = {}
        for each in self.every:
            if each.name in self.constants:
                array = self.constants[each.name]
                sizes = [batch if size is None else size for size in each.sizes]
                found[each.name] = array if array.ndim else np.full(sizes, array)
        return found

    def sizes(self) -> list[list[int]]:
        """The sizes of random inputs.

        Returns:
          For each input those of its axes in the session.
        """
        found = []
        for each in self.given:
            traced = self.axes[each.name]
            groups = [group for group in traced.groups if group in traced.axes]
            rows = self._rows()
            found.append(
                [1] * (traced.groups[0] not in traced.axes)
                + [
                    factor.size or factor.given or (rows if group is traced.groups[0] else STEPS)
                    for group in groups
                    for factor in group
                ]
            )
        return found

    def _rows(self) -> int:
        """The batch: 1 if a constant, such as an initial state, may have this batch."""
        for each in self.every:
            shape = np.shape(self.constants.get(each.name, 0))
            if any(
                want is None and size == 1 for want, size in zip(each.sizes, shape, strict=False)
            ):
                return 1
        return ROWS

    def _of_file(self, given: Given, array: Array) -> Array:
        """An input with the axes of the file."""
        traced = self.axes[given.name]
        if traced.groups[0] not in traced.axes:  # the file has no batch
            array = array[0]
        places = [traced.axes.index(group) for group in traced.groups if group in traced.axes]
        array = array.reshape(array.shape[: len(places)])
        rest = [k for k in range(traced.rank) if k not in places]
        full = array.reshape(array.shape + (1,) * len(rest))
        return np.transpose(full, np.argsort([*places, *rest]))

    def _of_session(self, name: str, array: Array) -> Array:
        """An output with the axes of the session: the batch first, others of size 1."""
        traced = self.axes[name]
        batch = real(traced.groups[0])
        if not any(real(product) == batch for product in traced.axes):
            features = [] if real(traced.groups[-1]) else [1]
            sizes = [n for n, p in zip(array.shape, traced.axes, strict=True) if real(p)]
            return array.reshape([1, *sizes, *features])
        first = [k for k, product in enumerate(traced.axes) if real(product) == batch][:1]
        rest = [k for k in range(traced.rank) if k not in first]
        sizes = [array.shape[k] for k in [*first, *rest] if real(traced.axes[k])]
        features = [] if real(traced.groups[-1]) else [1]
        return np.transpose(array, [*first, *rest]).reshape([*sizes, *features])

    def compare(self, session: Any) -> None:
        """Compares a session with the model.

        If nothing here can run the model, a warning says that it was not compared.

        Args:
          session: the session.

        Raises:
          ValueError: the model cannot run, or the session computes something else.
        """
        try:
            source_check.compare(
                *(session, self.run, self.name),
                sizes=self.sizes(),
                words=self.words,
                tolerance=self.tolerance,
            )
        except NotRun as error:
            warnings.warn(f"the session was not compared with the model: {error}", stacklevel=4)
