"""tf_lstm_ops.inference.Session on NumPy arrays, which writes to an array that exists."""

from __future__ import annotations

from typing import Any

import numpy as np

from peers.cases import Problem, Row, compared_output
from peers.frameworks import Prepared
from peers.models import Conv, Dense, Embed, Layer, ModelProblem, Pool, Recurrent
from tf_lstm_ops.inference import Session, layers


def build(row: Row, problem: Problem | ModelProblem, threads: int, **options: Any) -> Prepared:
    """Makes a call of a session.

    Args:
      row: the row, of inference or of a model.
      problem: its data.
      threads: the number of threads.
      **options: of the session: weights, the type of its weights.

    Returns:
      The call to time. A row of one step is that of a stream, which has a state behind the first.
    """
    if isinstance(problem, ModelProblem):
        session = Session.from_layers(_chain(row, problem), threads, **options)
        x = problem.x
        out = session(x)
        return Prepared(lambda: session(x, out=out), lambda y: {"output": y.copy()})
    kind = {"lstm": layers.LSTM, "gru": layers.GRU}[row.cell]
    chain = [kind(problem.weights, return_sequences=True)]
    session = Session.from_layers(chain, threads, **options)
    if row.time == 1:
        return _step(session, problem)
    x, mask = problem.x, problem.valid
    out = session(x, mask)
    return Prepared(
        lambda: session(x, mask, out=out), lambda y: compared_output(np.copy(y), problem)
    )


def _step(session: Session, problem: Problem) -> Prepared:
    step, x = session.stream(len(problem.x)), problem.x[:, 0]
    out = np.empty((len(x), session.output_size), np.float32)
    return Prepared(lambda: step(x, out=out), lambda y: compared_output(y[:, None].copy(), problem))


def _chain(row: Row, problem: ModelProblem) -> list[Any]:
    chain: list[Any] = []
    if not isinstance(problem.layers[0][0], Embed):
        chain.append(layers.Input((None, row.inputs)))
    for layer, weights in problem.layers:
        chain += _layers(layer, weights)
    return chain


def _layers(layer: Layer, weights: Any) -> list[layers.Layer]:
    match layer:
        case Conv(_, _, padding, normalized):
            arrays = weights["kernel"], weights["bias"]
            if not normalized:
                return [layers.Conv1D(*arrays, padding=padding, activation="relu")]
            names = ("gamma", "beta", "mean", "variance")
            between = layers.BatchNormalization(**{name: weights[name] for name in names})
            return [layers.Conv1D(*arrays, padding=padding), between, layers.Activation("relu")]
        case Pool(size):
            return [layers.MaxPooling1D(size)]
        case Embed():
            return [layers.Embedding(weights["table"], mask_zero=layer.mask_zero)]
        case Recurrent():
            return [layers.LSTM(weights, return_sequences=layer.sequences)]
        case Dense():
            return [layers.Dense(**weights, activation="softmax")]
