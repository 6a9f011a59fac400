"""Random functional Keras models of all layers that a session computes."""

from typing import Any

import keras
import numpy as np
import pytest

from session.random_graphs import RandomModel
from tf_lstm_ops.inference import Session

pytestmark = [
    # Keras says so of layers that destroy a mask, and of softmax of one element.
    pytest.mark.filterwarnings("ignore:.*does not support masking:UserWarning"),
    pytest.mark.filterwarnings("ignore:You are using a softmax:UserWarning"),
]
BATCH = 3
GROUP, COUNT, SLOW_GROUP, SLOW_COUNT = 5, 20, 250, 5000


@pytest.mark.parametrize(
    "first",
    [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(GROUP, COUNT, GROUP))],
)
def test_models(first: int) -> None:
    for seed in range(first, first + GROUP):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(COUNT, COUNT + SLOW_COUNT, SLOW_GROUP))
def test_many_models(first: int) -> None:
    for seed in range(first, first + SLOW_GROUP):
        check(seed)
        if seed % 50 == 0:
            keras.backend.clear_session()


def check(seed: int) -> None:
    """A session against the model, and its stream against the session."""
    random = RandomModel(np.random.default_rng(seed), has_masks=seed % 2 == 1)
    x = random.draw(BATCH)
    session = Session(random.model, threads=1 + seed % 3)
    found, wanted = session(x), random.model(x)
    keras.tree.assert_same_structure(found, wanted)
    pairs = zip(keras.tree.flatten(found), keras.tree.flatten(wanted), strict=True)
    for k, (got, want) in enumerate(pairs):
        want = np.asarray(want)
        assert got.shape == want.shape, (seed, k)
        # Errors of float32 in up to ten layers, relative to the largest element.
        error = np.abs(got - want).max(initial=0)
        assert error <= 1e-5 * max(1, np.abs(want).max(initial=0)), (seed, k)
    if session.can_stream:
        check_stream(session, x, seed)


def check_stream(session: Session, x: Any, seed: int) -> None:
    """Step by step, bit for bit. Outputs behind a last step are those of the last step."""
    wanted = keras.tree.flatten(session(x))
    stream = session.stream(BATCH)
    steps = keras.tree.flatten(x)[0].shape[1]
    for t in range(steps):
        found = stream(keras.tree.map_structure(lambda array, t=t: array[:, t : t + 1], x))
        outputs = zip(session.outputs, keras.tree.flatten(found), wanted, strict=True)
        for k, (spec, got, want) in enumerate(outputs):
            is_sequence = len(spec.shape) > 1 and spec.shape[1] is None
            if is_sequence:
                np.testing.assert_array_equal(got[:, 0], want[:, t], str((seed, k, t)))
            elif t == steps - 1:
                np.testing.assert_array_equal(got, want, str((seed, k, t)))
