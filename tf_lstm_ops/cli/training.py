"""The demo's task: a speaker classifier, trained with our LSTM and with stock Keras."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from typing import NamedTuple

import keras
import numpy as np
import numpy.typing as npt

from tf_lstm_ops.cli import vowels
from tf_lstm_ops.keras import LSTM
from tf_lstm_ops.keras.policy import default_dtype_policy

UNITS = 100
BATCH_SIZE = 27  # a tenth of the training utterances
LEARNING_RATE = 5e-3
DROPOUT = 0.3


class Score(NamedTuple):
    """How well a model predicts.

    Attributes:
      loss: mean cross-entropy.
      accuracy: the share of the utterances whose speaker is recognised, 0 to 1.
    """

    loss: float
    accuracy: float


@dataclass
class Training:
    """A model and the course of its training.

    Attributes:
      model: the model.
      train: after each epoch, the score on the training utterances.
      test: after each epoch, the score on the test utterances.
      seconds: the duration of each epoch's training.
    """

    model: keras.Model
    train: list[Score] = field(default_factory=list)
    test: list[Score] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def seconds_per_epoch(self) -> float:
        """The typical duration of an epoch.

        Returns:
          The median without the first epoch, in which TensorFlow traces and compiles, in seconds.
        """
        return statistics.median(self.seconds[1:])


def train_side_by_side(
    train: vowels.Utterances,
    test: vowels.Utterances,
    epochs: int,
    seed: int,
    dtype_policy: str = "float32",
) -> tuple[Training, Training]:
    """Trains ours and stock from the same weights on the same batches, and prints the progress.

    Both models train one epoch at a time, alternately. The order changes every epoch, so that other
    load on the machine slows both equally.

    Args:
      train, test: the utterances.
      epochs: the number of epochs.
      seed: of weights, dropout and data order.
      dtype_policy: of both models.

    Returns:
      The training of our model and the training of the stock model.
    """
    steps = epochs * -(-len(train.speakers) // BATCH_SIZE)
    ours, stock = (
        Training(build_model(layer, steps, seed, dtype_policy))
        for layer in (LSTM, keras.layers.LSTM)
    )
    stock.model.set_weights(ours.model.get_weights())

    print("epoch    loss   train    test  seconds  stock test  stock seconds", flush=True)
    random = np.random.default_rng(seed)
    for epoch in range(epochs):
        order = random.permutation(len(train.speakers))
        for training in (ours, stock) if epoch % 2 == 0 else (stock, ours):
            run_epoch(training, train, test, order)
        print(
            f"{epoch + 1:2}/{epochs:2}  {ours.train[-1].loss:6.4f}  "
            f"{ours.train[-1].accuracy:6.1%}  {ours.test[-1].accuracy:6.1%}  "
            f"{ours.seconds[-1]:7.3f}  {stock.test[-1].accuracy:10.1%}  {stock.seconds[-1]:13.3f}"
            + ("  (with tracing)" if epoch == 0 else ""),
            flush=True,
        )
    return ours, stock


def build_model(
    layer: type[keras.layers.LSTM], steps: int, seed: int, dtype_policy: str = "float32"
) -> keras.Model:
    """Makes a classifier of utterances [B, T, 12] into speaker probabilities [B, 9], compiled.

    With mixed_float16 ``compile`` puts a LossScaleOptimizer around the optimizer.

    Args:
      layer: the class of the LSTM layer.
      steps: the number of training steps, for the learning rate's schedule.
      seed: of weights and dropout.
      dtype_policy: of the model; the probabilities are float32 under every policy.

    Returns:
      The model.
    """
    with default_dtype_policy(dtype_policy):
        keras.utils.set_random_seed(seed)
        recurrent = layer(UNITS, dropout=DROPOUT, seed=seed)
        # Else Keras 3.16 warns that its LSTM does not pass masks on.
        recurrent.supports_masking = True
        model = keras.Sequential(
            [
                keras.Input((None, vowels.FEATURES)),
                keras.layers.Masking(),  # frames that are all zero are padding
                recurrent,
                # Probabilities are float32 under every policy: the least half is 6e-8.
                keras.layers.Dense(vowels.SPEAKERS, activation="softmax", dtype="float32"),
            ]
        )
        rate = keras.optimizers.schedules.CosineDecay(LEARNING_RATE, decay_steps=steps)
        model.compile(
            optimizer=keras.optimizers.Adam(rate),
            loss="sparse_categorical_crossentropy",
            jit_compile=False,  # XLA would not run the fused op
        )
    return model


def run_epoch(
    training: Training,
    train: vowels.Utterances,
    test: vowels.Utterances,
    order: npt.NDArray[np.int64],
) -> None:
    """Trains for one epoch, measures the time and scores the model on all utterances.

    Args:
      training: what to train; one score and one duration are appended to its lists.
      train, test: the utterances.
      order: the order of the training utterances, a permutation of their indices.
    """
    start = time.perf_counter()
    for first in range(0, len(order), BATCH_SIZE):
        rows = order[first : first + BATCH_SIZE]
        training.model.train_on_batch(train.features[rows], train.speakers[rows])
    training.seconds.append(time.perf_counter() - start)
    training.train.append(score(training.model, train))
    training.test.append(score(training.model, test))


def score(model: keras.Model, utterances: vowels.Utterances) -> Score:
    """Scores the model's predictions, without dropout.

    Args:
      model: the model.
      utterances: the utterances whose speakers the model predicts.

    Returns:
      The score.
    """
    probabilities = model.predict_on_batch(utterances.features)
    of_speaker = probabilities[np.arange(len(probabilities)), utterances.speakers]
    return Score(
        loss=float(-np.log(np.maximum(of_speaker, np.finfo(np.float32).tiny)).mean()),
        accuracy=float((probabilities.argmax(axis=-1) == utterances.speakers).mean()),
    )
