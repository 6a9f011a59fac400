"""The ops of the Keras layers as nodes LSTM, GRU and RNN of ONNX, for the converter tf2onnx.

Equations and layouts: ONNX' operators of these names, version 14. linear_before_reset of a GRU is
Keras' reset_after.
B batch, T time, I input size, H units.

ONNX has no masks, but a number of valid steps for each row, the first ones. So the valid steps of a
row move to its front, in the order in which the layer computes them, and the outputs move back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tf_lstm_ops import _activations, _cells, weights

# Positions of the inputs that our ops share.
_X, _MASK, _INITIAL_H = 0, 1, 2

# Activations that ONNX' recurrent nodes have: the name, alpha and beta. ONNX Runtime takes the next
# value of a node's lists for each function that has an alpha or a beta, so others must have none.
_ACTIVATIONS = {f.name: f.onnx_cell for f in _activations.TABLE if f.is_of_cells and f.onnx_cell}
ACTIVATIONS = frozenset(_ACTIVATIONS)


def handlers() -> dict[str, tuple[Any, list[Any]]]:
    """The argument custom_op_handlers of tf2onnx.

    Returns:
      A function for each op of a Keras layer.
    """
    gru = dict.fromkeys(("KerasGRU", "KerasResetBeforeGRU"), _gru)
    functions = {"KerasLSTM": _lstm, **gru, "KerasSimpleRNN": _rnn}
    return {f"TfLstmOps>{op}": (function, []) for op, function in functions.items()}


def _lstm(graph: Any, node: Any, _name: str, _args: Any) -> None:
    arrays = [a for a in (_constant(node, k) for k in (4, 5, 6, 7)) if a.size]
    attributes = _functions(node, _cells.LSTM)
    _replace(graph, node, "LSTM", weights.LSTMWeights.from_keras(arrays).to_onnx(), attributes)


def _gru(graph: Any, node: Any, _name: str, _args: Any) -> None:
    arrays = [a for a in (_constant(node, k) for k in (3, 4, 5)) if a.size]
    attributes = _functions(node, _cells.GRU)
    attributes["linear_before_reset"] = int(node.type == "TfLstmOps>KerasGRU")
    _replace(graph, node, "GRU", weights.GRUWeights.from_keras(arrays).to_onnx(), attributes)


def _rnn(graph: Any, node: Any, _name: str, _args: Any) -> None:
    arrays = [a for a in (_constant(node, k) for k in (3, 4, 5)) if a.size]
    name = node.get_attr_str("activation")
    attributes: dict[str, Any] = {}
    if name != "tanh":  # that of an ONNX RNN without the attribute
        attributes = {"activations": [_ACTIVATIONS[name][0]]}
    _replace(graph, node, "RNN", weights.RNNWeights.from_keras(arrays).to_onnx(), attributes)


def _functions(node: Any, cell: _cells.Cell) -> dict[str, Any]:
    """The attributes for the activations of a node; none for those that it has by default."""
    names = [node.get_attr_str(argument) for argument in cell.activations]
    if names == [_activations.DEFAULTS[argument] for argument in cell.activations]:
        return {}
    used, alpha, beta = zip(*(_ACTIVATIONS[name] for name in names), strict=True)
    lists = {"activation_alpha": alpha, "activation_beta": beta}
    given = {key: [v for v in values if v is not None] for key, values in lists.items()}
    return {"activations": used, **{key: values for key, values in given.items() if values}}


def _constant(node: Any, index: int) -> np.ndarray:
    value = node.inputs[index]
    while value.type == "Identity":
        value = value.inputs[0]
    if not value.is_const():
        raise ValueError(f"the weights of {node.name} are not constants")
    return value.get_tensor_value(as_list=False)


def _replace(graph: Any, node: Any, kind: str, onnx: weights.Onnx, attributes: Any) -> None:
    """Puts an ONNX node and what surrounds it in the place of our op."""
    build, units = _Builder(graph, node), onnx.R.shape[2]
    backwards = bool(node.get_attr_value("go_backwards"))
    mask = None
    if graph.get_shape(node.input[_MASK]) != [0]:
        mask = _Mask(build, node.input[_MASK], backwards)
    steps = node.input[_X] if mask is None else mask.pack(node.input[_X])
    states = node.input[_INITIAL_H : _INITIAL_H + (2 if kind == "LSTM" else 1)]
    inputs = [
        build.add("Transpose", [steps], perm=[1, 0, 2]),
        *(build.constant(value) for value in onnx[:3]),
        "" if mask is None else mask.lengths,
        *(build.unsqueeze(state, 0) for state in states),
        *([] if onnx.P is None else [build.constant(onnx.P)]),
    ]
    attributes["direction"] = "reverse" if backwards and mask is None else "forward"
    made = graph.make_node(
        kind,
        inputs,
        attr={"hidden_size": units, **attributes},
        output_count=1 + len(states),
        name=build.name(kind),
        infer_shape_dtype=False,
    )
    for value in made.output:
        graph.set_dtype(value, graph.get_dtype(node.input[_X]))
    y = build.add("Transpose", [build.squeeze(made.output[0], 1)], perm=[1, 0, 2])
    final = [build.squeeze(state, 0) for state in made.output[1:]]
    values = _results(build, node, mask, y, final)
    for ours, value in zip(node.output, values, strict=False):  # without the reserve
        graph.set_shape(value, graph.get_shape(ours))
        graph.replace_all_inputs(ours, value)
        if ours in graph.outputs:
            build.output(value, ours)
    graph.remove_node(node.name)


def _results(build: _Builder, node: Any, mask: _Mask | None, y: str, final: list[str]) -> list[str]:
    """The outputs of our op but the reserve, from those of the ONNX node, y [B, T, H]."""
    backwards = bool(node.get_attr_value("go_backwards"))
    zero_output = bool(node.get_attr_value("zero_output_for_mask"))
    last = final[0]
    if mask is not None:
        last = mask.last_output(y, zero_output)
        states = node.input[_INITIAL_H : _INITIAL_H + len(final)]
        final = mask.final_states(y, final, states)
    if not node.get_attr_value("return_sequences"):
        return [build.unsqueeze(last, 1), *final]
    if mask is not None:
        y = mask.unpack(y, zero_output)
    return [build.reverse(y) if backwards else y, *final]


class _Builder:
    """Adds nodes to a graph of tf2onnx. Values are names of tensors."""

    def __init__(self, graph: Any, node: Any) -> None:
        self._graph, self._node, self._count = graph, node, 0
        self._dtype = graph.get_dtype(node.input[_X])

    def name(self, suffix: str) -> str:
        self._count += 1
        return f"{self._node.name.replace('>', '_')}/{suffix}_{self._count}"

    def constant(self, value: Any) -> str:
        return self._graph.make_const(self.name("constant"), np.asarray(value)).output[0]

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def add(
        self, kind: str, inputs: list[str], dtype: Any = None, output: int = 0, **attributes: Any
    ) -> str:
        """A node; returns one of its outputs, which has the dtype of the layer by default."""
        made = self._graph.make_node(
            kind,
            inputs,
            attr=attributes,
            output_count=output + 1,
            name=self.name(kind),
            infer_shape_dtype=False,
        )
        self._graph.set_dtype(made.output[output], dtype or self._dtype)
        return made.output[output]

    def output(self, value: str, name: str) -> None:
        """Makes a value an output of the graph."""
        graph = self._graph
        dtype, shape = graph.get_dtype(value), graph.get_shape(value)
        graph.make_node("Identity", [value], outputs=[name], dtypes=[dtype], shapes=[shape])

    def unsqueeze(self, value: str, axis: int) -> str:
        dtype = self._graph.get_dtype(value)
        return self.add("Unsqueeze", [value, self.integers(axis)], dtype)

    def squeeze(self, value: str, axis: int) -> str:
        return self.add("Squeeze", [value, self.integers(axis)])

    def where(self, condition: str, value: str) -> str:
        """The value where the condition is true, else zero."""
        return self.add("Where", [condition, value, self.constant(np.float32(0))])

    def reverse(self, value: str) -> str:
        """[B, T, H] in reverse order of T."""
        slices = [self.integers(v) for v in (-1, np.iinfo(np.int64).min, 1, -1)]
        return self.add("Slice", [value, *slices])


class _Mask:
    """Moves the valid steps of each row to its front and back.

    A runtime that ignores the lengths, such as OpenVINO with unknown sizes, computes further steps
    after the valid ones. Only the final cell state depends on the lengths.
    """

    def __init__(self, build: _Builder, mask: str, backwards: bool) -> None:
        from onnx import TensorProto

        self._build, self._mask, self._backwards = build, mask, backwards
        self._bool, self._int64 = TensorProto.BOOL, TensorProto.INT64
        valid = self._integer("Cast", mask, to=self._int64)
        # The number of valid steps that are computed up to each step, itself included, [B, T]; and
        # of the whole row, [B].
        axis = build.constant(np.int64(1))  # of rank 0, unlike the axes of other operators
        self._rank = self._integer("CumSum", valid, axis, reverse=int(backwards))
        self._count = self._integer("ReduceSum", valid, build.integers(1), keepdims=0)
        self.lengths = build.add("Cast", [self._count], TensorProto.INT32, to=TensorProto.INT32)

    def _integer(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self._build.add(kind, list(inputs), self._int64, **attributes)

    def pack(self, x: str) -> str:
        """[B, T, I] with the valid steps of each row in front, in the order of computation."""
        build = self._build
        last = build.integers(np.iinfo(np.int64).max)
        order = self._integer("Where", self._mask, self._rank, last)
        bounds = [build.integers(v) for v in (1, 2, 0)]
        time = self._integer("Slice", self._integer("Shape", self._mask), *bounds)
        steps = self._integer("TopK", order, time, output=1, axis=1, largest=0)
        return self._gather(x, steps)

    def unpack(self, y: str, zero_output: bool) -> str:
        """The output of each step, [B, T, H], from the packed outputs.

        Where the mask is False it is zero, or the output that was computed before.
        """
        build = self._build
        zero = build.integers(0)
        before = self._integer("Max", self._integer("Sub", self._rank, build.integers(1)), zero)
        known = build.add("Greater", [self._rank, zero], self._bool)
        valid = self._mask if zero_output else known
        return build.where(build.unsqueeze(valid, 2), self._gather(y, before))

    def last_output(self, y: str, zero_output: bool) -> str:
        """The output [B, H] of the step that is computed last, from the packed outputs."""
        build, valid = self._build, self._any_valid()
        if zero_output:
            bounds = (0, 1) if self._backwards else (-1, np.iinfo(np.int64).max)
            slices = [build.integers(v) for v in (*bounds, 1)]
            valid = build.add("Slice", [self._mask, *slices], self._bool)
        return build.where(valid, self._last(y))

    def final_states(self, y: str, final: list[str], initial: list[str]) -> list[str]:
        """The final states [B, H]; the initial states of a row without valid steps."""
        valid, states = self._any_valid(), [self._last(y), *final[1:]]
        pairs = zip(states, initial, strict=True)
        return [self._build.add("Where", [valid, *pair]) for pair in pairs]

    def _last(self, y: str) -> str:
        """The last valid one of the packed outputs, [B, H]; any output where there is none."""
        build = self._build
        last = self._integer(
            "Max", self._integer("Sub", self._count, build.integers(1)), build.integers(0)
        )
        return build.squeeze(self._gather(y, build.unsqueeze(last, 1)), 1)

    def _any_valid(self) -> str:
        """[B, 1]."""
        count = self._build.unsqueeze(self._count, 1)
        return self._build.add("Greater", [count, self._build.integers(0)], self._bool)

    def _gather(self, values: str, index: str) -> str:
        """values[b, index[b, t]] for values [B, T, N] and index [B, T]."""
        index = self._build.unsqueeze(index, 2)
        return self._build.add("GatherND", [values, index], batch_dims=1)
