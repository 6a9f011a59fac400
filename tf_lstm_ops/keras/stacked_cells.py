"""The cell of a stack: the weights of each direction of each layer."""

from __future__ import annotations

from typing import Any

import keras

from tf_lstm_ops.cudnn_layout import GATES
from tf_lstm_ops.keras.fused import PACKAGE
from tf_lstm_ops.keras.stacked_weights import Cell, WeightOptions

_STATES = {"lstm": ("h", "c"), "gru": ("h",)}


@keras.saving.register_keras_serializable(package=PACKAGE)
class StackedCells(keras.layers.Layer):
    """Holds the weights of a stack, as the cell of a ``keras.layers.RNN`` holds those of a layer.

    It computes nothing: the stack computes whole sequences. Each weight is an attribute of the name
    that it has, so that TensorFlow's checkpoints and SavedModels find it.

    Args:
      mode: "lstm" or "gru".
      units: H.
      num_layers: L.
      directions: D, 1 or 2.
      projection_size: P, or None.
      use_bias: whether there are biases.
      unit_forget_bias: whether the bias of the forget gate of an LSTM starts at one.
      **kwargs: ``kernel_initializer`` and the others of `WeightOptions`; dtype, trainable and name.
    """

    def __init__(
        self,
        mode: str,
        units: int,
        num_layers: int,
        *,
        directions: int,
        projection_size: int | None,
        use_bias: bool,
        unit_forget_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        self.weight_options = WeightOptions.taken_from(kwargs, unit_forget_bias)
        super().__init__(**kwargs)
        self.mode, self.units = mode, units
        self.num_layers, self.directions = num_layers, directions
        self.projection_size, self.use_bias = projection_size, use_bias
        self.unit_forget_bias = unit_forget_bias
        self._size_of_h = projection_size or units
        sizes = {"h": self._size_of_h, "c": units}
        self.state_size = [sizes[name] for name in _STATES[mode]] * (num_layers * directions)
        self.output_size = directions * self._size_of_h

    def build(self, input_shape: Any) -> None:
        """Creates the weights; Keras calls it.

        Args:
          input_shape: the shape of a step of the input, [B, I].

        Raises:
          ValueError: I is unknown.
        """
        inputs = input_shape[-1]
        if inputs is None:
            raise ValueError(f"the number of features must be known. Received: {input_shape}")
        self.built_features = inputs
        for number, suffix in enumerate(self._suffixes()):
            in_first = number < self.directions
            shapes = self._shapes(inputs if in_first else self.output_size)
            for name, shape in shapes.items():
                options = self.weight_options.of(name, self.units)
                weight = self.add_weight(shape=shape, name=name + suffix, **options)
                setattr(self, name + suffix, weight)

    def load_own_variables(self, store: Any) -> None:
        """Loads the weights; Keras calls it.

        Args:
          store: arrays by number, of a file.

        Raises:
          ValueError: the file has other weights, or none of a stack in this place.
        """
        if self.built and not store.keys():
            raise ValueError(
                f"the file has no {self.mode.upper()} stack where the model has one. Load a file "
                "of keras.layers.RNN of several cells into the model with that layer, then call "
                "convert_model"
            )
        super().load_own_variables(store)

    def _suffixes(self) -> list[str]:
        """Of the names of the weights: the layer and the direction."""
        directions = ["", "_reverse"][: self.directions]
        return [f"_l{layer}{name}" for layer in range(self.num_layers) for name in directions]

    def _shapes(self, inputs: int) -> dict[str, tuple[int, ...]]:
        """The shapes of the weights of one direction, in the order of ``get_weights``."""
        columns = GATES[self.mode] * self.units
        shapes: dict[str, tuple[int, ...]] = {
            "kernel": (inputs, columns),
            "recurrent_kernel": (self._size_of_h, columns),
        }
        if self.use_bias:
            shapes["bias"] = (columns,) if self.mode == "lstm" else (2, columns)
        if self.projection_size is not None:
            shapes["projection_kernel"] = (self.units, self.projection_size)
        return shapes

    @property
    def cells(self) -> list[Cell]:
        """The weights of each direction of each layer, in the order layer * D + direction."""
        names = self._shapes(0)
        return [
            Cell(**{name: getattr(self, name + suffix) for name in names})
            for suffix in self._suffixes()
        ]

    def get_config(self) -> dict[str, Any]:
        """The configuration from which Keras makes the cell again.

        Returns:
          The arguments of the constructor by name, serialised.
        """
        names = ("mode", "units", "num_layers", "directions", "projection_size", "use_bias")
        own = {name: getattr(self, name) for name in (*names, "unit_forget_bias")}
        return {**super().get_config(), **own, **self.weight_options.serialised()}
