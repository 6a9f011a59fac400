"""Gradients of first and second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from cases import Draw, Results


def first_order(function: Callable[..., Any], given: dict[str, Any], draw: Draw) -> Results:
    """The outputs of `function` and, from random upstream gradients, the gradients of `given`."""
    with tf.GradientTape() as tape:
        tape.watch(given)
        outputs = function(**given)
    present = [output for output in tf.nest.flatten(outputs) if output is not None]
    return {"forward": outputs, "tape": tape.gradient(present, given, draw.like(present))}


def second_order(function: Callable[..., Any], given: dict[str, Any], draw: Draw) -> Results:
    """The same and, from random upstream gradients, the gradients of those gradients."""
    with tf.GradientTape() as tape:
        tape.watch(given)
        results = first_order(function, given, draw)
    present = [grad for grad in results["tape"].values() if grad is not None]
    return {**results, "second order": tape.gradient(present, given, draw.like(present))}
