"""Masks of steps, and what graphs compute with them.

A mask is a boolean input, or computed from indices, features or lengths. What a graph makes of it
has no values in a session: it is a `Term`, whose text is the expression. The texts that count are
those of `onnx_graph.packing`, and of Masking and GlobalAveragePooling1D as tf2onnx writes them.
What reads any other term is refused.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tf_lstm_ops._cells import BY_COMMON
from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference import file, graph, layers
from tf_lstm_ops.inference.from_onnx.mask_texts import (
    BUILD,
    INITIAL,
    IS_NUMBER,
    IS_ZERO,
    MASK,
    OUTPUT,
    TABLE,
    TIME,
    Text,
    X,
)
from tf_lstm_ops.inference.from_onnx.values import (
    Call,
    OfMask,
    Operand,
    Size,
    Steps,
    is_of,
    of_axis,
    sizes_array,
)
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers.products import mask_of
from tf_lstm_ops.inference.tracing.axes import (
    Factor,
    Product,
    Traced,
    real,
    settled,
    size_of,
    with_groups,
)
from tf_lstm_ops.onnx_graph.attributes import attributes

_MOST = 256  # nodes of an expression
_WIDE = (1, 6, 7, 11)  # the numbers of ONNX's types that have all numbers of steps
_ANY = 1  # the number of a combination of masks
_UNKNOWN = "it computes with a mask of steps in another way than export.onnx writes"


@dataclasses.dataclass(eq=False)
class Mask:
    """Which steps count.

    Attributes:
      axes: the batch and time.
      make: the mask as a value for an array whose value has the axes [B, T, N].
      masked: the features of which a Masking layer made it, and what the layer makes of them.
    """

    axes: tuple[Product, ...]
    make: Callable[[Traced], Value]
    masked: tuple[Traced, Value] | None = None

    def fits(self, x: Traced) -> bool:
        """Whether its axes are the first ones of an array.

        Args:
          x: the array.

        Returns:
          True for [B, T, N] with the batch and time of the mask.
        """
        is_sequence = x.rank == 3 and x.is_float and real(x.axes[0]) == real(x.groups[0])
        return is_sequence and all(map(_are_same, self.axes, x.axes))


@dataclasses.dataclass(frozen=True)
class Term(OfMask):
    """What a graph makes of a mask.

    Attributes:
      mask: the mask.
      text: the expression.
      count: the number of nodes in it.
      x: the array in it.
      run: the recurrent layer whose outputs are in it.
    """

    mask: Mask
    text: Text
    count: int = 1
    x: Traced | None = None
    run: Run | None = None


@dataclasses.dataclass(eq=False)
class Run:
    """A recurrent layer with a mask. It gets the outputs that something reads.

    Attributes:
      node: the layer.
      x: its input, whose value has the axes [B, T, I].
      backwards: whether it computes the last step first.
      initial: its initial states, [1, B, H].
      units: H.
      flags: what the outputs need that are read; None before the first one.
    """

    node: Any
    x: Traced
    backwards: bool
    initial: Sequence[Operand]
    units: int
    flags: int | None = None

    def result(self, name: str, backwards: bool | None, which: int) -> Traced:
        """An output of the node.

        Args:
          name, backwards, which: an entry of `mask_texts.TABLE`.

        Returns:
          The output as an array of the session.

        Raises:
          Refused: the layer cannot return it, too.
        """
        if backwards not in (None, self.backwards):
            refuse(_UNKNOWN)
        batch, time, features = self.x.groups[0], self.x.groups[1], (Factor(self.units),)
        flags, output = file.RETURNS_STATE, 1 + which
        groups: tuple[Product, ...] = (batch, features)
        if name == "state":
            self.node.outputs = 1 + len(self.initial)
        else:
            flags = file.ZERO_WHERE_MASKED if which else 0
            flags |= file.RETURNS_SEQUENCE if name == "sequence" else 0
            if self.flags not in (None, flags):
                refuse("it reads outputs of a layer of which another node reads others")
            self.flags, output = flags, 0
            groups = (batch, time, features) if name == "sequence" else groups
        layer = self.node.layer
        self.node.layer = dataclasses.replace(layer, flags=layer.flags | flags)
        axes = ((), *groups) if name == "state" else groups
        return Traced(Value(self.node, output), groups, axes)


# Where masks begin.


def of_inputs(given: Mapping[str, tuple[str, Traced]]) -> dict[str, Operand]:
    """Boolean inputs, which a session takes as indices 0 and 1.

    Args:
      given: the type and the array of each input.

    Returns:
      Masks by name.
    """
    return {
        name: Term(_of_input(array), MASK)
        for name, (dtype, array) in given.items()
        if dtype == "bool" and array.rank == 2
    }


def _of_input(array: Traced) -> Mask:
    mask = mask_of(array.value)
    return Mask(array.axes, lambda x: mask)


def _of_indices(indices: Traced) -> Mask:
    def make(x: Traced) -> Value:
        seen, pending = set[int](), [x.value]
        while pending:
            node: Any = pending.pop().node
            if id(node) in seen or isinstance(node, file.Input):
                continue
            seen.add(id(node))
            if node.layer.kind == file.EMBEDDING and node.operands[0].key == indices.value.key:
                flags = node.layer.flags | file.RETURNS_MASK
                node.layer, node.outputs = dataclasses.replace(node.layer, flags=flags), 2
                return Value(node, 1)
            pending += [value for value in node.operands if value is not None]
        refuse("its mask is that of indices, whose table is not before this layer")

    return Mask(indices.axes, make)


def _of_features(x: Traced, number: float) -> Mask:
    masked = layers.Masking(number)(with_groups(x, x.axes).value)
    return Mask(x.axes[:2], lambda _: masked.mask, (x, masked.with_mask(None)))


def _of_lengths(lengths: Traced, time: Product) -> Mask:
    record = file.Layer("lengths", file.MASK_OF_LENGTHS)
    return Mask((lengths.axes[0], time), lambda x: graph.node(record, [lengths.value, x.value])[0])


def _of_any(masks: Sequence[Mask]) -> Mask:
    record = file.Layer("mask", file.MASKS, ints=(_ANY,))
    if not all(map(_are_same, masks[0].axes, masks[1].axes)):
        refuse("it combines masks of different sequences")
    return Mask(masks[0].axes, lambda x: graph.node(record, [each.make(x) for each in masks])[0])


def _are_same(one: Product, other: Product) -> bool:
    """Whether two axes have the same size, which a call of the session checks where it decides."""
    one, other = real(one), real(other)
    if one == other:
        return True
    if any(factor.is_batch for factor in (*one, *other)):
        return False
    if size_of(one) is None and size_of(other) is None:
        return len(one) == len(other) == 1 and one[0].given == other[0].given
    return settled(one) is not None and settled(one) == settled(other)


def _begun(call: Call) -> Operand:
    """What a mask begins with; None for another node."""
    kind, first, second = call.node.op_type, call.operand(0), call.operand(1)
    number = second if isinstance(second, np.ndarray) and second.dtype != object else None
    if kind == "Equal" and isinstance(first, Traced) and number is not None and not number.ndim:
        is_batch = real(first.axes[0]) == real(first.groups[0])
        if first.is_float and first.rank == 3 and is_batch and np.isfinite(number):
            return Term(_of_features(first, number.item()), IS_NUMBER)
        if not first.is_float and first.rank == 2 and first.value.is_given and number == 0:
            return Term(_of_indices(first), IS_ZERO)
    if kind == "Range":
        bounds = [each for each in call.operands if isinstance(each, np.ndarray) and each.size == 1]
        start, size, by = [each.item() for each in bounds] if len(bounds) == 3 else (0, 0, 0)
        return Steps(size) if isinstance(size, Size) and start == 0 and by == 1 else None
    if kind == "Cast" and isinstance(first, Steps):
        return first if call.attributes["to"] in _WIDE else None
    if kind == "Less" and isinstance(second, Traced):
        time: Product | None = first.size.product if isinstance(first, Steps) else None
        if isinstance(first, np.ndarray) and np.array_equal(first, np.arange(first.size)):
            time = (Factor(first.size),)
        is_given = not second.is_float and second.value.is_given and second.rank == 2
        if time and is_given and real(second.axes[0]) == real(second.groups[0]):
            return None if real(second.axes[1]) else Term(_of_lengths(second, time), MASK)
    return None


# What is made of them.


def computed(call: Call) -> Sequence[Operand] | None:
    """The outputs of a node that makes or reads a mask.

    Args:
      call: the node.

    Returns:
      What they stand for; None for another node, and a recurrent one.

    Raises:
      Refused: a session does not compute it.
    """
    kind = call.node.op_type
    terms = [each for each in call.operands if isinstance(each, Term)]
    if kind in BY_COMMON:
        return None
    if not terms:
        found = _begun(call)
        return None if found is None else [found]
    if kind == "Identity":
        return terms
    if kind == "Shape":
        if terms[0].text != MASK or attributes(call.node):
            refuse(_UNKNOWN)
        return [sizes_array([*map(of_axis, terms[0].mask.axes)])]
    if kind == "Or" and [each.text for each in terms] == [MASK, MASK]:
        return [Term(_of_any([each.mask for each in terms]), MASK)]
    return _expressions(call, terms)


def _expressions(call: Call, terms: Sequence[Term]) -> list[Operand]:
    """The terms that a node makes of others, or the arrays that they are."""
    mask, count = terms[0].mask, 1 + sum(each.count for each in terms)
    runs = {id(each.run): each.run for each in terms if each.run is not None}
    arrays = [*(each.x for each in terms), *call.operands]
    found = {id(each): each for each in arrays if isinstance(each, Traced)}
    run, x = next(iter(runs.values()), None), next(iter(found.values()), None)
    is_known = all(each.mask is mask for each in terms) and count <= _MOST and len(runs) <= 1
    if not is_known or (run is None and (len(found) > 1 or not (x is None or mask.fits(x)))):
        refuse(_UNKNOWN)
    given = attributes(call.node)
    if not all(isinstance(value, int | float | str | list) for value in given.values()):
        refuse(_UNKNOWN)
    call.attributes.ignore()  # the text has them
    texts = [_texts(call, k, mask, run) for k in range(len(call.operands))]
    made = []
    for output in range(len(call.used)):
        every = [
            BUILD.add(call.node.op_type, operands, output=output, **given)
            for operands in itertools.product(*texts)
        ]
        text = next((each for each in every if each in TABLE), every[0])
        made.append(_array(Term(mask, text, count, x, run)))
    return made


def _texts(call: Call, index: int, mask: Mask, run: Run | None) -> list[Text]:
    """What an operand may be in a text."""
    operand = call.operand(index)
    if isinstance(operand, Term):
        return [operand.text]
    is_else = call.node.op_type == "Where" and index == 2
    if is_else and run is not None and getattr(operand, "ndim", 1):
        states = range(len(run.initial))
        return [(INITIAL, k) for k in states if run.initial[k] is operand] or refuse(_UNKNOWN)
    if isinstance(operand, Traced):
        return [X]
    if isinstance(operand, np.ndarray) and call.node.op_type == "TopK" and operand.shape == (1,):
        return [TIME] if is_of(operand.item(), mask.axes[1]) else refuse(_UNKNOWN)
    if not isinstance(operand, np.ndarray) or operand.dtype == object:
        refuse(_UNKNOWN)
    return [BUILD.constant(operand)]


def _array(term: Term) -> Operand:
    """The array that a term is; else the term itself."""
    name, *rest = TABLE.get(term.text, ("",))
    if term.run is not None and rest:
        return term.run.result(name, *rest)
    x = term.x
    if name == "masked" and term.mask.masked is not None and x is term.mask.masked[0]:
        x, masked = term.mask.masked
        return Traced(masked, x.axes, x.axes)
    if name == "mean" and x is not None:
        x = with_groups(x, x.axes)
        value = layers.GlobalAveragePooling1D()(x.value.with_mask(term.mask.make(x)))
        return Traced(value, (x.axes[0], x.axes[2]), (x.axes[0], x.axes[2]))
    return term


# Recurrent nodes.


def packed(call: Call, index: int, lengths: int) -> tuple[Traced, Mask, bool] | None:
    """The input of a recurrent node whose steps have moved by a mask.

    Args:
      call: the node.
      index: the operand that is its input.
      lengths: that of the number of valid steps.

    Returns:
      The input [B, T, I] before, the mask, and whether the last step is computed first; None for
      another input.

    Raises:
      Refused: it has moved in another way than `export.onnx` writes.
    """
    x, other = call.operand(index), call.operand(lengths)
    if not isinstance(x, Term):
        return None
    name, *direction = TABLE.get(x.text, ("",))
    is_own = isinstance(other, Term) and other.mask is x.mask
    if name != "packed" or not is_own or TABLE.get(other.text) != ("lengths",) or x.x is None:  # type: ignore[union-attr]
        refuse(_UNKNOWN)
    return with_groups(x.x, x.x.axes), x.mask, direction[0]


def outputs(run: Run, mask: Mask, count: int) -> list[Operand]:
    """What the outputs of a recurrent node stand for whose steps have moved.

    Args:
      run: its layer.
      mask: which steps count.
      count: of outputs.

    Returns:
      The outputs.
    """
    return [Term(mask, (OUTPUT, k), run=run) for k in range(count)]
