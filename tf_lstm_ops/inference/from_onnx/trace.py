"""Follows the nodes of an ONNX graph, and adds the layers that compute them."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from tf_lstm_ops._refusal import Refused
from tf_lstm_ops.inference import graph
from tf_lstm_ops.inference.from_onnx import filled, masks, quantized
from tf_lstm_ops.inference.from_onnx.inputs import Given, Plan, axes_of, steps
from tf_lstm_ops.inference.from_onnx.operators import OPERATORS
from tf_lstm_ops.inference.from_onnx.values import (
    Array,
    Call,
    Filled,
    Length,
    Missing,
    Operand,
    Operator,
    Quantized,
    Shifted,
    Squares,
    castable,
    kind_of,
    sum_of,
)
from tf_lstm_ops.inference.tracing.axes import AxesError, Factor, NotBatch, Traced, arranged, real
from tf_lstm_ops.onnx_graph import schemas
from tf_lstm_ops.onnx_graph.attributes import attributes, label, short, subgraphs
from tf_lstm_ops.onnx_graph.budget import Budget, budget_of
from tf_lstm_ops.onnx_graph.constants import Constants, evaluate, folds
from tf_lstm_ops.onnx_graph.float32 import float_types

_DOMAINS = ("", "ai.onnx")
_LOOPS = ("Loop", "Scan")
_NOT_COMPUTED = "a session does not compute "
_MOST_NAMED = 10  # reasons in a message
_MOST_TRIALS = 64  # of choices of the batch axes: 6 inputs with two each
_MOST_FOLLOWED = 1 << 16  # nodes of all trials, which are some seconds
_MOST_INPUTS = 64  # of the file of a session


@dataclasses.dataclass(frozen=True)
class Followed:
    """A graph with its layers.

    Attributes:
      inputs: the values of the inputs that the outputs depend on, by name.
      outputs: the values of the outputs, by name.
      axes: of each input and output the axis of the file that is the batch.
    """

    inputs: dict[str, graph.Value]
    outputs: dict[str, graph.Value]
    axes: dict[str, Traced]


def follow(
    model: Any,
    opset: int,
    given: Sequence[Given],
    constants: Mapping[str, Array],
    outputs: Sequence[str],
) -> Followed:
    """Follows a graph.

    An input's first axis or its second one is the batch, and any number of steps may stand for that
    of the file, or not: the first choice that suits all nodes holds.

    Args:
      model: the ``onnx.ModelProto``.
      opset: the version of the default domain.
      given: its inputs.
      constants: the values of further inputs.
      outputs: the names of the outputs.

    Returns:
      The graph.

    Raises:
      ValueError: a session does not compute a node. The message names it.
    """
    known = Constants(model.graph, opset=opset, budget=budget_of(model))
    _, read = nodes_before(model.graph.node, outputs)
    free = [each for each in given if each.name in read and each.name not in constants]
    if len(free) > _MOST_INPUTS:
        raise ValueError(
            f"the model has {len(free)} inputs; a session has at most {_MOST_INPUTS}. Pass "
            "constants={name: value} for inputs that stay the same, or choose outputs="
        )
    floats = castable(float_types(model))
    sizes_of = {each.name: each.sizes for each in given}
    fixed: dict[str, Operand] = {
        name: Filled(array, sizes_of[name]) if not array.ndim and sizes_of[name] else array
        for name, array in constants.items()
    }
    furthest: _Stopped | None = None
    best: Sequence[Plan] = ()
    followed = 0
    for choice, is_open in itertools.product(_choices(free), (True, False)):
        if followed > _MOST_FOLLOWED:
            break
        plan = [Plan(axis, is_open) for axis in choice]
        try:
            found = _Tracer(opset, known, floats).run(model.graph, free, plan, fixed, outputs)
            # A state [1, B, H] has no axis for its directions.
            drops = [
                each.batch_axis == 1 and steps(found.axes[given.name]) == 1
                for each, given in zip(plan, free, strict=True)
            ]
            if not any(drops):
                return found
            plan = [each._replace(drops=k) for each, k in zip(plan, drops, strict=True)]
            return _Tracer(opset, known, floats).run(model.graph, free, plan, fixed, outputs)
        except _Stopped as error:
            followed += error.count
            if furthest is None or error.rank > furthest.rank:
                furthest, best = error, plan
    assert furthest is not None
    every = _Tracer(opset, known, floats).missing(model.graph, free, best, fixed, outputs)
    further = [each for each in every if not isinstance(each.__cause__, AxesError)]
    raise Refused(_together([furthest, *further])) from furthest.__cause__


def _together(refused: Sequence[_Stopped]) -> str:
    """The refusals of nodes, each once; of nodes that are refused for the same reason the first."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in refused:
        nodes = found.setdefault((each.kind, each.why), [])
        nodes += [each.where] if each.where not in nodes else []
    if len(found) == 1:
        return str(refused[0])
    lines = []
    for (_, why), nodes in [*found.items()][:_MOST_NAMED]:
        more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
        where = nodes[0].removeprefix(_NOT_COMPUTED)
        lines.append(f"{where}{more}: {why}" if where else why)
    hidden = len(found) - len(lines)
    lines += [f"and {hidden} more reasons"] if hidden else []
    return f"{_NOT_COMPUTED}these nodes: " + "; ".join(lines)


def _choices(given: Sequence[Given]) -> Iterator[tuple[int | None, ...]]:
    """The axis of the batch of each input, the likely ones first."""
    every = range(len(given))
    possible = [k for k in reversed(every) if given[k].may_be_second]
    seconds = (
        chosen
        for count in range(len(possible) + 1)
        for chosen in itertools.combinations(possible, count)
    )
    # Of many inputs most are states [1, B, H].
    likely = [tuple(possible), tuple(k for k in possible if k)]
    found = [*itertools.islice(seconds, _MOST_TRIALS), *likely]
    yield from dict.fromkeys(tuple(int(k in chosen) for k in every) for chosen in found)
    if len(given) == 1 and len(given[0].sizes) == 2 and given[0].is_float:  # frames of one sequence
        yield (None,)


class _Stopped(Refused):
    """A node that a session does not compute.

    Args:
      where: the node.
      why: the reason.
      count: how many nodes were followed.
      kind: the operator of the node.
    """

    def __init__(self, where: str, why: str, count: int, kind: str = "") -> None:
        super().__init__(f"{where}: {why}" if where else why)
        self.where, self.why, self.count, self.kind = where, why, count, kind

    @property
    def rank(self) -> tuple[int, bool]:
        """How much it says: another batch is a reason only if there is no other."""
        return self.count, not isinstance(self.__cause__, NotBatch)


class _Tracer:
    """What the names of a graph stand for.

    Args:
      opset: the version of the default domain.
      constants: those of the graph.
      floats: the types that `Cast` can name for floats without an effect.
    """

    def __init__(self, opset: int, constants: Constants, floats: frozenset[int]) -> None:
        self._opset, self._constants, self._floats = opset, constants, floats
        self._budget = Budget(constants.budget.left)  # of this trial
        self._values: dict[str, Operand] = {}
        self._count = 0
        self._missing: list[_Stopped] | None = None

    def missing(
        self,
        proto: Any,
        given: Sequence[Given],
        plan: Sequence[Plan],
        constants: Mapping[str, Operand],
        outputs: Sequence[str],
    ) -> list[_Stopped]:
        """All nodes that a session does not compute, without those that need what these make."""
        self._missing = []
        with contextlib.suppress(_Stopped):
            self.run(proto, given, plan, constants, outputs)
        return self._missing

    def run(
        self,
        proto: Any,
        given: Sequence[Given],
        plan: Sequence[Plan],
        constants: Mapping[str, Operand],
        outputs: Sequence[str],
    ) -> Followed:
        """Follows the nodes that the outputs depend on."""
        pairs = [*zip(given, plan, strict=True)]
        batched = [(each, own.batch_axis) for each, own in pairs if own.batch_axis is not None]
        sizes = {each.sizes[axis] for each, axis in batched if each.sizes}
        if all(each.is_open[axis] for each, axis in batched if each.sizes):
            sizes = {None} if None in sizes else sizes
        if len(sizes) > 1:
            shown = sorted("any" if size is None else str(size) for size in sizes)
            raise _Stopped("", f"its inputs have different sizes of the batch: {shown}", -1)
        batch = Factor(next(iter(sizes), None), is_batch=True)
        arrays = {each.name: axes_of(each, own, batch) for each, own in pairs}
        typed = {each.name: (each.dtype, arrays[each.name]) for each in given}
        self._values = {**arrays, **masks.of_inputs(typed), **constants}
        self._follow(proto.node, outputs)
        results = {name: self._output(name) for name in outputs}
        values = {name: value for name, (_, value) in results.items()}
        return Followed(
            {name: array.value for name, array in arrays.items()},
            values,
            arrays | {name: array for name, (array, _) in results.items()},
        )

    def _follow(self, nodes: Sequence[Any], outputs: Sequence[str]) -> None:
        needed, read = nodes_before(nodes, outputs)
        loops = [node for node in needed if node.op_type in _LOOPS]
        for node in needed if self._missing is not None else loops[:1] or needed:
            try:
                found = self._results(node, [name in read for name in node.output])
            except _Stopped:  # in a branch
                raise
            except ValueError as error:
                where = f"{_NOT_COMPUTED}{label(node)}"
                stopped = _Stopped(where, str(error), self._count, node.op_type)
                if self._missing is None:
                    raise stopped from error
                stopped.__cause__ = error
                self._missing.append(stopped)
                found = [Missing()] * len(node.output)
            self._values.update(
                {n: value for n, value in zip(node.output, found, strict=False) if n}
            )
            self._count += 1

    def _get(self, name: str) -> Operand:
        if not name:
            return None
        if name not in self._values:
            found = self._constants.get(name)
            if found is None:
                raise Refused(f"its operand {short(name)} is not computed")
            self._values[name] = found
        return self._values[name]

    def _results(self, node: Any, used: Sequence[bool]) -> Sequence[Operand]:
        """What the outputs of a node stand for."""
        is_own = node.domain not in _DOMAINS
        if is_own and f"{node.domain}.{node.op_type}" not in OPERATORS:
            _refuse_operator(node, f" of the domain {short(node.domain)}")
        if not is_own and "." in node.op_type:  # the key of an operator of another domain
            _refuse_operator(node)
        if node.op_type in _LOOPS:
            raise Refused(
                "it is a loop over steps. Export the recurrent layer as a node LSTM, GRU or RNN"
            )
        if not is_own:
            schemas.check(node, self._opset)
        operands = [self._get(name) for name in node.input]
        if any(isinstance(each, Missing) for each in operands):
            return [Missing()] * len(node.output)
        if node.op_type == "If":
            return self._branch(node, operands)
        if all(each is None or isinstance(each, np.ndarray) for each in operands):
            folded = self._folded(node, operands)  # type: ignore[arg-type]
            if folded is not None:
                return folded
        operator = OPERATORS.get(f"{node.domain}.{node.op_type}" if is_own else node.op_type)
        if operator is None or not operator.of_squares:
            operands = [sum_of(each) if isinstance(each, Squares) else each for each in operands]
        given = schemas.attributes_of(node, self._opset)
        call = Call(
            node, given, operands, self._opset, used, label(node), self._floats, self._budget
        )
        found = self._computed(call, operator)
        schemas.require_read(node, given, self._opset, operator.ignored if operator else ())
        return found

    def _folded(self, node: Any, operands: Sequence[Array | None]) -> Sequence[Operand] | None:
        """The outputs of a node of constants; None if the node is not computed here."""
        if folds(node) and self._constants.get(node.output[0]) is not None:
            return [self._constants.get(name) for name in node.output]
        return evaluate(node, operands, self._opset, self._budget)

    def _computed(self, call: Call, operator: Operator | None) -> Sequence[Operand]:
        """What the outputs of an operator stand for."""
        found = masks.computed(call)
        if found is None:
            found = filled.computed(call, operator is not None and operator.moves)
        if any(isinstance(each, Quantized) for each in call.operands):
            found = quantized.computed(call)
        if found is not None:
            return found
        if operator is None:
            _refuse_operator(call.node)
        if not operator.of_integers and any(
            isinstance(each, Traced) and not each.is_float for each in call.operands
        ):
            raise Refused("it computes with integers of an input")
        return operator.function(call)

    def _branch(self, node: Any, operands: Sequence[Operand]) -> Sequence[Operand]:
        """The outputs of a branch whose condition is constant."""
        condition = operands[0]
        if not isinstance(condition, np.ndarray) or condition.size != 1:
            raise Refused(
                "its condition depends on the input. If it depends on one that stays the same, "
                "pass constants={name: value}"
            )
        name = "then_branch" if condition.ravel()[0] else "else_branch"
        branch = attributes(node)[name]
        outer = self._values, self._constants
        made = {name for each in branch.node for name in each.output}
        made |= {tensor.name for tensor in branch.initializer}
        self._values = {name: each for name, each in outer[0].items() if name not in made}
        self._constants = Constants(branch, self._constants)
        outputs = [value.name for value in branch.output]
        self._follow(branch.node, outputs)
        found = [self._get(name) for name in outputs]
        self._values, self._constants = outer
        return found

    def _output(self, name: str) -> tuple[Traced, graph.Value]:
        """An output with the batch as its first axis."""
        where = f"the output {short(name)}"
        try:
            array = self._get(name)
        except ValueError as error:
            raise _Stopped(f"{where} is not known", str(error), self._count) from error
        if isinstance(array, Squares):
            try:
                array = sum_of(array)
            except AxesError as error:
                raise _Stopped(f"{where} cannot be had", str(error), self._count) from error
        if isinstance(array, Length | Quantized | Shifted):
            raise _Stopped("", f"{where} is {kind_of(array)}", self._count)
        if not isinstance(array, Traced):
            raise _Stopped("", f"{where} does not depend on an input", self._count)
        if not array.is_float:
            raise _Stopped("", f"{where} has integers", self._count)
        batch, *groups = array.groups
        if any({*real(batch)} & {*p} and real(p) != real(batch) for p in array.axes):
            why = "the batch and other axes are one axis of it"
            raise _Stopped(f"{where} cannot be had", why, self._count)
        rest = [p for p in array.axes if real(p) and real(p) != real(batch)]
        # The axis of features stays, also where the model drops it since its size is 1.
        features = [] if real(groups[-1]) else [groups[-1]]
        try:
            return array, arranged(array, [batch, *rest, *features])
        except AxesError as error:
            raise _Stopped(f"{where} cannot be had", str(error), self._count) from error


def _refuse_operator(node: Any, domain: str = "") -> NoReturn:
    raise Refused(
        f"a session has no operator {short(node.op_type)}{domain}. Keep this part of the model in "
        "ONNX Runtime, or choose outputs= before it"
    )


def nodes_before(nodes: Sequence[Any], outputs: Sequence[str]) -> tuple[list[Any], set[str]]:
    """The nodes that outputs depend on.

    Args:
      nodes: of a graph, in its order.
      outputs: names of values.

    Returns:
      The nodes in order, and the names that these read, with those of the outputs.
    """
    read, needed = {*outputs}, []
    for node in reversed(nodes):
        if read.intersection(name for name in node.output if name):
            needed.append(node)
            read.update(_read_by(node))
    return needed[::-1], read


def _read_by(node: Any) -> Iterator[str]:
    """The names that a node and the graphs in it read."""
    yield from filter(None, node.input)
    for _, part in subgraphs(node):
        for each in part.node:
            yield from _read_by(each)
        yield from (value.name for value in part.output)
