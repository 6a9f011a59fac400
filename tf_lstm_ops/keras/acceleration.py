"""The layers of ``keras.layers`` on the fused ops, without a change of a program."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import keras

from tf_lstm_ops import _keras_private
from tf_lstm_ops._keras_private import Tracer
from tf_lstm_ops.keras import options, stock_layer

if keras.backend.backend() == "tensorflow":
    from tf_lstm_ops.keras import tensorflow_loop as loop
else:
    from tf_lstm_ops.keras.torch_backend import loop  # type: ignore[no-redef]


class LayerReport(NamedTuple):
    """What the calls of a layer ran.

    Attributes:
      layer: the layer's name.
      kind: the name of its class.
      op: the fused op that some of its calls ran; None if none did.
      fused_calls: the number of calls that ran it. A call that is traced counts once.
      stock_calls: the number of calls that ran Keras' code.
      reasons: why they ran Keras' code.
    """

    layer: str
    kind: str
    op: str | None
    fused_calls: int
    stock_calls: int
    reasons: tuple[str, ...]


@dataclass
class _Record:
    """The calls of one layer."""

    layer: str
    kind: str
    op: str | None = None
    fused: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


class Report(list[LayerReport]):
    """The recurrent layers that were called, in the order of their first calls.

    Its text is a table. The property `summary` is one line.
    """

    @property
    def summary(self) -> str:
        """How many of the layers ran fused ops."""
        count = sum(row.op is not None for row in self)
        return f"{count} of {len(self)} recurrent layers ran fused ops"

    def __str__(self) -> str:
        rows = [("layer", "class", "fused op", "calls", "calls of Keras' code, and why")]
        for row in self:
            why = f"{row.stock_calls}: {'; '.join(row.reasons)}" if row.stock_calls else "0"
            rows.append((row.layer, row.kind, row.op or "none", str(row.fused_calls), why))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, self.summary])


_lock = threading.RLock()


def _renew_lock() -> None:
    """In a child of fork(): another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)

_active: list[Acceleration] = []  # those not restored yet
_suspended: ContextVar[bool] = ContextVar("suspended", default=False)
# Whether a Bidirectional has found that the ops of its layers become one.
_is_joined: ContextVar[bool] = ContextVar("is_joined", default=False)
_restore: list[Callable[[], None]] = []  # what puts the methods of Keras back


class Acceleration:
    """What `accelerate` returns. As a context manager it ends with the block."""

    def __init__(self) -> None:
        self._records: list[_Record] = []
        # By the id of a layer, which may be unhashable.
        self._record_of: dict[int, tuple[weakref.ref[Any], _Record]] = {}

    def __enter__(self) -> Acceleration:
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    def restore(self) -> None:
        """Ends the acceleration, unless another call of `accelerate` is still in effect.

        Functions that ``fit``, ``evaluate`` and ``predict`` have traced are traced again. Other
        traced functions stay as they are.
        """
        with _lock:
            if self not in _active:
                return
            _active.remove(self)
            if not _active:
                while _restore:
                    _restore.pop()()
                loop.trace_again()

    def report(self) -> Report:
        """What the recurrent layers of Keras ran between the call of `accelerate` and `restore`.

        Returns:
          A list with a `LayerReport` for each layer. Its text is a table.
        """
        with _lock:
            return Report(
                LayerReport(r.layer, r.kind, r.op, r.fused, r.reasons.total(), tuple(r.reasons))
                for r in self._records
            )

    def _note(self, layer: Any, op: str | None, reason: str | None) -> None:
        """Notes that a call of a layer runs an op, or why it runs Keras' code."""
        known, record = self._record_of.get(id(layer), (None, None))
        if known is None or record is None or known() is not layer:
            record = _Record(layer.name, type(layer).__name__)
            self._record_of[id(layer)] = weakref.ref(layer), record
            self._records.append(record)
        if reason is None:
            record.op = op
            record.fused += 1
        else:
            record.reasons[reason] += 1


def accelerate() -> Acceleration:
    """Makes the recurrent layers of Keras run the fused ops from now on.

    >>> import keras
    >>> import numpy as np
    >>> from tf_lstm_ops.keras import accelerate
    >>> with accelerate() as acceleration:
    ...     y = keras.layers.LSTM(4, name="first")(np.ones((2, 5, 3), "float32"))
    >>> print(acceleration.report().summary)
    1 of 1 recurrent layers ran fused ops

    It has effect on LSTM, GRU and SimpleRNN of ``keras.layers``, on ``RNN`` of one of their cells,
    also in ``Bidirectional`` and ``TimeDistributed``, and on subclasses with another ``call``, of
    all models of the process. Classes, names, weights, files and results stay those of Keras. A
    layer runs Keras' code where the ops do not compute the same, on a machine with a GPU, under
    XLA, and in what may become a file: in a ``tf.function`` that is not traced by ``fit``,
    ``evaluate`` or ``predict``, and has no ``tf.GradientTape`` of its own.

    Functions that ``fit``, ``evaluate`` and ``predict`` have traced before are traced again. Other
    functions that were traced before stay as they are. A second call has no further effect.

    With Keras on PyTorch the C library computes the layers, of tensors on the CPU. Second
    derivatives are an error there.

    Returns:
      An `Acceleration`, with the methods ``restore`` and ``report``. A warning says if this version
      of Keras cannot be accelerated; then nothing changes.
    """
    acceleration = Acceleration()
    with _lock:
        if not _active:
            try:
                for kind in stock_layer.CLASSES_WITH_LOOP:
                    _replace(kind, _keras_private.LOOP, functools.partial(_loop, kind))
                if loop.JOINS_DIRECTIONS:
                    _replace(keras.layers.Bidirectional, "call", _bidirectional_call)
            except (RuntimeError, OSError) as error:
                while _restore:
                    _restore.pop()()
                warnings.warn(f"accelerate() has no effect: {error}", RuntimeWarning, stacklevel=2)
                return acceleration
            loop.trace_again()
        _active.append(acceleration)
    return acceleration


@contextlib.contextmanager
def without_acceleration() -> Iterator[None]:
    """A context in which this thread's calls of layers run Keras' code.

    Yields:
      None.
    """
    token = _suspended.set(True)
    try:
        yield
    finally:
        _suspended.reset(token)


def _replace(kind: type, name: str, make: Callable[..., Any]) -> None:
    _restore.append(_keras_private.replace_method(kind, name, make))


def _loop(kind: type, stock: Callable[..., Any]) -> Callable[..., Any]:
    """The loop of a class of Keras, by a fused op where it computes the same."""

    def inner_loop(
        self: Any, sequences: Any, initial_state: Any, mask: Any, training: Any = False
    ) -> Any:
        run_stock = functools.partial(stock, self, sequences, initial_state, mask, training)
        is_joined = _is_joined.get()
        if not is_joined and not _is_on():
            return run_stock()
        if loop.is_own(self):
            return run_stock()
        if kind is keras.layers.RNN and isinstance(self, (keras.layers.LSTM, keras.layers.GRU)):
            return run_stock()  # the loop of the class itself has found that it cannot
        traced_by = loop.traced_by(sequences)
        states = initial_state if isinstance(initial_state, list | tuple) else [initial_state]
        reason = None
        if not is_joined:
            given = (self, sequences, states, mask, training, traced_by)
            reason = stock_layer.why_other_cell(self) or _prepared(loop.why_stock, *given)
        if traced_by is not Tracer.SHAPES:
            op = options.op_of(self) if reason is None else None
            with _lock:
                for acceleration in _active:
                    acceleration._note(self, op, reason)
        if reason is not None:
            return run_stock()
        return loop.run(self, sequences, states, mask, training)

    return loop.guarded(stock, inner_loop)


def _bidirectional_call(stock: Callable[..., Any]) -> Callable[..., Any]:
    """The call of Bidirectional, by one op where it computes the same."""

    def call(
        self: Any, sequences: Any, initial_state: Any = None, mask: Any = None, training: Any = None
    ) -> Any:
        given = (self, sequences, initial_state, mask, training)
        is_other = not _is_on() or loop.is_own(self)
        if is_other or _prepared(loop.why_apart, *given, loop.traced_by(sequences)):
            return stock(*given)
        token = _is_joined.set(True)
        try:
            return loop.run_joined(*given)
        except loop.NotJoinedError:  # another thread has ended the acceleration
            pass
        finally:
            _is_joined.reset(token)
        return stock(*given)

    return call


def _is_on() -> bool:
    return bool(_active) and not _suspended.get()


def _prepared(why: Callable[..., str | None], *arguments: Any) -> str | None:
    """What a function returns; the text of an exception if it raises one."""
    try:
        return why(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
