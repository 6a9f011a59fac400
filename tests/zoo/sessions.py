"""Whole models of others as sessions: layers from arrays, with NumPy only."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tf_lstm_ops.inference import Session, layers
from tf_lstm_ops.weights import GRUWeights, LSTMWeights

Array = Any


def g2p_en(arrays: dict[str, Array]) -> tuple[Session, Session]:
    """The encoder of letters, and the decoder, whose first state is the encoder's output."""
    names = {"w_ih": "weight_ih", "w_hh": "weight_hh", "b_ih": "bias_ih", "b_hh": "bias_hh"}
    encoder, decoder = (
        GRUWeights.from_torch({theirs: arrays[f"{part}_{ours}"] for ours, theirs in names.items()})
        for part in ("enc", "dec")
    )
    encode = Session.from_layers([layers.Embedding(arrays["enc_emb"]), layers.GRU(encoder)])
    decode = Session.from_layers(
        [
            layers.Embedding(arrays["dec_emb"]),
            layers.GRU(decoder, return_sequences=True),
            layers.Dense(arrays["fc_w"].T, arrays["fc_b"]),
        ]
    )
    return encode, decode


def _weighted_mean(x: Any, scores: Any) -> Any:
    """The mean of the steps of x, weighted by a softmax of scores [B, T, 1], divided by T."""
    shares = layers.Softmax()(layers.Permute((2, 1))(scores))
    return layers.GlobalAveragePooling1D()(layers.Multiply()(x, layers.Permute((2, 1))(shares)))


def netra_transliterate(
    weights: Mapping[str, Sequence[Array]], steps: int
) -> tuple[Session, Session]:
    """The encoder, and the decoder of one step with Keras' AdditiveAttention.

    Args:
      weights: of each layer by its role, as Keras returns them.
      steps: the number of letters that the encoder reads, with padding.
    """
    encode = Session.from_layers(
        [
            layers.Embedding(*weights["letters"]),
            layers.GRU(GRUWeights.from_keras(weights["encoder"]), return_sequences=True),
            layers.Dense(*weights["projection"]),
        ]
    )
    units = len(weights["decoder"][1])
    letter, state = layers.Input((None,), "int32"), layers.Input((units,))
    keys = layers.Input((steps, units))
    embedded = layers.Embedding(*weights["signs"])(letter)
    h, new = layers.GRU(weights["decoder"], return_state=True)(embedded, initial_state=state)
    sums = layers.Activation("tanh")(layers.Add()(layers.RepeatVector(1)(h), keys))
    (scale,) = weights["attention"]
    context = _weighted_mean(keys, layers.Dense(scale[:, np.newaxis])(sums))
    kernel, bias = weights["output"]
    kernel = np.concatenate([kernel[:units], kernel[units:] * steps])  # for the division by T
    shares = layers.Dense(kernel, bias, "softmax")(layers.Concatenate()(h, context))
    return encode, Session.from_graph([letter, state, keys], [shares, new])


def textgenrnn(weights: Mapping[str, Sequence[Array]], steps: int) -> Session:
    """The probabilities of the next character.

    Args:
      weights: of each layer by its name; those of the LSTM are of Keras 2's CuDNNLSTM.
      steps: the number of characters that it reads, with padding.
    """
    x = layers.Input((steps,), "int32")
    parts = [layers.Embedding(*weights["embedding"])(x)]
    for name in ("rnn_1", "rnn_2"):
        lstm = LSTMWeights.from_keras(weights[name])
        parts.append(layers.LSTM(lstm, return_sequences=True)(parts[-1]))
    joined = layers.Concatenate()(parts)
    mean = _weighted_mean(joined, layers.Dense(*weights["attention"])(joined))
    kernel, bias = weights["output"]
    return Session.from_graph(x, layers.Dense(kernel * steps, bias, "softmax")(mean))


def uzmorph_nn(state: dict[str, Any]) -> Session:
    """Of each letter of a word the numbers of its tags."""
    lstm = LSTMWeights.from_torch(state, prefix="lstm.")
    return Session.from_layers(
        [
            layers.Embedding(state["char_embeddings.weight"]),
            layers.LSTM(lstm, return_sequences=True),
            layers.Dense(state["hidden2tag.weight"].T, state["hidden2tag.bias"]),
        ]
    )
