"""Trains a speaker classifier on one device, on several, or on several machines.

The same code serves all three; only the strategy differs. Each step takes the same utterances,
split over the replicas, and sums their gradients, so that all ways train the same weights.

One device:

    python distributed_training.py

Two logical CPU devices of this machine, as one would use two GPUs:

    python distributed_training.py --replicas 2

Two machines; each runs the same command but for its own --index (0, the chief, reports and saves):

    python distributed_training.py --workers a.example:12345,b.example:12345 --index 0
"""

import argparse
import json
import os

import keras
import numpy as np
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops.cli import vowels

BATCH_SIZE = 30  # of all replicas together; divides the 270 utterances, so that no batch is short


def main() -> None:
    arguments = parse_arguments()
    strategy = make_strategy(arguments)  # first: it starts the devices
    if BATCH_SIZE % strategy.num_replicas_in_sync:
        raise SystemExit(f"{BATCH_SIZE} utterances a step cannot be shared out evenly")
    train, test = vowels.standardise(*vowels.load())

    keras.utils.set_random_seed(arguments.seed)
    with strategy.scope():  # every replica gets a copy of what is created here
        model = build_model()
        optimizer = keras.optimizers.Adam(5e-3)
        optimizer.build(model.trainable_variables)

    # Every worker reads all the data and takes its share of each batch.
    data = tf.data.Dataset.from_tensor_slices((train.features, train.speakers))
    data = data.shuffle(len(train.speakers), seed=arguments.seed).batch(BATCH_SIZE)
    sharing = tf.data.Options()
    sharing.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    data = strategy.experimental_distribute_dataset(data.with_options(sharing))

    def replica_step(features: tf.Tensor, speakers: tf.Tensor) -> tf.Tensor:
        """What one replica does with its share of the batch; its part of the mean loss."""
        with tf.GradientTape() as tape:
            logits = model(features, training=True)
            losses = keras.losses.sparse_categorical_crossentropy(
                speakers, logits, from_logits=True
            )
            loss = tf.reduce_sum(losses) / BATCH_SIZE
        variables = model.trainable_variables
        gradients = tape.gradient(loss, [v.value for v in variables])
        optimizer.apply(gradients, variables)  # sums the gradients of all replicas first
        return loss

    @tf.function
    def train_step(features: tf.Tensor, speakers: tf.Tensor) -> tf.Tensor:
        losses = strategy.run(replica_step, args=(features, speakers))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    chief = arguments.index == 0
    for epoch in range(arguments.epochs):
        loss = np.mean([train_step(*batch) for batch in data])
        if chief:
            print(f"epoch {epoch + 1}/{arguments.epochs}: loss {loss:.4f}", flush=True)

    if chief:
        guesses = np.argmax(model(test.features), axis=-1)
        replicas = strategy.num_replicas_in_sync
        print(f"test accuracy {np.mean(guesses == test.speakers):.2%}, {replicas} replicas")
        if arguments.save:
            model.save_weights(arguments.save)


def build_model() -> keras.Model:
    """A classifier of utterances [B, T, 12] into logits [B, 9]."""
    return keras.Sequential(
        [
            keras.Input((None, vowels.FEATURES)),
            keras.layers.Masking(),  # frames that are all zero are padding
            tf_lstm_ops.keras.LSTM(48, return_sequences=True),
            tf_lstm_ops.keras.GRU(48),
            keras.layers.Dense(vowels.SPEAKERS),
        ]
    )


def make_strategy(arguments: argparse.Namespace) -> tf.distribute.Strategy:
    if arguments.workers:
        cluster = {"worker": arguments.workers.split(",")}
        task = {"type": "worker", "index": arguments.index}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
        ring = tf.distribute.experimental.CommunicationImplementation.RING
        options = tf.distribute.experimental.CommunicationOptions(implementation=ring)
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    if arguments.replicas > 1:
        (cpu,) = tf.config.list_physical_devices("CPU")
        parts = [tf.config.LogicalDeviceConfiguration()] * arguments.replicas
        tf.config.set_logical_device_configuration(cpu, parts)
        return tf.distribute.MirroredStrategy([f"CPU:{k}" for k in range(arguments.replicas)])
    return tf.distribute.get_strategy()  # TensorFlow's default: no distribution


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicas", type=int, default=1, help="logical CPU devices")
    parser.add_argument("--workers", metavar="HOST:PORT,...", help="all machines, the chief first")
    parser.add_argument("--index", type=int, default=0, help="of this machine among the workers")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", metavar="FILE.weights.h5", help="where to save the weights")
    return parser.parse_args()


if __name__ == "__main__":
    main()
