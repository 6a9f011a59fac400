"""Results do not depend on the floating-point mode of the caller, and are those of the ops."""

import subprocess
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from session import native_program
from session import session_file as f
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import GRU, LSTM

LAYERS = {
    "lstm": lambda units: LSTM(units, return_sequences=True, use_bias=False),
    "gru": lambda units: GRU(units, return_sequences=True, use_bias=False),
    "reset before": lambda units: GRU(
        units, return_sequences=True, use_bias=False, reset_after=False
    ),
    "relu": lambda units: LSTM(units, return_sequences=True, use_bias=False, activation="relu"),
}
CHAINS = ["lstm", "stack with dense", "layer norm lstm", "lstm of 256", "grus of 256"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return native_program.build("floating_point_modes.cc", tmp_path_factory)


@pytest.mark.full
@native_program.glibc
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("weights", f.WEIGHTS)
def test_the_callers_mode(
    program: Path, tmp_path: Path, name: str, threads: int, weights: int
) -> None:
    command = [program, native_program.write(tmp_path, name, weights), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "same bits\n"), done.stderr


@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("units", [7, 130])
@pytest.mark.parametrize("kind", LAYERS)
def test_denormal_numbers_as_in_the_ops(kind: str, units: int, rng: np.random.Generator) -> None:
    """TensorFlow's threads round denormal numbers to zero. The smallest normal one is 1.2e-38."""
    layer = LAYERS[kind](units)
    layer.build((None, None, 20))
    layer.set_weights([rng.normal(size=w.shape) / 4 for w in layer.weights])
    model = keras.Sequential([keras.Input((None, 20)), layer])
    sessions = [Session([layer], threads) for threads in (1, 2)]
    for scale in (1e-37, 3e-38, 1e-38, 1e-40):
        for batch in (1, 3):
            x = (scale * rng.normal(size=(batch, 6, 20))).astype(np.float32)
            want = layer(tf.constant(x)).numpy()
            np.testing.assert_array_equal(model.predict(x, verbose=0), want)
            for session in sessions:
                np.testing.assert_array_equal(session(x), want)
                np.testing.assert_array_equal(session.stream(batch)(x), want)
