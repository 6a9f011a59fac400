"""For users with an NVIDIA GPU: `pytest -n 0 -m gpu tests/gpu`."""

import pytest
import tensorflow as tf


@pytest.fixture(autouse=True)
def precise():
    """Products in float32, not in TF32."""
    allowed = tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    yield
    tf.config.experimental.enable_tensor_float_32_execution(allowed)


@pytest.fixture(autouse=True, scope="session")
def gpu():
    if not tf.config.list_physical_devices("GPU"):
        pytest.fail("TensorFlow sees no GPU")
