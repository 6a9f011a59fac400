"""The ops behind the layers, with calls that tests/fuzz draws: any mask, dropout factors, absent
inputs. tests/fuzz compares them with the oracle, and calls them with wrong shapes.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from empties import leave_nan
from fuzz.keras import LAYERS, Drawn, draw_layer, tensors_of
from tf_lstm_ops import op_definitions

OPS = sorted({kind.partition(",")[0] for kind in LAYERS})
DROPOUTS = ("input_dropout", "recurrent_dropout")
DRAWS = 15
Tensors = dict[str, tf.Tensor]


def right_draws(op: str) -> Iterator[tuple[Drawn, Tensors]]:
    """Calls that the op accepts."""
    found = 0
    for seed in range(10_000):
        rng = np.random.default_rng(seed)
        drawn = draw_layer(rng)
        if drawn.op == op and drawn.is_right:
            yield drawn, tensors_of(rng, drawn)
            found += 1
            if found == DRAWS:
                return
    raise AssertionError(op)


def run(drawn: Drawn, tensors: Tensors, training: bool = True) -> Any:
    function = op_definitions.function(drawn.op)
    return function(**tensors, **drawn.attributes, training=training)


@pytest.mark.parametrize("op", OPS)
def test_inference_gives_the_bits_of_training(op: str) -> None:
    for drawn, tensors in right_draws(op):
        trained, inferred = (run(drawn, tensors, training) for training in (True, False))
        for a, b in zip(trained[:-1], inferred[:-1], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("op", OPS)
def test_reserve_is_written(op: str) -> None:
    """Also what belongs to masked steps: no number in it is what memory held before."""
    for drawn, tensors in right_draws(op):
        wanted = run(drawn, tensors).reserve
        leave_nan([wanted] * 5)
        got = run(drawn, tensors).reserve
        assert np.isfinite(tf.cast(got, tf.float64)).all()
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("op", OPS)
def test_a_reserve_of_another_mask_gives_finite_gradients(op: str) -> None:
    """A reserve of the right size, here of as many steps, is taken as the numbers that it holds."""
    masked = [drawn for drawn in right_draws(op) if not drawn[0].is_absent("mask")]
    assert len(masked) > 3
    for drawn, tensors in masked:
        own = run(drawn, tensors)
        reserve = run(drawn, {**tensors, "mask": tensors["mask"][:, ::-1]}).reserve
        states = zip(LAYERS[drawn.op].states, own[1:-1], strict=True)
        gradients = op_definitions.function(f"{op}Grad")(
            **tensors,
            output=own.output,
            reserve=reserve,
            output_grad=own.output,
            **{f"final_{name}_grad": state for name, state in states},
            **drawn.attributes,
        )
        names = [k for k in drawn.shapes if k not in ("mask", *DROPOUTS)]
        for name, gradient in zip(names, gradients, strict=True):
            assert gradient.shape == tensors[name].shape, name
            assert np.isfinite(tf.cast(gradient, tf.float64)).all(), name
