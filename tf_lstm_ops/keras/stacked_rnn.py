"""The base class of StackedLSTM and StackedGRU."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tf_lstm_ops import _deviation, raw_ops
from tf_lstm_ops.keras import call_checks, stacked_clips, stacked_masks
from tf_lstm_ops.keras.fused import FusedRNN
from tf_lstm_ops.keras.op_inputs import is_recorded
from tf_lstm_ops.keras.stacked_cells import StackedCells
from tf_lstm_ops.keras.stacked_weights import Cell, WeightOptions, params_of
from tf_lstm_ops.weights import GRUWeights, LSTMWeights

if TYPE_CHECKING:
    from typing_extensions import Self

# The arguments that are attributes of the same name.
_CONFIGURED = (
    *("units", "num_layers", "bidirectional", "dropout", "dropout_per", "use_bias"),
    *("return_sequences", "return_state", "go_backwards", "stateful", "seed"),
)


class StackedRNN(FusedRNN):
    """The base class: several layers, of one or two directions each, as one ``keras.layers.RNN``.

    Args:
      units, num_layers, bidirectional, dropout, dropout_per, use_bias, go_backwards,
        zero_output_for_mask, seed, projection_size, unit_forget_bias, **kwargs: as of
        `StackedLSTM`.

    Raises:
      ValueError: an argument is out of range.
    """

    _mode: str  # rnn_mode of the op
    _weights_class: Any

    def __init__(
        self,
        units: int,
        num_layers: int,
        *,
        bidirectional: bool = False,
        dropout: float = 0.0,
        dropout_per: str = "step",
        use_bias: bool = True,
        go_backwards: bool = False,
        zero_output_for_mask: bool | None = None,
        seed: int | None = None,
        projection_size: int | None = None,
        unit_forget_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        options = {name: kwargs.pop(name) for name in WeightOptions.NAMES if name in kwargs}
        _require_valid(dropout, dropout_per)
        units, num_layers = _positive("units", units), _positive("num_layers", num_layers)
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout applies between the layers of a stack, and num_layers=1 has none. "
                f"Received: dropout={dropout}",
                stacklevel=3,
            )
        if go_backwards and bidirectional:
            raise ValueError("go_backwards=True needs bidirectional=False")
        cell = StackedCells(
            self._mode,
            units,
            num_layers,
            directions=2 if bidirectional else 1,
            projection_size=projection_size,
            use_bias=use_bias,
            unit_forget_bias=unit_forget_bias,
            **options,
            dtype=kwargs.get("dtype"),
            trainable=kwargs.get("trainable", True),
            name="cells",
        )
        self._zeroes_masked: bool | None = None
        super().__init__(
            cell, go_backwards=go_backwards, zero_output_for_mask=zero_output_for_mask, **kwargs
        )
        self.units, self.num_layers, self.bidirectional = units, num_layers, bool(bidirectional)
        self.dropout, self.dropout_per, self.use_bias = float(dropout), dropout_per, use_bias
        self.projection_size, self.seed = projection_size, seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        # Keras writes no seeds to files, and TensorFlow finds variables of modules only.
        self._seed_module = tf.Module()
        self._seed_module.seed_state = self.seed_generator.state.value
        self.input_spec = keras.layers.InputSpec(ndim=3)

    @property
    def directions(self) -> int:
        """The number of directions, 1 or 2."""
        return self.cell.directions

    @property
    def zero_output_for_mask(self) -> bool:
        """Whether the output is zero at masked steps."""
        if self._zeroes_masked is None:
            return self.directions == 2 and self.return_sequences
        return self._zeroes_masked

    @zero_output_for_mask.setter
    def zero_output_for_mask(self, value: bool | None) -> None:
        self._zeroes_masked = value

    def call(
        self,
        sequences: Any,
        initial_state: Any = None,
        mask: tf.Tensor | None = None,
        training: bool = False,
    ) -> Any:
        """Runs the layers; ``__call__`` calls it.

        Args:
          sequences: [B, T, I]; or a RaggedTensor [B, (steps), I].
          initial_state: [B, P] and [B, H] tensors: the states of each direction of each layer, in
            the order layer * directions + direction; None: zeros, or the last ones if stateful.
          mask: [B, T] boolean, ragged or padded on the right where sequences is ragged; or None.
          training: whether dropout applies.

        Returns:
          The last output [B, D*P]; with return_sequences all outputs, [B, T, D*P]. With
          return_state, also the final states.
        """
        results: Any = super().call(
            sequences, initial_state=initial_state, mask=mask, training=training
        )
        if mask is None or self.return_sequences or not self.zero_output_for_mask:
            return results
        output, *states = results if self.return_state else [results]
        valid = stacked_masks.last_steps(sequences, mask, self.directions, self.go_backwards)
        parts = tf.split(output, self.directions, axis=1)
        zero = tf.zeros([], output.dtype)
        output = tf.concat([tf.where(v, p, zero) for v, p in zip(valid, parts, strict=True)], 1)
        return (output, *states) if self.return_state else output

    def inner_loop(
        self, sequences: Any, initial_state: Any, mask: tf.Tensor, training: bool = False
    ) -> Any:
        """Runs the layers over a batch of sequences; ``keras.layers.RNN`` calls it.

        Args:
          sequences: [B, T, I].
          initial_state: list of [B, P] and [B, H] tensors, as `call` takes it; [1, …] is broadcast.
          mask: [B, T] or [B, T, 1] boolean, or None: all steps are valid.
          training: whether dropout applies.

        Returns:
          The last output [B, D*P], that of the last valid step; all outputs [B, T, D*P]; the list
          of the final states.

        Raises:
          ValueError: the cell was replaced.
        """
        if reason := _deviation.of_cell(self):
            raise ValueError(f"{self.name} computes with the cell that it made only: {reason}")
        x = tf.cast(sequences, self.compute_dtype)
        steps = stacked_masks.Steps.of(x, mask, self.go_backwards)
        states = self._initial(initial_state, tf.shape(x)[0])
        output, finals = self._run_layers(steps, states, bool(training))
        kinds = len(self.state_size) // (self.num_layers * self.directions)
        last = steps.last(finals[::kinds][-self.directions :])
        if self.return_sequences:
            output = steps.outputs(output, self.directions, self.zero_output_for_mask)
        return last, output, finals

    @property
    def _kinds_of_states(self) -> tuple[str, ...]:
        return ("h", "c") if self._mode == "lstm" else ("h",)

    @property
    def _names_of_states(self) -> list[str]:
        return [
            f"{kind} of layer {layer}" + (f", direction {direction}," * self.bidirectional)
            for layer in range(self.num_layers)
            for direction in range(self.directions)
            for kind in self._kinds_of_states
        ]

    @property
    def _expected_states(self) -> str:
        count, kinds = len(self.state_size), " and ".join(self._kinds_of_states)
        return f"have {call_checks.tensors(count)}, {kinds} of each direction of each layer"

    def _initial(self, given: Any, batch: Any) -> list[Any]:
        given = keras.tree.flatten(given)
        states = [tf.convert_to_tensor(state, self.compute_dtype) for state in given]
        return [
            tf.broadcast_to(state, [batch, size]) if state.shape[0] == 1 else state
            for state, size in zip(states, self.state_size, strict=True)
        ]

    def _run_layers(
        self, steps: stacked_masks.Steps, states: list[Any], training: bool
    ) -> tuple[Any, list[Any]]:
        """The output [B, T, D*P] of the valid steps, and the final states."""
        cells, sequence = self.cell.cells, steps.sequence
        drops = training and self.dropout > 0 and self.num_layers > 1
        clips = stacked_clips.attributes(self)
        if not (drops or clips):
            return self._call_op(sequence, states, cells, steps.lengths, training)
        finals: list[Any] = []
        width, count = self.directions, len(states) // self.num_layers
        for layer in range(self.num_layers):
            if drops and layer > 0:
                sequence = self._drop(sequence)
            own_states = states[layer * count : (layer + 1) * count]
            own_cells = cells[layer * width : (layer + 1) * width]
            if clips:
                sequence, final = stacked_clips.run_layer(
                    sequence, own_states, own_cells, steps, training=training, clips=clips
                )
            else:
                sequence, final = self._call_op(
                    sequence, own_states, own_cells, steps.lengths, training
                )
            finals += final
        return sequence, finals

    def _drop(self, sequence: tf.Tensor) -> Any:
        """A layer's output [B, T, D*P] after dropout."""
        shape = None if self.dropout_per == "step" else (None, 1, None)
        return keras.random.dropout(sequence, self.dropout, shape, seed=self.seed_generator)

    def _call_op(
        self,
        x: tf.Tensor,
        states: list[Any],
        cells: list[Cell],
        lengths: tf.Tensor | None,
        training: bool,
    ) -> tuple[Any, list[Any]]:
        """The layers of some cells as one op: the outputs and the final states."""
        kinds = len(states) // len(cells)
        stacked = [tf.stack(states[k::kinds], axis=1) for k in range(kinds)]
        params = params_of(self._mode, cells, x.dtype)
        results = raw_ops.CudnnRNNV3(
            input=x,
            input_h=stacked[0],
            input_c=stacked[1] if kinds > 1 else tf.zeros([], x.dtype),
            params=params,
            sequence_lengths=lengths,
            rnn_mode=self._mode,
            input_mode="linear_input",
            direction="bidirectional" if self.bidirectional else "unidirectional",
            num_proj=self.projection_size or 0,
            # Whether the op saves activations. Without them its gradient runs it again.
            is_training=training or is_recorded([x, *stacked, params]),
            time_major=False,
        )
        finals = [tf.unstack(s, num=len(cells), axis=1) for s in results[1 : 1 + kinds]]
        return results.output, [state for cell in zip(*finals, strict=True) for state in cell]

    def _arrays_by_layer(self) -> list[list[Any]]:
        """The weights of each layer, as ``weights.LSTMWeights.from_keras`` takes them."""
        if not self.cell.built:
            raise ValueError(f"{self.name} has no weights yet; build it first")
        arrays = [cell.arrays() for cell in self.cell.cells]
        starts = range(0, len(arrays), self.directions)
        return [[a for cell in arrays[k : k + self.directions] for a in cell] for k in starts]

    @classmethod
    def from_weights(cls, source: LSTMWeights | GRUWeights, **options: Any) -> Self:
        """Makes a layer that computes what a model of another library does.

        Args:
          source: ``weights.LSTMWeights`` or ``weights.GRUWeights``, for example of
            ``LSTMWeights.from_torch(module.state_dict())``.
          **options: further arguments of the layer. Sizes, directions and the projection come from
            the weights.

        Returns:
          The layer, built.

        Raises:
          ValueError: there are peepholes, the weights are of a GRU with reset_after=False, or
            use_bias is False and a bias is not zero.
          TypeError: source is of another class.
        """
        if not isinstance(source, cls._weights_class):
            name = cls._weights_class.__name__
            raise TypeError(f"weights must be {name}. Received: {type(source).__name__}")
        if any(cell.peephole is not None for cell in source.cells):
            raise ValueError(f"{cls.__name__} has no peepholes; use LSTM layers with use_peephole")
        source._require_reset_after(cls.__name__)
        if source.projection_size is not None:
            options["projection_size"] = source.projection_size
        layer = cls(
            source.units, source.num_layers, bidirectional=source.directions == 2, **options
        )
        layer.build((None, None, source.input_size))
        layer.set_weights(list(_flat(source.to_keras(use_bias=layer.use_bias))))
        return layer

    def save_own_variables(self, store: Any) -> None:
        """Writes the state of the seed; Keras calls it for a file.

        Args:
          store: receives arrays by name.
        """
        super().save_own_variables(store)
        store["seed_state"] = self.seed_generator.state.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Reads what ``save_own_variables`` wrote.

        Args:
          store: arrays by name; without the state of the seed, it stays as it is.
        """
        names = store.keys()  # of a class of Keras that is no mapping
        given = {name: store[name] for name in names}
        if (state := given.pop("seed_state", None)) is not None:
            self.seed_generator.state.assign(state)
        super().load_own_variables(given)

    def get_config(self) -> dict[str, Any]:
        """The configuration from which Keras makes the layer again.

        Returns:
          The arguments of the constructor by name, serialised.
        """
        config = super().get_config()
        for name in ("cell", "unroll"):  # which the constructor does not take
            config.pop(name)
        return {
            **config,
            **{name: getattr(self, name) for name in _CONFIGURED},
            "zero_output_for_mask": self._zeroes_masked,
            "activity_regularizer": keras.regularizers.serialize(self.activity_regularizer),
            **self.cell.weight_options.serialised(),
        }


def _positive(name: str, value: Any) -> int:
    """A positive integer of Python or NumPy as an int."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} must be a positive integer. Received: {name}={value!r}")
    return int(value)


def _require_valid(dropout: Any, dropout_per: Any) -> None:
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be in [0, 1). Received: dropout={dropout}")
    if dropout_per not in ("step", "sequence"):
        raise ValueError(
            f"dropout_per must be 'step' or 'sequence'. Received: dropout_per={dropout_per!r}"
        )


def _flat(arrays: Any) -> Iterator[Any]:
    """The arrays of nested lists."""
    for array in arrays:
        if isinstance(array, list):
            yield from _flat(array)
        else:
            yield array
