"""LSTMCell: keras.layers.LSTMCell with further options."""

from __future__ import annotations

import numbers
from typing import Any

import keras
from keras import ops

from tf_lstm_ops import _keras_private, _targets, composite
from tf_lstm_ops.keras import layer_norm
from tf_lstm_ops.keras.fused import PACKAGE, own_config
from tf_lstm_ops.keras.types import Normalization

_FORMS = ("haste", "addons")  # of layer normalisation


def checked_projection_size(projection_size: Any, units: int) -> int | None:
    """Checks the argument projection_size of an LSTM.

    Args:
      projection_size: the argument.
      units: the number of units H.

    Returns:
      The argument, an integer of Python if it is not None.

    Raises:
      ValueError: projection_size is not an integer from 1 to H - 1.
    """
    if projection_size is None:
        return None
    is_integer = isinstance(projection_size, numbers.Integral)
    is_integer = is_integer and not isinstance(projection_size, bool)
    if not (is_integer and 0 < projection_size < units):
        raise ValueError(
            f"projection_size must be None or an integer from 1 to {units - 1}, below units. "
            f"Received: {projection_size}"
        )
    return int(projection_size)


def require_valid_clips(cell_clip: Any, proj_clip: Any, projection_size: int | None) -> None:
    """Checks the arguments cell_clip and proj_clip of an LSTM.

    Args:
      cell_clip, proj_clip: the arguments.
      projection_size: the size of the projection; None without one.

    Raises:
      ValueError: a bound is neither None nor positive, or proj_clip is given without a projection.
    """
    for name, bound in (("cell_clip", cell_clip), ("proj_clip", proj_clip)):
        if bound is not None and not bound > 0:
            raise ValueError(f"{name} must be None or positive. Received: {bound}")
    if proj_clip is not None and projection_size is None:
        raise ValueError(
            f"proj_clip bounds the projected h, so it needs projection_size. Received: {proj_clip} "
            "and projection_size=None"
        )


@keras.saving.register_keras_serializable(package=PACKAGE)
class LSTMCell(keras.layers.LSTMCell):
    """``keras.layers.LSTMCell`` with peepholes, a clipped cell state, a projection and more.

    A cell computes one step with TensorFlow's ops. ``keras.layers.RNN(cell)`` runs it in a loop;
    `LSTM` computes the same with one op.

    >>> import numpy as np
    >>> from tf_lstm_ops.keras import LSTMCell
    >>> cell = LSTMCell(4, use_peephole=True, cell_clip=1.0)
    >>> h, [h, c] = cell(np.ones((32, 8), "float32"), [np.zeros((32, 4), "float32")] * 2)
    >>> h.shape, c.shape
    (TensorShape([32, 4]), TensorShape([32, 4]))

    Args:
      units: H, positive: the size of the cell state c, and of h without a projection.
      *args: positional arguments of ``keras.layers.LSTMCell``.
      use_peephole: whether the gates read the cell state: adds the weight ``peephole_kernel``
        [3, H], rows i, f and o. The input and the forget gate read the previous cell state, the
        output gate reads the new one.
      cell_clip: bounds the cell state to [-cell_clip, cell_clip]; the gradient of the clip is the
        identity. None: no bound.
      projection_size: P, from 1 to H - 1: multiplies h by the weight ``projection_kernel`` [H, P];
        ``recurrent_kernel`` is then [P, 4H]. None: no projection.
      proj_clip: bounds the projected h to [-proj_clip, proj_clip]; needs ``projection_size``. The
        gradient of the clip is that of ``tf.clip_by_value``: 0 where h exceeds the bound. None: no
        bound.
      layer_normalization: normalises the products of the input and of h, and the cell state. True
        or "haste": the next step reads the cell state before the normalisation; adds the weights
        ``input_gamma`` and ``recurrent_gamma`` [4H], ``state_gamma`` and ``state_beta`` [H].
        "addons": the next step reads the normalised cell state, as in TensorFlow Addons; adds
        ``input_beta`` and ``recurrent_beta`` [4H] too. None or False: none.
      layer_normalization_epsilon: positive, added to the variances. None: 1e-5, or 1e-3 for
        "addons".
      **kwargs: other arguments of ``keras.layers.LSTMCell``; `LSTM` describes them.

    Call arguments:
      inputs: [B, I].
      states: list of h [B, P] and c [B, H], P = H without a projection.
      training: whether dropout applies.

    Call returns:
      The new h, and the list of the new h and c.

    Raises:
      ValueError: cell_clip, proj_clip or layer_normalization_epsilon is not positive;
        projection_size is out of range, or None together with proj_clip; layer_normalization is
        unknown, or layer_normalization_epsilon is given without it; or another argument is not
        valid in ``keras.layers.LSTMCell``.
    """

    def __init__(
        self,
        units: int,
        *args: Any,
        use_peephole: bool = False,
        cell_clip: float | None = None,
        projection_size: int | None = None,
        proj_clip: float | None = None,
        layer_normalization: bool | Normalization | None = None,
        layer_normalization_epsilon: float | None = None,
        **kwargs: Any,
    ) -> None:
        require_valid_clips(cell_clip, proj_clip, projection_size)
        form = layer_norm.form_of(layer_normalization, _FORMS)
        epsilon = layer_norm.epsilon_of(layer_normalization_epsilon, form)
        super().__init__(units, *args, **kwargs)
        projection_size = checked_projection_size(projection_size, units)
        if projection_size is not None:
            self.state_size = [projection_size, units]
            self.output_size = projection_size
        self.projection_size = projection_size
        self.projection_kernel: Any = None
        self.use_peephole = bool(use_peephole)
        self.cell_clip, self.proj_clip = (
            None if clip is None else float(clip) for clip in (cell_clip, proj_clip)
        )
        self.peephole_kernel: Any = None
        self.layer_normalization, self.layer_normalization_epsilon = form, epsilon
        self.input_beta: Any = None
        self.recurrent_beta: Any = None

    def build(self, input_shape: Any) -> None:
        """Creates the weights; Keras calls it.

        Args:
          input_shape: the shape of the cell's input, [B, I].
        """
        if not isinstance(self, LSTMCell):
            # Keras binds build to a new object. convert_model has made this one a stock cell since.
            type(self).build(self, input_shape)
            return
        self.built_features = input_shape[-1]
        if self.projection_size is None:
            super().build(input_shape)
        else:
            self._build_with_projection(input_shape[-1])
        if self.use_peephole:
            self.peephole_kernel = self.add_weight(
                shape=(3, self.units),
                name="peephole_kernel",
                initializer=self.kernel_initializer,
                regularizer=self.recurrent_regularizer,
                constraint=self.recurrent_constraint,
            )
        if self.projection_size is not None:
            self.projection_kernel = self.add_weight(
                shape=(self.units, self.projection_size),
                name="projection_kernel",
                initializer=self.kernel_initializer,
                regularizer=self.recurrent_regularizer,
                constraint=self.recurrent_constraint,
            )

        if self.layer_normalization is not None:
            layer_norm.add_weights(self, self._norm_sizes())

    def _norm_sizes(self) -> dict[str, int]:
        """The sizes of the weights of layer normalisation by name."""
        gammas = dict.fromkeys(["input_gamma", "recurrent_gamma"], 4 * self.units)
        state = dict.fromkeys(["state_gamma", "state_beta"], self.units)
        betas = dict.fromkeys(["input_beta", "recurrent_beta"], 4 * self.units)
        return {**gammas, **state, **(betas if self.layer_normalization == "addons" else {})}

    def _build_with_projection(self, inputs: int) -> None:
        """The weights of the stock cell, whose own build gives recurrent_kernel H rows."""
        for name, rows in (("kernel", inputs), ("recurrent_kernel", self.projection_size)):
            kind = name.removesuffix("_kernel")
            weight = self.add_weight(
                shape=(rows, 4 * self.units),
                name=name,
                initializer=getattr(self, f"{kind}_initializer"),
                regularizer=getattr(self, f"{kind}_regularizer"),
                constraint=getattr(self, f"{kind}_constraint"),
            )
            setattr(self, name, weight)
        self.bias = self._add_bias() if self.use_bias else None

    def _add_bias(self) -> Any:
        def initial(shape: Any, *args: Any, **kwargs: Any) -> Any:
            bias = self.bias_initializer(shape, *args, **kwargs)
            if not self.unit_forget_bias:
                return bias
            i, _, c, o = ops.split(bias, 4)
            return ops.concatenate([i, ops.ones_like(i), c, o])

        return self.add_weight(
            shape=(4 * self.units,),
            name="bias",
            initializer=initial,
            regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
        )

    def call(self, inputs: Any, states: Any, training: bool = False) -> Any:
        """Computes one step; ``__call__`` calls it.

        Args:
          inputs: [B, I].
          states: h [B, P], P = H without a projection, and c [B, H].
          training: whether dropout applies.

        Returns:
          The new h, and the list of the new h and c.
        """
        if self.layer_normalization is not None:
            h, states = self._call_with_norm(inputs, states, training)
        else:
            h, states = super().call(inputs, states, training=training)
        if self.projection_size is None:
            return h, states
        h = ops.matmul(h, self.projection_kernel)
        h = composite.masked_clip(h, self.proj_clip or 0.0)
        return h, [h, states[1]]

    def _call_with_norm(self, inputs: Any, states: Any, training: bool) -> tuple[Any, list[Any]]:
        epsilon: Any = self.layer_normalization_epsilon
        h, c = states
        drops = training and 0.0 < self.dropout < 1.0
        drops_h = training and 0.0 < self.recurrent_dropout < 1.0 and self.implementation == 1
        mask = _keras_private.input_multipliers(self, inputs) if drops else None
        h_mask = _keras_private.recurrent_multipliers(self, h) if drops_h else None
        x_terms = layer_norm.product(inputs, self.kernel, mask, 4)
        h_terms = layer_norm.product(h, self.recurrent_kernel, h_mask, 4)
        z = layer_norm.normalize(x_terms, self.input_gamma, self.input_beta, epsilon)
        z += layer_norm.normalize(h_terms, self.recurrent_gamma, self.recurrent_beta, epsilon)
        if self.bias is not None:
            z += self.bias
        c, o = self._compute_carry_and_output_fused(ops.split(z, 4, axis=1), c)
        n = layer_norm.normalize(c, self.state_gamma, self.state_beta, epsilon)
        h = o * self.activation(n)
        return h, [h, c if self.layer_normalization == "haste" else n]

    def _compute_carry_and_output(self, x: Any, h_tm1: Any, c_tm1: Any) -> Any:
        recurrent = ops.split(self.recurrent_kernel, 4, axis=1)
        z = [a + ops.matmul(h, r) for a, h, r in zip(x, h_tm1, recurrent, strict=True)]
        return self._compute_carry_and_output_fused(z, c_tm1)

    def _compute_carry_and_output_fused(self, z: Any, c_tm1: Any) -> Any:
        zi, zf, zc, zo = z
        if self.use_peephole:
            wci, wcf, wco = ops.unstack(ops.convert_to_tensor(self.peephole_kernel))
            zi, zf = zi + wci * c_tm1, zf + wcf * c_tm1
        c = self.recurrent_activation(zf) * c_tm1
        c += self.recurrent_activation(zi) * self.activation(zc)
        if self.cell_clip is not None:
            c = composite.straight_through_clip(c, self.cell_clip)
        if self.use_peephole:
            zo += wco * c
        return c, self.recurrent_activation(zo)

    def get_config(self) -> dict[str, Any]:
        """The configuration from which Keras makes the cell again.

        Returns:
          The arguments of the constructor by name, serialised.
        """
        return {**super().get_config(), **own_config(self, _targets.OWN_OF_CELLS)}
