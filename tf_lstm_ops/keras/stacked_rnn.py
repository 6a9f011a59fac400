"""The base class of StackedLSTM and StackedGRU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf
from keras import ops

# TensorFlow has no public function that returns whether a tape records.
from tensorflow.python.eager import record

from tf_lstm_ops import _gpu, raw_ops
from tf_lstm_ops.keras import ragged, stacked_masks
from tf_lstm_ops.keras.stacked_weights import Cell, WeightOptions, params_of


class StackedRNN(keras.layers.Layer):
    """The base class: several layers, of one or two directions each.

    Args:
      units: positive integer H, the number of units of each direction of each layer.
      num_layers: positive integer L.
      bidirectional: whether each layer has a second direction, which runs backwards in time. The
        outputs of the two are concatenated.
      dropout: in [0, 1), the fraction of the outputs of each layer but the last that is dropped in
        training.
      dropout_per: "step": each step has a mask of its own, as in PyTorch and cuDNN; "sequence": one
        mask for all steps (Gal and Ghahramani 2016).
      use_bias, return_sequences, stateful, seed: as in ``keras.layers.LSTM``.
      return_state: whether the final states of all layers are returned, too.
      go_backwards: whether the sequence is reversed first, with bidirectional=False only.
      zero_output_for_mask: whether the output is zero at masked steps. None: as
        ``keras.layers.Bidirectional`` with two directions, else False.
      activity_regularizer: as in ``keras.layers.Layer``.
      **kwargs: ``kernel_initializer``, ``recurrent_initializer``, ``bias_initializer``, and the
        same with ``_regularizer`` and ``_constraint``, for the weights of all layers;
        ``name``, ``dtype`` and others of ``keras.layers.Layer``.

    Raises:
      ValueError: an argument is out of range.
    """

    _mode: str  # rnn_mode of the op
    _state_names: tuple[str, ...]
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
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        zero_output_for_mask: bool | None = None,
        seed: int | None = None,
        activity_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        options = WeightOptions.taken_from(kwargs)
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        for name, value in (("units", units), ("num_layers", num_layers)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive integer. Received: {name}={value!r}")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1). Received: dropout={dropout}")
        if dropout_per not in ("step", "sequence"):
            raise ValueError(
                f"dropout_per must be 'step' or 'sequence'. Received: dropout_per={dropout_per!r}"
            )
        if go_backwards and bidirectional:
            raise ValueError("go_backwards=True needs bidirectional=False")
        self.units, self.num_layers, self.bidirectional = units, num_layers, bool(bidirectional)
        self.dropout, self.dropout_per, self.use_bias = float(dropout), dropout_per, use_bias
        self.return_sequences, self.return_state = return_sequences, return_state
        self.go_backwards, self.stateful = go_backwards, stateful
        self.zero_output_for_mask, self.seed = zero_output_for_mask, seed
        self.projection_size: int | None = None
        self.weight_options = options
        self.seed_generator = keras.random.SeedGenerator(seed)
        # The op draws the masks of "step" by itself, from a seed that is an attribute.
        self._op_seed = int(ops.convert_to_numpy(self.seed_generator.state)[0]) & 0x7FFFFFFF
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.cells: list[Cell] = []
        self.states: list[Any] | None = None

    @property
    def supports_jit(self) -> bool:
        """Whether Keras may compile a call with XLA; as of the other layers."""
        return not _gpu.kernels_run()

    @supports_jit.setter
    def supports_jit(self, value: bool) -> None:
        pass  # by the constructor of Keras

    @property
    def directions(self) -> int:
        """The number of directions, 1 or 2."""
        return 2 if self.bidirectional else 1

    @property
    def hidden_size(self) -> int:
        """The size P of h: projection_size if there is a projection, else units."""
        return self.projection_size or self.units

    @property
    def state_size(self) -> list[int]:
        """The sizes of the states, in the order of `initial_state`."""
        sizes = {"h": self.hidden_size, "c": self.units}
        one = [sizes[name] for name in self._state_names]
        return one * (self.num_layers * self.directions)

    @property
    def _zeroes_masked(self) -> bool:
        if self.zero_output_for_mask is None:
            return self.bidirectional and self.return_sequences
        return self.zero_output_for_mask

    def build(self, input_shape: Any) -> None:
        """Creates the weights; Keras calls it.

        Args:
          input_shape: the shape of the input, [B, T, I].

        Raises:
          ValueError: I is unknown, or B with stateful=True.
        """
        inputs = input_shape[-1]
        if inputs is None:
            raise ValueError(f"the number of features must be known. Received: {input_shape}")
        self.cells = []
        for layer in range(self.num_layers):
            for direction in range(self.directions):
                suffix = f"_l{layer}" + "_reverse" * direction
                self.cells.append(self._add_cell(inputs, suffix))
            inputs = self.directions * self.hidden_size
        self.input_spec = keras.layers.InputSpec(shape=(None, None, input_shape[-1]))
        if self.stateful:
            self._create_states(input_shape[0])

    def _create_states(self, batch: int | None) -> None:
        if batch is None:
            raise ValueError(
                "stateful=True needs a fixed batch size; give the model's Input a batch_size"
            )
        self.states = [
            keras.Variable(
                keras.initializers.Zeros(),
                shape=(batch, size),
                dtype=self.variable_dtype,
                trainable=False,
                name="rnn_state",
            )
            for size in self.state_size
        ]

    def _add_cell(self, inputs: int, suffix: str) -> Cell:
        shapes = self._weight_shapes(inputs)
        made = {
            name: self.add_weight(
                shape=shape, name=name + suffix, **self.weight_options.of(name, self.units)
            )
            for name, shape in shapes.items()
            if name != "bias" or self.use_bias
        }
        return Cell(**made)

    def _weight_shapes(self, inputs: int) -> dict[str, tuple[int, ...]]:
        raise NotImplementedError

    def call(
        self, sequences: Any, initial_state: Any = None, mask: Any = None, training: bool = False
    ) -> Any:
        """Runs the layers; ``__call__`` calls it.

        Args:
          sequences: [B, T, I]; or a RaggedTensor [B, (steps), I].
          initial_state: [B, P] and [B, H] tensors: the states of each direction of each layer, in
            the order layer * directions + direction; None: zeros, or the last ones if stateful.
          mask: [B, T] boolean, or None.
          training: whether dropout applies.

        Returns:
          The last output [B, D*P]; with return_sequences all outputs, [B, T, D*P]. With
          return_state, a list of it and the final states.

        Raises:
          ValueError: initial_state has the wrong length.
        """
        if not isinstance(sequences, tf.RaggedTensor):
            return self._run(sequences, initial_state, mask, bool(training))
        ragged.require_rows_of_steps(sequences)
        padded = ragged.pad(sequences, mask, left=False)
        results = self._run(padded.sequences, initial_state, padded.mask, bool(training))
        if not self.return_sequences:
            return results
        output, *states = results if self.return_state else [results]
        output = ragged.unpad(output, padded, sequences, self.go_backwards)
        return [output, *states] if self.return_state else output

    def _run(self, sequences: Any, initial_state: Any, mask: Any, training: bool) -> Any:
        x = tf.cast(sequences, self.compute_dtype)
        steps = stacked_masks.Steps.of(x, mask, self.go_backwards)
        states = self._initial(initial_state, tf.shape(x)[0])
        output, finals = self.run_layers(steps, states, training)
        if self.stateful:
            for variable, value in zip(self.states or [], finals, strict=True):
                variable.assign(ops.cast(value, variable.dtype))
        if self.return_sequences:
            result = steps.outputs(output, self.directions, self._zeroes_masked)
        else:
            last = finals[:: len(self._state_names)][-self.directions :]
            result = steps.last(last, self._zeroes_masked)
        return [result, *finals] if self.return_state else result

    def _initial(self, given: Any, batch: Any) -> list[Any]:
        if given is None:
            given = self.states if self.stateful else None
        if given is None:
            return [tf.zeros([batch, size], self.compute_dtype) for size in self.state_size]
        given = list(given) if isinstance(given, list | tuple) else [given]
        if len(given) != len(self.state_size):
            raise ValueError(
                f"initial_state must have {len(self.state_size)} tensors, {self._state_names} of "
                f"each direction of each layer. Received {len(given)}"
            )
        return [tf.cast(tf.convert_to_tensor(state), self.compute_dtype) for state in given]

    def run_layers(self, steps: Any, states: list[Any], training: bool) -> tuple[Any, list[Any]]:
        """Computes all layers.

        Args:
          steps: the valid steps, a `stacked_masks.Steps`.
          states: the initial states.
          training: whether dropout applies.

        Returns:
          The output [B, T, D*P] of the steps, and the final states.
        """
        drops = training and self.dropout > 0 and self.num_layers > 1
        if not (drops and self.dropout_per == "sequence"):
            return self._call_op(steps.sequence, states, self.cells, steps.lengths, training)
        sequence, finals = steps.sequence, []
        cells, count = self.directions, len(self._state_names) * self.directions
        for layer in range(self.num_layers):
            if layer > 0:
                ones = tf.ones([tf.shape(sequence)[0], 1, sequence.shape[2]], sequence.dtype)
                sequence *= keras.random.dropout(ones, self.dropout, seed=self.seed_generator)
            sequence, final = self._call_op(
                sequence,
                states[layer * count : (layer + 1) * count],
                self.cells[layer * cells : (layer + 1) * cells],
                steps.lengths,
                training,
            )
            finals += final
        return sequence, finals

    def _call_op(
        self, x: Any, states: list[Any], cells: list[Cell], lengths: Any, training: bool
    ) -> tuple[Any, list[Any]]:
        """The layers of some cells as one op: the outputs and the final states."""
        kinds = len(self._state_names)
        stacked = [tf.stack(states[k::kinds], axis=1) for k in range(kinds)]
        # The op saves activations in training only, and a tape needs them.
        saves = training or record.could_possibly_record()
        results = raw_ops.CudnnRNNV3(
            input=x,
            input_h=stacked[0],
            input_c=stacked[1] if kinds > 1 else tf.zeros([], x.dtype),
            params=params_of(self._mode, cells, x.dtype),
            sequence_lengths=lengths,
            rnn_mode=self._mode,
            input_mode="linear_input",
            direction="bidirectional" if self.bidirectional else "unidirectional",
            dropout=self.dropout if training and len(cells) > self.directions else 0.0,
            seed=self._op_seed,
            num_proj=self.projection_size or 0,
            is_training=saves,
            time_major=False,
        )
        finals = [tf.unstack(s, num=len(cells), axis=1) for s in results[1 : 1 + kinds]]
        return results.output, [state for cell in zip(*finals, strict=True) for state in cell]

    def reset_state(self) -> None:
        """Sets the states of a stateful layer to zero."""
        for state in self.states or []:
            state.assign(ops.zeros_like(state))

    reset_states = reset_state

    def compute_output_shape(self, sequences_shape: Any, *args: Any, **kwargs: Any) -> Any:
        """The shapes of the results; Keras calls it.

        Args:
          sequences_shape: [B, T, I].
          *args, **kwargs: the shapes of the other arguments; not read.

        Returns:
          The shape of the output; with return_state a list of it and of the states' shapes.
        """
        batch, time = sequences_shape[:2]
        width = self.directions * self.hidden_size
        output = (batch, time, width) if self.return_sequences else (batch, width)
        states = [(batch, size) for size in self.state_size]
        return [output, *states] if self.return_state else output

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:
        """The mask of the next layer: that of the input, with return_sequences.

        Args:
          inputs: not read.
          previous_mask: the mask of the input, or a list whose first element it is.

        Returns:
          The mask or None; with return_state a list of it and None for each state.
        """
        mask = previous_mask
        if isinstance(mask, list | tuple):
            mask = mask[0]
        mask = mask if self.return_sequences else None
        return [mask, *(None for _ in self.state_size)] if self.return_state else mask

    def arrays_by_layer(self) -> list[list[Any]]:
        """The weights in the form that ``weights.LSTMWeights.from_keras`` takes.

        Returns:
          For each layer what ``get_weights`` of a Keras layer of one or two directions returns.

        Raises:
          ValueError: the layer is not built yet.
        """
        if not self.cells:
            raise ValueError(f"{self.name} has no weights yet; build it first")
        arrays = [cell.arrays() for cell in self.cells]
        starts = range(0, len(arrays), self.directions)
        return [[a for cell in arrays[k : k + self.directions] for a in cell] for k in starts]

    @classmethod
    def from_weights(cls, source: Any, **options: Any) -> Any:
        """Makes a layer that computes what a model of another library does.

        Args:
          source: ``weights.LSTMWeights`` or ``weights.GRUWeights``, for example of
            ``LSTMWeights.from_torch(module.state_dict())``.
          **options: further arguments of the layer. Sizes, directions and the projection come from
            the weights.

        Returns:
          The layer, built.

        Raises:
          ValueError: there are peepholes, or use_bias is False and a bias is not zero.
          TypeError: source is of another class.
        """
        if not isinstance(source, cls._weights_class):
            name = cls._weights_class.__name__
            raise TypeError(f"weights must be {name}. Received: {type(source).__name__}")
        if any(cell.peephole is not None for cell in source.layers):
            raise ValueError(f"{cls.__name__} has no peepholes; use LSTM layers with use_peephole")
        if source.layers[0].projection is not None:
            options["projection_size"] = source.hidden_size
        layer = cls(
            source.cell_size, source.layer_count, bidirectional=source.directions == 2, **options
        )
        layer.build((None, None, source.input_size))
        layer.set_weights(list(_flat(source.to_keras(use_bias=layer.use_bias))))
        return layer

    def get_config(self) -> dict[str, Any]:
        """The configuration from which Keras makes the layer again.

        Returns:
          The arguments of the constructor by name, serialised.
        """
        names = (
            *("units", "num_layers", "bidirectional", "dropout", "dropout_per", "use_bias"),
            *("return_sequences", "return_state", "go_backwards", "stateful"),
            *("zero_output_for_mask", "seed"),
        )
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in names},
            "activity_regularizer": keras.regularizers.serialize(self.activity_regularizer),
            **self.weight_options.serialised(),
        }


def _flat(arrays: Any) -> Iterator[Any]:
    """The arrays of nested lists."""
    for array in arrays:
        if isinstance(array, list):
            yield from _flat(array)
        else:
            yield array
