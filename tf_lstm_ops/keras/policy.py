"""Keras' global dtype policy, set temporarily."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import keras


@contextlib.contextmanager
def default_dtype_policy(policy: Any) -> Iterator[None]:
    """A context with another global dtype policy.

    Models and layers made within have this policy, unless they name another. A model compiled
    within gets the optimizer wrapper that belongs to it.

    Args:
      policy: a ``keras.DTypePolicy`` or its name.

    Yields:
      None.
    """
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
