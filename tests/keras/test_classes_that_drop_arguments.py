"""Subclasses of the user's that have only a constructor and a configuration of their own."""

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers as stock

from tf_lstm_ops import _deviation
from tf_lstm_ops import keras as ours
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import convert_model, fallback_reasons

UNITS = 4
# One step's rounding, on outputs below 1, in 6 steps.
TOLERANCE = 1e-6


def dropping(base: Any) -> Any:
    """A class that takes the argument time_major of Keras 2."""

    class Dropping(base):
        """As people write it, to load old files."""

        def __init__(self, *args: Any, time_major: bool = False, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.time_major = time_major

        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), "time_major": self.time_major}

    return Dropping


BASES = (stock.LSTM, stock.GRU, ours.LSTM, ours.GRU)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("base", BASES, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "Bidirectional"])
def test_they_compute_what_their_base_does(
    base: Any, wrapped: bool, rng: np.random.Generator
) -> None:
    layer = dropping(base)(UNITS, time_major=False)
    if wrapped:
        with keras.saving.custom_object_scope({"Dropping": type(layer)}):  # Keras copies it
            layer = stock.Bidirectional(layer)
    model = keras.Sequential([keras.Input((6, 3)), layer])
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    wanted = model.predict(x, verbose=0)
    for in_place in (False, True):
        fused = convert_model(model, in_place=in_place)
        assert set(fallback_reasons(fused).values()) == {None}
        np.testing.assert_allclose(fused.predict(x, verbose=0), wanted, atol=TOLERANCE)
        np.testing.assert_allclose(Session(fused)(x), wanted, atol=TOLERANCE)
    back = convert_model(fused, to="stock")
    assert all("tf_lstm_ops" not in type(layer).__module__ for layer in back.layers)
    np.testing.assert_allclose(back.predict(x, verbose=0), wanted, atol=TOLERANCE)


def test_a_class_that_may_compute_otherwise_is_itself() -> None:
    class Other(dropping(stock.LSTM)):
        def get_initial_state(self, batch_size: Any) -> Any:
            return super().get_initial_state(batch_size)

    class Mixed(dropping(stock.LSTM), dict):
        pass

    for kind in (Other, Mixed, stock.Dense):
        assert _deviation.class_that_computes(kind) is kind
    assert _deviation.class_that_computes(dropping(dropping(stock.LSTM))) is stock.LSTM
