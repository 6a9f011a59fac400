"""The ops of the Keras layers as nodes LSTM, GRU and RNN of ONNX, for the converter tf2onnx.

Equations and layouts: ONNX' operators of these names, version 14. linear_before_reset of a GRU is
Keras' reset_after.
B batch, T time, I input size, H units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_lstm_ops import _activations, _cells, weights
from tf_lstm_ops.onnx_graph.packing import Builder, Packing

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
        mask = Packing(build, node.input[_MASK], backwards)
    x = node.input[_X]
    states = node.input[_INITIAL_H : _INITIAL_H + (2 if kind == "LSTM" else 1)]
    states = [build.unsqueeze(state, 0) for state in states]
    inputs = [
        build.add("Transpose", [x], perm=[1, 0, 2]) if mask is None else mask.pack(x),
        *(build.constant(value) for value in onnx[:3]),
        "" if mask is None else mask.lengths,
        *states,
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
    values = _results(build, node, mask, made.output, states)
    for ours, value in zip(node.output, values, strict=False):  # without the reserve
        graph.set_shape(value, graph.get_shape(ours))
        graph.replace_all_inputs(ours, value)
        if ours in graph.outputs:
            build.output(value, ours)
    graph.remove_node(node.name)


def _results(
    build: _Builder, node: Any, mask: Packing | None, outputs: list[str], initial: list[str]
) -> list[str]:
    """The outputs of our op but the reserve, from those of the ONNX node."""
    backwards = bool(node.get_attr_value("go_backwards"))
    zero_output = bool(node.get_attr_value("zero_output_for_mask"))
    y, *states = outputs
    if mask is not None:
        states = mask.states([y, *states[1:]], initial)
    final = [build.squeeze(state, 0) for state in states]
    if not node.get_attr_value("return_sequences"):
        last = final[0] if mask is None else mask.last(y, zero_output)
        return [build.unsqueeze(last, 1), *final]
    y = build.batch_first(y) if mask is None else mask.sequence(y, zero_output)
    return [build.reverse(y) if backwards else y, *final]


class _Builder(Builder):
    """Adds nodes to a graph of tf2onnx. Values are names of tensors."""

    def __init__(self, graph: Any, node: Any) -> None:
        self._graph, self._node, self._count = graph, node, 0
        self._dtype = graph.get_dtype(node.input[_X])

    def name(self, suffix: str) -> str:
        self._count += 1
        return f"{self._node.name.replace('>', '_')}/{suffix}_{self._count}"

    def constant(self, value: Any) -> str:
        return self._graph.make_const(self.name("constant"), np.asarray(value)).output[0]

    def add(
        self,
        kind: str,
        inputs: Sequence[str],
        dtype: Any = None,
        output: int = 0,
        **attributes: Any,
    ) -> str:
        """A node; returns one of its outputs, which has the dtype of the layer by default."""
        made = self._graph.make_node(
            kind,
            [*inputs],
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

    def reverse(self, value: str) -> str:
        """[B, T, H] in reverse order of T."""
        slices = [self.integers(v) for v in (-1, np.iinfo(np.int64).min, 1, -1)]
        return self.add("Slice", [value, *slices])
