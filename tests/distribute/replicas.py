"""Layers on replicas, in a process of its own: devices cannot be split once TensorFlow has run.

    replicas.py fit FILE                        Keras' fit; a layer on two replicas at once; fit and
                                                predict where a replica's share has no rows
    replicas.py more FILE                       more kinds of training; dropout
    replicas.py workers FILE ADDRESSES INDEX    training by one of several processes

The first two split the CPU into two devices, and also train without distribution.
Results go to FILE, named by how they were made.
"""

import json
import os
import sys

import keras
import numpy as np
import tensorflow as tf

import tf_lstm_ops

BATCH, TIME, INPUTS = 12, 9, 4
STEPS = 8
OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.05, momentum=0.9),
    "adam": lambda: keras.optimizers.Adam(0.01),
}


def make_data() -> tuple[np.ndarray, np.ndarray]:
    """Series with padding, holes and, in each replica's share, one without a single step."""
    rng = np.random.default_rng(0)
    series = rng.normal(size=(BATCH * STEPS, TIME, INPUTS))
    series[rng.random((BATCH * STEPS, TIME)) < 0.3] = 0
    series[:: BATCH // 2] = 0
    return series, series.sum(axis=(1, 2))


def make_model(layers=tf_lstm_ops.keras, dropout: float = 0.0) -> keras.Model:
    keras.utils.set_random_seed(1)
    return keras.Sequential(
        [
            keras.Input((None, INPUTS)),
            keras.layers.Masking(),
            layers.LSTM(7, return_sequences=True, dropout=dropout, seed=2),
            keras.layers.Bidirectional(layers.GRU(5, recurrent_dropout=dropout, seed=3)),
            keras.layers.Dense(1),
        ]
    )


def weights_of(model: keras.Model) -> np.ndarray:
    return np.concatenate([w.numpy().ravel() for w in model.trainable_variables])


def train_with_fit(strategy: tf.distribute.Strategy, optimizer: str, **options) -> np.ndarray:
    """All weights after an epoch of Keras' own training."""
    with strategy.scope():
        model = make_model(**options)
        model.compile(OPTIMIZERS[optimizer](), "mse")
    model.fit(*make_data(), batch_size=BATCH, shuffle=False, verbose=0)
    return weights_of(model)


def train_with_loop(strategy: tf.distribute.Strategy, optimizer: str) -> np.ndarray:
    """All weights after an epoch of a loop of our own, for strategies that `fit` does not take."""
    with strategy.scope():
        model = make_model()
        step_rule = OPTIMIZERS[optimizer]()
        step_rule.build(model.trainable_variables)

    def replica_step(series, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((model(series)[:, 0] - targets) ** 2) / BATCH
        gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
        step_rule.apply(gradients, model.trainable_variables)

    data = tf.data.Dataset.from_tensor_slices(make_data()).batch(BATCH)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    step = tf.function(lambda *batch: strategy.run(replica_step, args=batch))
    for batch in strategy.experimental_distribute_dataset(data.with_options(options)):
        step(*batch)
    return weights_of(model)


def run_at_once(strategy: tf.distribute.Strategy) -> dict[str, np.ndarray]:
    """Calls of 1 ms on both replicas, 40 times: whether their results are those of one alone, by
    the bit, and where they ran."""
    with strategy.scope():
        layer = tf_lstm_ops.keras.LSTM(96, return_sequences=True)
        layer.build((None, None, 64))
    rng = np.random.default_rng(4)
    shares = [tf.constant(rng.normal(size=(16, 20, 64))) for _ in range(2)]

    def call(x):
        with tf.GradientTape() as tape:
            outputs = layer(x)
            loss = tf.reduce_sum(outputs**2)
        gradients = tape.gradient(loss, [w.value for w in layer.trainable_weights])
        return [outputs, *gradients]

    alone = [tf.function(call)(x) for x in shares]
    x = strategy.experimental_distribute_values_from_function(
        lambda context: shares[context.replica_id_in_sync_group]
    )
    together = tf.function(lambda: strategy.run(call, args=(x,))).get_concrete_function()
    same = []
    for _ in range(40):
        results = [strategy.experimental_local_results(r) for r in together()]
        for k, expected in enumerate(alone):
            for replicas, wanted in zip(results, expected, strict=True):
                same.append(np.array_equal(replicas[k], wanted))
    devices = [op.device for op in together.graph.get_operations() if "KerasLSTM" in op.type]
    return {"same bits": np.array(same), "devices": np.array(devices)}


def compiled_model(layers) -> keras.Model:
    model = make_model(layers)
    model.compile("sgd", "mse")
    return model


def run_without_rows(strategy: tf.distribute.Strategy, layers=tf_lstm_ops.keras):
    """Predictions and weights of nine rows in batches of eight: of two replicas, one has no row of
    the last batch."""
    series, targets = (a[:9] for a in make_data())
    with strategy.scope():
        model = compiled_model(layers)
    predictions = model.predict(series, batch_size=8, verbose=0)
    model.fit(series, targets, batch_size=8, shuffle=False, verbose=0)
    return predictions.ravel(), weights_of(model)


def run_same_without_replicas() -> tuple[np.ndarray, np.ndarray]:
    """What these are. The loss of a replica is a mean over its rows, and that of the batch a mean
    over the replicas, so the last row counts half."""
    series, targets = (a[:9] for a in make_data())
    model = compiled_model(tf_lstm_ops.keras)
    predictions = model.predict_on_batch(series)
    for batch, weight in ((slice(0, 8), 1.0), (slice(8, 9), 0.5)):
        rows = series[batch]
        model.train_on_batch(rows, targets[batch], np.full(len(rows), weight))
    return predictions.ravel(), weights_of(model)


def one_and_two() -> dict[str, tf.distribute.Strategy]:
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    # As many threads on a machine of one core too.
    tf.config.threading.set_inter_op_parallelism_threads(4)
    tf.config.threading.set_intra_op_parallelism_threads(4)
    two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return {"one": tf.distribute.get_strategy(), "two": two}


def fit() -> dict[str, np.ndarray]:
    strategies = one_and_two()
    trained = {f"fit sgd {n}": train_with_fit(s, "sgd") for n, s in strategies.items()}
    without_rows = {"one": run_same_without_replicas(), "two": run_without_rows(strategies["two"])}
    for name, (predictions, weights) in without_rows.items():
        trained |= {f"no rows predict {name}": predictions, f"no rows fit {name}": weights}
    return {**trained, **run_at_once(strategies["two"])}


def more() -> dict[str, np.ndarray]:
    found = {}
    for name, strategy in one_and_two().items():
        found[f"fit adam {name}"] = train_with_fit(strategy, "adam")
        for optimizer in OPTIMIZERS:
            found[f"loop {optimizer} {name}"] = train_with_loop(strategy, optimizer)
        for owner, layers in (("ours", tf_lstm_ops.keras), ("stock", keras.layers)):
            options = {"layers": layers, "dropout": 0.3}
            found[f"dropout {owner} {name}"] = train_with_fit(strategy, "sgd", **options)
    for owner, layers in (("ours", tf_lstm_ops.keras), ("stock", keras.layers)):
        _, found[f"no rows fit {owner}"] = run_without_rows(strategy, layers)
    return found


def workers(addresses: str, index: str) -> dict[str, np.ndarray]:
    task = {"type": "worker", "index": int(index)}
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": {"worker": addresses.split(",")}, "task": task}
    )
    ring = tf.distribute.experimental.CommunicationImplementation.RING
    strategy = tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(implementation=ring)
    )
    return {f"loop {name}": train_with_loop(strategy, name) for name in OPTIMIZERS}


if __name__ == "__main__":
    keras.config.set_floatx("float64")
    kind, file, *others = sys.argv[1:]
    np.savez(file, **{"fit": fit, "more": more, "workers": workers}[kind](*others))
