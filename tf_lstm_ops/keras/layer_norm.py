"""Layer normalisation in the cells of LSTM and GRU: arguments, weights and equations."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

from tf_lstm_ops.composite.keras import normalized

_EPSILONS = {"haste": 1e-5, "addons": 1e-3}  # the forms of an LSTM, and their defaults


def form_of(layer_normalization: Any, forms: tuple[str, ...]) -> str | None:
    """Checks the argument layer_normalization.

    Args:
      layer_normalization: the argument of a cell or a layer.
      forms: the names that it may have.

    Returns:
      The name of the form; "haste" for True, None for False and None.

    Raises:
      ValueError: layer_normalization is neither boolean nor one of the names.
    """
    if layer_normalization is None:
        return None
    if isinstance(layer_normalization, bool | np.bool_):
        return "haste" if layer_normalization else None
    if layer_normalization not in forms:
        *names, last = "True", "False", *map(repr, forms)
        raise ValueError(
            f"layer_normalization must be {', '.join(names)} or {last}. Received: "
            f"{layer_normalization!r}"
        )
    return layer_normalization


def epsilon_of(epsilon: Any, form: str | None) -> float | None:
    """Checks the argument layer_normalization_epsilon.

    Args:
      epsilon: the argument of a cell or a layer.
      form: what `form_of` returned.

    Returns:
      epsilon, or its default of the form; None without layer normalisation.

    Raises:
      ValueError: epsilon is not positive, or there is no layer normalisation.
    """
    if epsilon is None:
        return None if form is None else _EPSILONS[form]
    if form is None:
        raise ValueError("layer_normalization_epsilon needs layer_normalization")
    if not epsilon > 0:
        raise ValueError(f"layer_normalization_epsilon must be positive. Received: {epsilon}")
    return float(epsilon)


def add_weights(cell: Any, sizes: dict[str, int]) -> None:
    """Creates weights of a cell: gammas are one, betas are zero.

    Args:
      cell: a Keras cell; each weight becomes an attribute of it.
      sizes: the size of each weight by name, in order.
    """
    for name, size in sizes.items():
        initializer = "ones" if name.endswith("gamma") else "zeros"
        setattr(cell, name, cell.add_weight(shape=(size,), name=name, initializer=initializer))


def product(value: Any, weights: Any, dropout: Any, gates: int) -> Any:
    """The product of a cell's input or of its h with weights.

    Args:
      value: [B, K].
      weights: [K, gates * H].
      dropout: multipliers of value, [B, K]; a list of them, one for each gate; or None.
      gates: the number of gates.

    Returns:
      [B, gates * H].
    """
    if dropout is None:
        return ops.matmul(value, weights)
    if not isinstance(dropout, list):
        return ops.matmul(value * dropout, weights)
    columns = ops.split(ops.convert_to_tensor(weights), gates, axis=1)
    products = [ops.matmul(value * d, column) for d, column in zip(dropout, columns, strict=True)]
    return ops.concatenate(products, axis=1)


def normalize(value: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    """Layer normalisation over the last axis.

    Args:
      value: [B, K].
      gamma: scale, [K].
      beta: offset [K], or None.
      epsilon: positive; added to the variance.

    Returns:
      [B, K].
    """
    result = gamma * normalized(value, epsilon)
    return result if beta is None else result + beta
