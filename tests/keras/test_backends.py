"""What is not Keras 3 on TensorFlow is refused in words; the ops need no Keras."""

import os
import subprocess
import sys
import types

import keras
import pytest

import tf_lstm_ops
from tf_lstm_ops import _keras_backend

MESSAGE = "the layers of tf_lstm_ops need Keras with its TensorFlow backend, but "
STEP = """
import tensorflow as tf
z = tf.zeros
print(tf_lstm_ops.raw_ops.LSTMBlockCell(
    x=z([1, 2]), cs_prev=z([1, 3]), h_prev=z([1, 3]), w=z([5, 12]), b=z([12]),
    wci=z([3]), wcf=z([3]), wco=z([3]),
).h.shape)
"""
# A module that is None in sys.modules cannot be imported, as if it was not installed.
WITHOUT_JAX = f"""
import sys
sys.modules["jax"] = None
import tf_lstm_ops
{STEP}
for name in "export", "keras":
    try:
        getattr(tf_lstm_ops, name)
    except ImportError as error:
        print(error)
print(hasattr(tf_lstm_ops, "nonsense"))
"""
WITH_TORCH = f"""
import tf_lstm_ops
{STEP}
import keras
print(keras.backend.backend())
try:
    from tf_lstm_ops.keras import LSTM
except ImportError as error:
    print(error)
"""


def run(program: str, backend: str) -> list[str]:
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "KERAS_BACKEND": backend},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.mark.full
def test_backend_that_is_not_installed() -> None:
    shape, *errors, has_nonsense = run(WITHOUT_JAX, "jax")
    assert shape == "(1, 3)"
    assert len(errors) == 2
    for error in errors:
        assert error.startswith(MESSAGE)
        assert "`import keras` fails: " in error
        assert "jax" in error
        assert "Set KERAS_BACKEND=tensorflow" in error
    assert has_nonsense == "False"


@pytest.mark.full  # test_problem has the message
@pytest.mark.torch
def test_another_backend() -> None:
    pytest.importorskip("torch", reason="the other backend")
    shape, backend, error = run(WITH_TORCH, "torch")
    assert (shape, backend) == ("(1, 3)", "torch")
    assert error.startswith(f"{MESSAGE}the backend is torch. ")


def test_problem(monkeypatch) -> None:
    assert _keras_backend.problem() is None
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    assert _keras_backend.problem().startswith(f"{MESSAGE}the backend is torch. ")


@pytest.fixture
def of_keras_2(monkeypatch) -> object:
    """An object of a class of tf_keras, which need not be installed."""
    monkeypatch.setitem(sys.modules, "tf_keras", types.ModuleType("tf_keras"))
    base = type("Model", (), {"__module__": "tf_keras.src.engine.training"})
    return type("Mine", (base,), {"__module__": "__main__"})()


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("model", tf_lstm_ops.keras.convert_model),
        ("model", tf_lstm_ops.keras.fallback_reasons),
        ("model", lambda model: tf_lstm_ops.export.saved_model(model, "never_written")),
        # A symbolic tensor: TensorFlow would trace the layer, whose weights the model then lacks.
        ("the input", lambda tensor: tf_lstm_ops.keras.LSTM(2)(tensor)),
        ("the input", lambda tensor: tf_lstm_ops.keras.GRU(2)(None, initial_state=[tensor])),
    ],
)
def test_keras_2(argument, call, of_keras_2) -> None:
    message = rf"^{argument} is of Keras 2 \(tf_keras\).* Keras 3 only.*tf_lstm_ops\.stock"
    with pytest.raises(TypeError, match=message):
        call(of_keras_2)
