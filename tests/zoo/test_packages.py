"""Models inside packages of others: in by a documented road, equal to float64, and how fast.

Each test prints a row for docs/guide/old_models.md: run with -s. Nothing downloaded is kept.
"""

import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tf_lstm_ops.files.hdf5 import read_model as read
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import LSTM, StackedLSTM, convert_model, load_h5_weights
from tf_lstm_ops.weights import LSTMWeights
from zoo import reference
from zoo.comparison import compare
from zoo.packages import download, only

pytestmark = [pytest.mark.zoo, pytest.mark.downloads("packages with models")]


def arrays_of(path: Path) -> dict[str, list[Any]]:
    return {name: [a.value for a in own] for name, own in read(path).layers.items()}


@pytest.mark.parametrize("units", [50, 100, 150, 200, 300])
def test_chars2vec(units: int, tmp_path: Path, rng: np.random.Generator) -> None:
    """Weights of Keras 2.2.0, whose LSTM had the recurrent activation hard_sigmoid by default."""
    path = only(download("chars2vec", tmp_path), f"eng_{units}/weights.h5")
    hard = {"recurrent_activation": "hard_sigmoid"}
    model = keras.Sequential(
        [keras.Input((None, 59)), LSTM(units, return_sequences=True, **hard), LSTM(units, **hard)]
    )
    load_h5_weights(model, path)
    session = Session(model)

    words = rng.integers(0, 59, (16, 12))
    x = np.eye(59, dtype="float32")[words]

    def run(dtype: Any) -> Any:
        h = x.astype(dtype)
        for kernel, recurrent, bias in filter(None, arrays_of(path).values()):
            given = (np.asarray(a, dtype) for a in (kernel, recurrent, bias))
            h = reference.lstm(h, *given, gate=reference.hard_sigmoid)
        return h[:, -1]

    stock = convert_model(model, to="stock")
    name = f"chars2vec 0.1.7, eng_{units}"
    compare(name, run, session(x), lambda: stock.predict_on_batch(x), lambda: session(x))


@keras.saving.register_keras_serializable("zoo")
class WeightedAverage(keras.layers.Layer):
    """textgenrnn's layer AttentionWeightedAverage, for Keras 3."""

    def build(self, shape: Any) -> None:
        self.w = self.add_weight(shape=(shape[-1], 1), name="attention_W")

    def call(self, x: Any) -> Any:
        logits = keras.ops.matmul(x, self.w)
        powers = keras.ops.exp(logits - keras.ops.max(logits, axis=1, keepdims=True))
        shares = powers / (keras.ops.sum(powers, axis=1, keepdims=True) + keras.config.epsilon())
        return keras.ops.sum(x * shares, axis=1)


def test_textgenrnn(tmp_path: Path, rng: np.random.Generator) -> None:
    """Weights of CuDNNLSTM of Keras 2.1.5. The attention is a class of the user's."""
    path = only(download("textgenrnn", tmp_path), "textgenrnn_weights.hdf5")
    inputs = keras.Input((40,))
    embedded = keras.layers.Embedding(465, 100, name="embedding")(inputs)
    first = keras.layers.LSTM(128, return_sequences=True, name="rnn_1")(embedded)
    second = keras.layers.LSTM(128, return_sequences=True, name="rnn_2")(first)
    joined = keras.layers.Concatenate()([embedded, first, second])
    outputs = keras.layers.Dense(465, "softmax", name="output")(
        WeightedAverage(name="attention")(joined)
    )
    stock = keras.Model(inputs, outputs)
    load_h5_weights(stock, path)
    model = convert_model(stock)

    x = rng.integers(1, 465, (8, 40))
    given = arrays_of(path)

    def run(dtype: Any) -> Any:
        cast = {name: [np.asarray(a, dtype) for a in own] for name, own in given.items()}
        layers = [cast["embedding"][0][x]]
        for name in ("rnn_1", "rnn_2"):
            weights = LSTMWeights.from_keras(given[name]).to_keras()
            layers.append(reference.lstm(layers[-1], *(np.asarray(w, dtype) for w in weights)))
        averages = reference.weighted_average(np.concatenate(layers, -1), cast["attention"][0])
        return reference.softmax(averages @ cast["output"][0] + cast["output"][1])

    found = model.predict_on_batch(x)
    compare(
        "textgenrnn 2.0.0",
        run,
        found,
        lambda: stock.predict_on_batch(x),
        lambda: model.predict_on_batch(x),
    )


def test_netra_transliterate(tmp_path: Path, rng: np.random.Generator) -> None:
    """A model of Keras 3.10: an encoder of a bidirectional GRU, a decoder with attention."""
    path = only(download("netra-transliterate", tmp_path), "*.keras")
    stock = keras.models.load_model(path, compile=False)
    model = convert_model(stock)

    x = [rng.integers(1, 28, (8, 20)), rng.integers(1, 81, (8, 20))]

    def run(dtype: Any) -> Any:
        by_class = {type(layer).__name__: layer for layer in stock.layers}
        embeddings = [layer for layer in stock.layers if type(layer).__name__ == "Embedding"]
        tables = [np.asarray(layer.get_weights()[0], dtype) for layer in embeddings]
        both, dense = (
            [np.asarray(w, dtype) for w in by_class[kind].get_weights()]
            for kind in ("Bidirectional", "TimeDistributed")
        )
        embedded = tables[0][x[0]]
        directions = (
            reference.gru(embedded, *both[:3]),
            reference.backwards(reference.gru, embedded, *both[3:]),
        )
        return _decode(dtype, stock, np.concatenate(directions, -1), dense, tables[1][x[1]])

    found = model.predict_on_batch(x)
    compare(
        "netra-transliterate 1.0.1",
        run,
        found,
        lambda: stock.predict_on_batch(x),
        lambda: model.predict_on_batch(x),
    )


def _decode(dtype: Any, stock: Any, encoded: Any, dense: Any, x: Any) -> Any:
    """netra-transliterate's decoder."""
    by_class = {type(layer).__name__: layer for layer in stock.layers}
    weights = {
        kind: [np.asarray(w, dtype) for w in by_class[kind].get_weights()]
        for kind in ("GRU", "AdditiveAttention", "Dense")
    }
    projected = encoded @ dense[0] + dense[1]
    h = reference.gru(x, *weights["GRU"])
    scale = weights["AdditiveAttention"]
    context = reference.additive_attention(h, projected, scale[0] if scale else None)
    kernel, bias = weights["Dense"]
    return reference.softmax(np.concatenate([h, context], -1) @ kernel + bias)


def test_uzmorph_nn(tmp_path: Path, rng: np.random.Generator) -> None:
    """A state dict of PyTorch: two bidirectional layers and a linear one."""
    torch = pytest.importorskip("torch")
    package = download("uzmorph-nn", tmp_path)
    state = torch.load(only(package, "morph_bilstm.pth"), map_location="cpu", weights_only=True)
    layer = StackedLSTM.from_weights(
        LSTMWeights.from_torch(state, prefix="lstm."), return_sequences=True
    )
    last = keras.layers.Dense(len(state["hidden2tag.bias"]))
    model = keras.Sequential([keras.Input((None, 64)), layer, last])
    last.set_weights([state["hidden2tag.weight"].numpy().T, state["hidden2tag.bias"].numpy()])
    session = Session(model)

    letters = len(json.loads(only(package, "char_vocab.json").read_text()))
    table = state["char_embeddings.weight"].numpy()
    x = table[rng.integers(0, letters, (64, 30))]

    def run(dtype: Any) -> Any:
        module = torch.nn.LSTM(64, 64, num_layers=2, bidirectional=True, batch_first=True)
        own = {k.removeprefix("lstm."): v for k, v in state.items() if k.startswith("lstm.")}
        module.load_state_dict(own)
        cells = LSTMWeights.from_torch(module)
        h = x.astype(dtype)
        for number in range(cells.num_layers):
            given = [
                [np.asarray(a, dtype) for a in LSTMWeights((cell,)).to_keras()]
                for cell in cells.cells[2 * number : 2 * number + 2]
            ]
            parts = reference.lstm(h, *given[0]), reference.backwards(reference.lstm, h, *given[1])
            h = np.concatenate(parts, -1)
        kernel, bias = (np.asarray(w, dtype) for w in last.get_weights())
        return h @ kernel + bias

    theirs = _their_model(torch, state)
    word = torch.from_numpy(x[:1])
    compare("uzmorph-nn 0.1.0", run, session(x), lambda: theirs(word), lambda: session(x[:1]))


def _their_model(torch: Any, state: Any) -> Any:
    """uzmorph-nn's module without its embedding."""
    lstm = torch.nn.LSTM(64, 64, num_layers=2, bidirectional=True, batch_first=True)
    lstm.load_state_dict(
        {k.removeprefix("lstm."): v for k, v in state.items() if k.startswith("lstm.")}
    )
    kernel, bias = state["hidden2tag.weight"], state["hidden2tag.bias"]

    def run(x: Any) -> Any:
        with torch.inference_mode():
            return torch.nn.functional.linear(lstm(x)[0], kernel, bias)

    return run
