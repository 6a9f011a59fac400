"""What the composites share."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def compute_dtype(dtype: tf.DType) -> tf.DType:
    return tf.float64 if dtype == tf.float64 else tf.float32


def cast(values: Any, dtype: tf.DType) -> Any:
    """Casts floating-point tensors of a flat sequence; others are left alone."""
    return [tf.cast(v, dtype) if v.dtype.is_floating else v for v in values]
