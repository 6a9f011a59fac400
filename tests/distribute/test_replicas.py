"""Layers under MirroredStrategy and MultiWorkerMirroredStrategy, and called by several threads."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from launch import free_addresses, run_together

import tf_lstm_ops

PROGRAM = Path(__file__).with_name("replicas.py")
# In float64, a rounding of 1e-16 in each of the 8 steps' sums of 54 terms.
TOLERANCE = 1e-13
Found = dict[str, np.ndarray]


def load(file: Path) -> Found:
    with np.load(file) as arrays:
        return dict(arrays)


def assert_same_weights(got: np.ndarray, wanted: np.ndarray) -> None:
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(got, wanted, rtol=0, atol=TOLERANCE * scale)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    file = tmp_path_factory.mktemp("fit") / "found.npz"
    run_together([PROGRAM, "fit", file])
    return load(file)


@pytest.fixture(scope="module")
def found_more(tmp_path_factory: pytest.TempPathFactory) -> Found:
    file = tmp_path_factory.mktemp("more") / "found.npz"
    run_together([PROGRAM, "more", file])
    return load(file)


@pytest.mark.full
def test_fit_on_two_devices_trains_the_weights_of_one(found: Found) -> None:
    assert_same_weights(found["fit sgd two"], found["fit sgd one"])


@pytest.mark.full
def test_each_replica_runs_the_op_on_its_device(found: Found) -> None:
    assert {device[-5:] for device in found["devices"]} == {"CPU:0", "CPU:1"}


@pytest.mark.full
def test_replicas_at_once_compute_the_bits_of_one_alone(found: Found) -> None:
    assert found["same bits"].shape == (40 * 2 * 4,)  # outputs and three weights' gradients
    assert found["same bits"].all()


@pytest.mark.full
@pytest.mark.parametrize("kind", ["fit", "predict"])
def test_a_replica_without_rows(found: Found, kind: str) -> None:
    assert_same_weights(found[f"no rows {kind} two"], found[f"no rows {kind} one"])


@pytest.mark.parametrize("layer", [tf_lstm_ops.keras.LSTM, tf_lstm_ops.keras.GRU])
def test_threads_share_a_layer(layer: type, rng: np.random.Generator) -> None:
    """Four threads call one layer, 15 times each, on inputs of their own."""
    layer = layer(64, return_sequences=True)
    layer.build((None, None, 32))
    inputs = [tf.constant(rng.normal(size=(16, 12 + k, 32)), tf.float32) for k in range(4)]

    def call(x: tf.Tensor) -> list[bytes]:
        with tf.GradientTape() as tape:
            outputs = layer(x)
            loss = tf.reduce_sum(outputs**2)
        gradients = tape.gradient(loss, [w.value for w in layer.trainable_weights])
        return [a.numpy().tobytes() for a in (outputs, *gradients)]

    alone = [call(x) for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, inputs * 15)) == alone * 15


@pytest.mark.slow
@pytest.mark.parametrize("training", ["fit adam", "loop sgd", "loop adam"])
def test_other_kinds_of_training(found_more: Found, training: str) -> None:
    assert_same_weights(found_more[f"{training} two"], found_more[f"{training} one"])


@pytest.mark.slow
def test_a_replica_without_rows_is_that_of_stock(found_more: Found) -> None:
    assert_same_weights(found_more["no rows fit ours"], found_more["no rows fit stock"])


@pytest.mark.slow
@pytest.mark.parametrize("devices", ["one", "two"])
def test_dropout_is_that_of_stock(found_more: Found, devices: str) -> None:
    """Which on two devices is another than on one."""
    assert_same_weights(
        found_more[f"dropout ours {devices}"], found_more[f"dropout stock {devices}"]
    )


@pytest.mark.slow
def test_two_processes_train_the_weights_of_one(found_more: Found, tmp_path: Path) -> None:
    files = [tmp_path / f"{k}.npz" for k in range(2)]
    addresses = free_addresses(2)
    run_together(*([PROGRAM, "workers", file, addresses, k] for k, file in enumerate(files)))
    for found in map(load, files):
        for optimizer in ("sgd", "adam"):
            assert_same_weights(found[f"loop {optimizer}"], found_more[f"loop {optimizer} one"])
