"""Keras' global dtype policy for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import keras


@contextlib.contextmanager
def default_dtype_policy(policy: Any) -> Iterator[None]:
    """Models and layers made within have this policy, unless they name another; what compiles a
    model there wraps its optimizer accordingly."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
