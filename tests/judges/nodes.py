"""Nodes LSTM, GRU and RNN with every option of ONNX's specification, as cases.

The options are those that OpenVINO's tests of its importer (onnx_import_rnn) and ONNX Runtime's
tests of its kernels (deep_cpu_lstm, deep_cpu_gru, rnn) vary; the nodes are drawn here, and nothing
of those files is copied. Results are those of oracle.py. `singles` has nodes that differ from a
plain one in one option; `table` has 400 nodes with many options, such that each pair of values of
two options occurs.
"""

import functools
import itertools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from judges import oracle
from judges.cases import Case, of_node
from judges.oracle import Array

DIRECTIONS = {"forward": "forward", "reverse": "reverse", "both": "bidirectional"}
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
COUNTS = {"LSTM": 150, "GRU": 125, "RNN": 125}
OPSET = 22
STEP = ["X", "W", "R", "B", "sequence_lens", "initial_h"]
INPUTS = {"LSTM": [*STEP, "initial_c", "P"], "GRU": STEP, "RNN": STEP}
# Batch, steps, inputs and units.
SIZES = {
    "b1t1i1h1": (1, 1, 1, 1),
    "b3t5i2h4": (3, 5, 2, 4),
    "b2t1i3h5": (2, 1, 3, 5),
    "b1t7i4h3": (1, 7, 4, 3),
    "b5t4i1h7": (5, 4, 1, 7),
    "b4t6i9h16": (4, 6, 9, 16),
    "b2t10i3h17": (2, 10, 3, 17),
    "b7t3i8h1": (7, 3, 8, 1),
    "b3t2i5h33": (3, 2, 5, 33),
}
# f, g and h of one direction with alpha and beta; None: that of the specification, or none. A GRU
# has the first two, an RNN the second one.
Function = tuple[str, float | None, float | None]


def plain(*names: str) -> list[Function]:
    return [(name, None, None) for name in names]


FUNCTIONS: dict[str, list[Function]] = {
    "": plain("Sigmoid", "Tanh", "Tanh"),
    "relu": plain("Sigmoid", "Relu", "Relu"),
    "softsign": plain("Sigmoid", "Softsign", "Tanh"),
    "softplus": plain("Sigmoid", "Softplus", "Softsign"),
    "sigmoid": plain("Tanh", "Sigmoid", "Sigmoid"),
    "hard": [("HardSigmoid", 0.3, 0.45), ("ScaledTanh", 1.2, 0.8), ("Elu", 0.7, None)],
    "hard_default": plain("HardSigmoid", "HardSigmoid", "Tanh"),
    "hard_half": [("HardSigmoid", 0.4, 0.5), ("Elu", None, None), ("LeakyRelu", None, None)],
    "affine": [("Sigmoid", None, None), ("Affine", 0.6, 0.05), ("Affine", 0.9, -0.1)],
    "leaky": [("Sigmoid", None, None), ("LeakyRelu", 0.1, None), ("LeakyRelu", 0.3, None)],
    "threshold": [("Sigmoid", None, None), ("ThresholdedRelu", 0.2, None), ("Tanh", None, None)],
    "scaled": [("ScaledTanh", 0.8, 0.5), ("Elu", 0.5, None), ("ScaledTanh", 1.1, 0.9)],
}
# Initial states: inputs, constants of one row for all, of each row, or an expanded parameter.
STATES = {
    "": {},
    "h0": {"initial_h": "input"},
    "h0c0": {"initial_h": "input", "initial_c": "input"},
    "c0": {"initial_c": "input"},
    "constant": {"initial_h": "constant", "initial_c": "constant"},
    "constant_c": {"initial_c": "constant"},
    "h0_constant_c": {"initial_h": "input", "initial_c": "constant"},
    "rows": {"initial_h": "rows", "initial_c": "rows"},
    "expand": {"initial_h": "expand", "initial_c": "expand"},
}
OUTPUTS = {"LSTM": ["Y", "Y_h", "Y_c", "Y+Y_h", "Y+Y_c", "Y_h+Y_c", "Y+Y_h+Y_c"]}


FLAGS = {"peepholes": "peep", "input_forget": "coupled", "linear_before_reset": "linear"}


def options_of(op: str) -> dict[str, list[Any]]:
    """The values of each option."""
    is_lstm = op == "LSTM"
    return {
        "direction": [*DIRECTIONS],
        "lengths": ["", "full", "ragged", "zero"],
        "clip": [0.0, 0.3, 0.8],
        "functions": [*FUNCTIONS],
        "other": ["", "softsign", "hard", "leaky"],  # of the second direction; "": as the first
        "states": [s for s in STATES if is_lstm or not s.endswith(("c0", "_c"))],
        "bias": [True, False],
        "layout": [0, 1],
        "outputs": OUTPUTS.get(op, ["Y", "Y_h", "Y+Y_h"]),
        "size": [*SIZES],
        **({"peepholes": [False, True], "input_forget": [0, 1]} if is_lstm else {}),
        **({"linear_before_reset": [0, 1]} if op == "GRU" else {}),
    }


def name_of(op: str, chosen: Mapping[str, Any]) -> str:
    """A name that says what is not the default."""
    parts = [op, chosen["direction"], chosen["size"]]
    parts.append("/".join(filter(None, [chosen["functions"], chosen["other"]])))
    parts.append(chosen["lengths"] and f"{chosen['lengths']}_lengths")
    parts.append(chosen["clip"] and f"clip{chosen['clip']}")
    parts.append(chosen["states"])
    parts += ["" if chosen["bias"] else "no_bias", chosen["layout"] and "layout1"]
    parts += [shown for name, shown in FLAGS.items() if chosen.get(name)]
    return "-".join(filter(None, [*parts, chosen["outputs"]]))


def pairs(chosen: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    return itertools.combinations(sorted(chosen.items()), 2)


def is_meant(chosen: Mapping[str, Any]) -> bool:
    """Whether functions of a second direction have one."""
    return not chosen.get("other") or chosen.get("direction") == "both"


def all_pairs(options: Mapping[str, list[Any]]) -> list[tuple[Any, ...]]:
    """Each pair of values of two options that a node can have."""
    return [
        tuple(zip(names, values, strict=True))
        for names in itertools.combinations(sorted(options), 2)
        for values in itertools.product(*(options[name] for name in names))
        if "direction" not in names or is_meant(dict(zip(names, values, strict=True)))
    ]


def choices(op: str) -> list[dict[str, Any]]:
    """The options of each node of an operator. Each node has a pair of values that those before it
    have not, while there is one: of 20 such nodes that which has most of them."""
    rng = np.random.default_rng(zlib.crc32(op.encode()))
    options = options_of(op)
    missing = dict.fromkeys(all_pairs(options))
    found = []
    while len(found) < COUNTS[op]:
        fixed = next(iter(missing), ())
        drawn = [
            {name: values[rng.integers(len(values))] for name, values in options.items()}
            | dict(fixed)
            for _ in range(20)
        ]
        for each in drawn:
            if not is_meant(each):
                is_fixed = "other" in dict(fixed)
                each |= {"direction": "both"} if is_fixed else {"other": ""}
        best = max(drawn, key=lambda each: sum(pair in missing for pair in pairs(each)))
        for pair in pairs(best):
            missing.pop(pair, None)
        found.append(best)
    return found


def functions_of(op: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of the functions of all directions. Numbers that are defaults are left out
    where no other follows."""
    each = [chosen["functions"]]
    if chosen["direction"] == "both":
        each.append(chosen["other"] or chosen["functions"])
    if not any(each):
        return {}
    kept = slice(1, 2) if op == "RNN" else slice(len(oracle.DEFAULTS[op]))
    functions = [function for own in each for function in FUNCTIONS[own][kept]]
    alphas = [(alpha, oracle.ALPHA[name]) for name, alpha, _ in functions if name in oracle.ALPHA]
    betas = [(beta, oracle.BETA[name]) for name, _, beta in functions if name in oracle.BETA]
    found = {"activations": [name for name, *_ in functions]}
    found |= {"activation_alpha": numbers(alphas), "activation_beta": numbers(betas)}
    return {name: value for name, value in found.items() if value}


def numbers(given: Sequence[tuple[float | None, float | None]]) -> list[float]:
    """Numbers, or their defaults where others follow."""
    while given and given[-1][0] is None:
        given = given[:-1]
    return [float(default if number is None else number) for number, default in given]


def lengths_of(kind: str, batch: int, steps: int, rng: np.random.Generator) -> Array:
    """Lengths in any order, of which one is the number of steps. The only row of a batch is empty
    in the smallest node only, since nothing else shows there."""
    lengths = rng.integers(1, steps + 1, batch).astype(np.int32)
    if kind == "full":
        lengths[:] = steps
    lengths[rng.integers(batch)] = steps
    if kind == "zero" and (batch > 1 or steps == 1):
        lengths[rng.integers(batch)] = 0
    return lengths


class Graph:
    """A model that is being made: its inputs, constants and nodes."""

    def __init__(self, op: str, chosen: Mapping[str, Any], rng: np.random.Generator) -> None:
        self.op, self.chosen, self.rng = op, chosen, rng
        self.batch, self.steps, self.features, self.units = SIZES[chosen["size"]]
        self.directions = 1 + (chosen["direction"] == "both")
        self.inputs: dict[str, Array] = {}
        self.constants: dict[str, Array] = {}
        self.named: dict[str, Array] = {}  # what the node gets
        self.names: dict[str, str] = {}  # of it in the graph
        self.nodes: list[onnx.NodeProto] = []

    def draw(self, scale: float, *shape: int) -> Array:
        return (scale * self.rng.standard_normal(shape)).astype(np.float32)

    def add(self, name: str, value: Array, is_input: bool = False) -> None:
        (self.inputs if is_input else self.constants)[name] = value
        self.named[name], self.names[name] = value, name

    def in_layout(self, array: Array) -> Array:
        """Of [T, B, I] or [D, B, H]."""
        return array.swapaxes(0, 1) if self.chosen["layout"] else array

    def add_weights(self) -> None:
        D, rows = self.directions, GATES[self.op] * self.units
        self.add("W", self.draw(0.5, D, rows, self.features))
        # So that h stays about 1 with every function.
        self.add("R", self.draw(0.5 / np.sqrt(self.units), D, rows, self.units))
        if self.chosen["bias"]:
            self.add("B", self.draw(0.3, D, 2 * rows))
        if self.chosen.get("peepholes"):
            self.add("P", self.draw(0.3, D, 3 * self.units))

    def add_state(self, name: str, kind: str) -> None:
        shape = (self.directions, self.batch, self.units)
        if kind in ("constant", "expand"):
            state = np.broadcast_to(self.draw(0.7, shape[0], 1, shape[2]), shape)
        else:
            state = self.draw(0.7, *shape)
        self.add(name, np.ascontiguousarray(self.in_layout(state)), is_input=kind == "input")
        if kind == "expand":
            self.expand(name, self.in_layout(state[:, :1]))

    def expand(self, name: str, row: Array) -> None:
        """A parameter with which all rows begin, as PyTorch's exporter writes `expand`."""
        sizes = list(row.shape)
        axis = 0 if self.chosen["layout"] else 1
        self.constants |= {name: row, f"{name}_place": np.array([axis])}
        for k in {0, 1, 2} - {axis}:
            self.constants[f"{name}_size{k}"] = np.array([sizes[k]])
        parts = [f"{name}_batch" if k == axis else f"{name}_size{k}" for k in range(3)]
        self.names[name] = f"{name}_expanded"
        self.nodes += [
            helper.make_node("Shape", ["X"], [f"{name}_shape"]),
            helper.make_node("Gather", [f"{name}_shape", f"{name}_place"], [f"{name}_batch"]),
            helper.make_node("Concat", parts, [f"{name}_sizes"], axis=0),
            helper.make_node("Expand", [name, f"{name}_sizes"], [f"{name}_expanded"]),
        ]

    def value_info(self, name: str) -> onnx.ValueInfoProto:
        """Of an input. Constants of each row fix the batch."""
        batch = self.batch if self.chosen["states"] == "rows" else "B"
        if name == "sequence_lens":
            return helper.make_tensor_value_info(name, onnx.TensorProto.INT32, [batch])
        outer, size = ("T", self.features) if name == "X" else (self.directions, self.units)
        axes = [batch, outer, size] if self.chosen["layout"] else [outer, batch, size]
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, axes)


def trimmed(names: list[str]) -> list[str]:
    while not names[-1]:
        names = names[:-1]
    return names


def case(op: str, chosen: Mapping[str, Any]) -> Case:
    """The model, inputs and results of a node."""
    name = name_of(op, chosen)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    graph = Graph(op, chosen, rng)
    graph.add_weights()
    x = graph.draw(1.0, graph.steps, graph.batch, graph.features)
    graph.add("X", np.ascontiguousarray(graph.in_layout(x)), is_input=True)
    if chosen["lengths"]:
        lengths = lengths_of(chosen["lengths"], graph.batch, graph.steps, rng)
        graph.add("sequence_lens", lengths, is_input=True)
    for state, kind in STATES[chosen["states"]].items():
        if op == "LSTM" or state == "initial_h":
            graph.add_state(state, kind)
    attributes = {"hidden_size": graph.units, "direction": DIRECTIONS[chosen["direction"]]}
    attributes |= functions_of(op, chosen)
    plain_ones = ("clip", "layout", "input_forget", "linear_before_reset")
    attributes |= {each: chosen[each] for each in plain_ones if chosen.get(each)}
    results = oracle.run(op, graph.named, attributes)
    asked = chosen["outputs"].split("+")
    inputs = trimmed([graph.names.get(each, "") for each in INPUTS[op]])
    outputs = trimmed([each if each in asked else "" for each in results])
    graph.nodes.append(helper.make_node(op, inputs, outputs, name=op.lower(), **attributes))
    proto = helper.make_graph(
        graph.nodes,
        "g",
        [graph.value_info(each) for each in graph.inputs],
        [helper.make_tensor_value_info(each, onnx.TensorProto.FLOAT, None) for each in asked],
        [numpy_helper.from_array(value, each) for each, value in graph.constants.items()],
    )
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    return of_node(name, model, graph.inputs, [results[each] for each in asked], graph.named)


# What a session refuses: parts of the messages, and why.
REFUSED = {
    "initial states differs between the rows": "Constant initial states that differ between the "
    "rows of the batch: a session serves batches of any size.",
}
Nodes = dict[str, tuple[str, dict[str, Any]]]  # operators and options by the names of nodes


@functools.cache
def table() -> Nodes:
    """The nodes with many options."""
    every = ((op, closed(chosen)) for op in COUNTS for chosen in choices(op))
    return {name_of(op, chosen): (op, chosen) for op, chosen in every}


def closed(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Options of which the text says everything: not what a row without steps makes of its initial
    states. ONNX Runtime returns zeros, a session these states."""
    is_open = chosen["lengths"] == "zero" and chosen["states"]
    return {**chosen, "lengths": "ragged"} if is_open else dict(chosen)


@functools.cache
def singles() -> dict[str, Nodes]:
    """By each option the nodes that have one value of it and defaults of all others, for each
    operator and direction."""
    found: dict[str, Nodes] = {"": {}}
    for op, direction in itertools.product(COUNTS, DIRECTIONS):
        options = options_of(op)
        plain_node = {name: values[0] for name, values in options.items() if name != "direction"}
        plain_node |= {
            "direction": direction,
            "outputs": options["outputs"][-1],
            "size": "b3t5i2h4",
        }
        found[""][name_of(op, plain_node)] = op, plain_node
        for option, values in options.items():
            for value in values if option != "direction" else []:
                chosen = plain_node | {option: value}
                if chosen != plain_node and is_meant(chosen):
                    found.setdefault(option, {})[name_of(op, chosen)] = op, chosen
    return found


def all_nodes() -> Nodes:
    return {**table(), **{k: v for nodes in singles().values() for k, v in nodes.items()}}
