"""GRUCell: keras.layers.GRUCell with layer normalisation."""

from __future__ import annotations

from typing import Any, Literal

import keras
from keras import ops

from tf_lstm_ops import _keras_private, _targets
from tf_lstm_ops.keras import layer_norm
from tf_lstm_ops.keras.fused import PACKAGE, own_config


@keras.saving.register_keras_serializable(package=PACKAGE)
class GRUCell(keras.layers.GRUCell):
    """``keras.layers.GRUCell`` with layer normalisation.

    A cell computes one step with TensorFlow's ops. ``keras.layers.RNN(cell)`` runs it in a loop;
    `GRU` computes the same with one op.

    >>> import numpy as np
    >>> from tf_lstm_ops.keras import GRUCell
    >>> cell = GRUCell(4, layer_normalization=True)
    >>> h, [h] = cell(np.ones((32, 8), "float32"), [np.zeros((32, 4), "float32")])
    >>> h.shape
    TensorShape([32, 4])

    Args:
      units: H, positive: the size of h.
      *args: positional arguments of ``keras.layers.GRUCell``.
      layer_normalization: True or "haste": normalises the products of the input and of h, and adds
        the weights ``input_gamma`` and ``recurrent_gamma`` [3H]. None or False: none. Needs
        ``reset_after=True``.
      layer_normalization_epsilon: positive, added to the variances. None: 1e-5.
      **kwargs: other arguments of ``keras.layers.GRUCell``; `GRU` describes them.

    Call arguments:
      inputs: [B, I].
      states: h [B, H], or a list of it.
      training: whether dropout applies.

    Call returns:
      The new h, and the new h in the form of ``states``.

    Raises:
      ValueError: layer_normalization_epsilon is not positive, or given without
        layer_normalization; layer_normalization is unknown, or given together with
        reset_after=False; or another argument is not valid in ``keras.layers.GRUCell``.
    """

    def __init__(
        self,
        units: int,
        *args: Any,
        layer_normalization: bool | Literal["haste"] | None = None,
        layer_normalization_epsilon: float | None = None,
        **kwargs: Any,
    ) -> None:
        form = layer_norm.form_of(layer_normalization, ("haste",))
        epsilon = layer_norm.epsilon_of(layer_normalization_epsilon, form)
        super().__init__(units, *args, **kwargs)
        if form is not None and not self.reset_after:
            raise ValueError("layer_normalization needs reset_after=True")
        self.layer_normalization, self.layer_normalization_epsilon = form, epsilon

    def build(self, input_shape: Any) -> None:
        """Creates the weights; Keras calls it.

        Args:
          input_shape: the shape of the cell's input, [B, I].
        """
        if not isinstance(self, GRUCell):
            # Keras binds build to a new object. convert_model has made this one a stock cell since.
            type(self).build(self, input_shape)
            return
        self.built_features = input_shape[-1]
        super().build(input_shape)
        if self.layer_normalization is not None:
            names = ["input_gamma", "recurrent_gamma"]
            layer_norm.add_weights(self, dict.fromkeys(names, 3 * self.units))

    def call(self, inputs: Any, states: Any, training: bool = False) -> Any:
        """Computes one step; ``__call__`` calls it.

        Args:
          inputs: [B, I].
          states: h [B, H], or a list of it.
          training: whether dropout applies.

        Returns:
          The new h, and the new h in the form of ``states``.
        """
        if self.layer_normalization is None:
            return super().call(inputs, states, training=training)
        h = states[0] if isinstance(states, list | tuple) else states
        new_h = self._step(inputs, h, training)
        return new_h, [new_h] if isinstance(states, list | tuple) else new_h

    def _step(self, inputs: Any, h: Any, training: bool) -> Any:
        epsilon: Any = self.layer_normalization_epsilon
        drops = training and 0.0 < self.dropout < 1.0
        drops_h = training and 0.0 < self.recurrent_dropout < 1.0 and self.implementation == 1
        mask = _keras_private.input_multipliers(self, inputs) if drops else None
        h_mask = _keras_private.recurrent_multipliers(self, h) if drops_h else None
        x_terms = layer_norm.product(inputs, self.kernel, mask, 3)
        h_terms = layer_norm.product(h, self.recurrent_kernel, h_mask, 3)
        x_bias, h_bias = (None, None) if self.bias is None else ops.unstack(self.bias)
        x_terms = layer_norm.normalize(x_terms, self.input_gamma, x_bias, epsilon)
        h_terms = layer_norm.normalize(h_terms, self.recurrent_gamma, h_bias, epsilon)
        xz, xr, xh = ops.split(x_terms, 3, axis=1)
        hz, hr, hh = ops.split(h_terms, 3, axis=1)
        z = self.recurrent_activation(xz + hz)
        candidate = self.activation(xh + self.recurrent_activation(xr + hr) * hh)
        return z * h + (1 - z) * candidate

    def get_config(self) -> dict[str, Any]:
        """The configuration from which Keras makes the cell again.

        Returns:
          The arguments of the constructor by name, serialised.
        """
        return {**super().get_config(), **own_config(self, _targets.NORMALIZATION)}
