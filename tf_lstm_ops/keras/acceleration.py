"""The layers of ``keras.layers`` on the fused ops, without a change of a program."""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tf_lstm_ops import (
    _deviation,
    _keras_private,
    _placement,
    _targets,
    _tf_private,
    composite,
    converters,
)
from tf_lstm_ops._keras_private import Tracer
from tf_lstm_ops.keras import bidirectional, directions, op_arguments, options, single_layer
from tf_lstm_ops.keras.fused import FusedRNN

# The cells that the ops know. A layer with a cell of another class, also of a derived one, runs the
# code of Keras.
_CELLS = (keras.layers.LSTMCell, keras.layers.GRUCell, keras.layers.SimpleRNNCell)
# The classes that define their own loop over the steps. SimpleRNN has that of RNN.
_CLASSES_WITH_LOOP = (keras.layers.LSTM, keras.layers.GRU, keras.layers.RNN)
# In a Bidirectional: classes that compute nothing around their loop.
_KINDS = (*_CLASSES_WITH_LOOP, keras.layers.SimpleRNN)
_MERGE_MODES = ("concat", "sum", "ave", "mul", None)


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
                _keras_private.trace_again()

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

    Returns:
      An `Acceleration`, with the methods ``restore`` and ``report``. A warning says if this version
      of Keras cannot be accelerated; then nothing changes.
    """
    acceleration = Acceleration()
    with _lock:
        if not _active:
            try:
                for kind in _CLASSES_WITH_LOOP:
                    _replace(kind, _keras_private.LOOP, functools.partial(_loop, kind))
                _replace(keras.layers.Bidirectional, "call", _bidirectional_call)
            except RuntimeError as error:
                while _restore:
                    _restore.pop()()
                warnings.warn(f"accelerate() has no effect: {error}", RuntimeWarning, stacklevel=2)
                return acceleration
            _keras_private.trace_again()
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
        if isinstance(self, FusedRNN):
            return run_stock()
        if kind is keras.layers.RNN and isinstance(self, (keras.layers.LSTM, keras.layers.GRU)):
            return run_stock()  # the loop of the class itself has found that it cannot
        traced_by = _traced_by()
        states = initial_state if isinstance(initial_state, list | tuple) else [initial_state]
        reason = None
        if not is_joined:
            reason = _prepared(_why_stock, self, sequences, states, mask, training, traced_by)
        if traced_by is not Tracer.SHAPES:
            op = options.op_of(self) if reason is None else None
            with _lock:
                for acceleration in _active:
                    acceleration._note(self, op, reason)
        if reason is not None:
            return run_stock()
        return single_layer.run_op(self, sequences, states, mask, training)

    return inner_loop


def _bidirectional_call(stock: Callable[..., Any]) -> Callable[..., Any]:
    """The call of Bidirectional, by one op where it computes the same."""

    def call(
        self: Any, sequences: Any, initial_state: Any = None, mask: Any = None, training: Any = None
    ) -> Any:
        given = (self, sequences, initial_state, mask, training)
        is_other = not _is_on() or isinstance(self, bidirectional.Bidirectional)
        if is_other or _prepared(_why_apart, *given, _traced_by()):
            return stock(*given)
        token = _is_joined.set(True)
        try:
            return bidirectional.run_joined(*given)
        except directions.NotJoinedError:  # another thread has ended the acceleration
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


def _traced_by() -> Tracer | None:
    """What traces a call; None in eager code."""
    if tf.executing_eagerly():
        return None
    return _keras_private.tracer(_tf_private.callers_in_trace())


def _why_stock(
    layer: Any,
    sequences: Any,
    states: Any,
    mask: Any,
    training: Any,
    traced_by: Tracer | None,
) -> str | None:
    """Why a call runs Keras' code; None if the fused op computes the same."""
    if type(layer.cell) not in _CELLS:
        return f"its cell is a {type(layer.cell).__name__}"
    if tf.config.get_visible_devices("GPU") or _placement.on_metal():
        return "a GPU is visible"
    if traced_by is Tracer.OTHER and not _tf_private.trace_has_own_tape():
        return "a tf.function that may become a file"
    if composite.plain_ops_required() or converters.plain_ops_required():
        return "XLA or a converter traces the call"
    if isinstance(sequences, tf.RaggedTensor) or sequences.shape[1] == 0:
        return "ragged sequences, or no steps"
    if not (training is None or isinstance(training, bool | int)):
        return "training is a tensor"
    return (
        _why_no_op(layer)
        or _why_unrolled(layer, mask)
        or _why_not_these_shapes(layer, sequences, states, mask)
    )


def _why_no_op(layer: Any) -> str | None:
    """Why the options of a layer have no op."""
    if reason := _deviation.of_cell(layer):
        return reason
    if not (_keras_private.is_of_keras(type(layer.cell)) and layer.cell.built):
        return "its cell is not built, or methods of the class of its cell were replaced"
    if layer.cell.activity_regularizer is not None:
        return "its cell has an activity_regularizer"
    if layer.compute_dtype != layer.cell.compute_dtype:
        return f"its cell computes in {layer.cell.compute_dtype}"
    if getattr(layer.cell, "dtype_policy", layer.dtype_policy).quantization_mode is not None:
        return "its cell is quantized"
    return options.why_not(layer, _targets.CPU)


def _why_not_these_shapes(layer: Any, x: Any, states: Any, mask: Any) -> str | None:
    """Keras broadcasts more shapes than the ops do."""
    rows, steps = x.shape[:2]
    size = layer.cell.units
    names = single_layer.state_names(options.op_of(layer))
    fits = len(states) == len(names) and all(
        state.shape.rank == 2 and state.shape[0] in (1, None, rows) and state.shape[1] == size
        for state in states
    )
    if not fits or x.shape.rank != 3:
        return "initial states of other shapes than [B, H]"
    mask = mask[0] if isinstance(mask, list | tuple) and mask else mask
    if mask is None:
        return None
    of_mask = tf.convert_to_tensor(mask).shape
    is_matrix = of_mask.rank == 2 or (of_mask.rank == 3 and of_mask[2] == 1)
    if not is_matrix or of_mask[0] not in (1, None, rows) or of_mask[1] not in (None, steps):
        return "a mask of another shape than [B, T]"
    return None


def _why_unrolled(layer: Any, mask: Any) -> str | None:
    masks = [m for m in (mask if isinstance(mask, list | tuple) else [mask]) if m is not None]
    if not (masks and op_arguments.unrolled_differs(layer)):
        return None
    return "unroll=True, with which Keras computes something else for masked steps"


def _why_apart(
    wrapper: Any,
    sequences: Any,
    initial_state: Any,
    mask: Any,
    training: Any,
    traced_by: Tracer | None,
) -> str | None:
    """Why each layer of a Bidirectional computes its own direction."""
    if wrapper.merge_mode not in _MERGE_MODES:
        return f"merge_mode={wrapper.merge_mode}"
    reason = bidirectional.why_apart(wrapper, _KINDS, _why_not_alone)
    if reason or bidirectional.must_be_apart(wrapper, sequences):
        return reason or "a call of each layer"
    layers = (wrapper.forward_layer, wrapper.backward_layer)
    for k, layer in enumerate(layers):
        if initial_state is None:
            states = layer.states if layer.stateful else layer.get_initial_state(1)
        else:
            half = len(initial_state) // 2
            states = [tf.convert_to_tensor(s) for s in initial_state[k * half :][:half]]
        if reason := _why_stock(layer, sequences, states, mask, training, traced_by):
            return reason
    return None


def _why_not_alone(layer: Any) -> str | None:
    if type(layer.cell) not in _CELLS:
        return f"its cell is a {type(layer.cell).__name__}"
    return _deviation.of(layer) or _why_no_op(layer)
