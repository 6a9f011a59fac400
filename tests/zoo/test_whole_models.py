"""Whole models of packages in sessions: the results of the package, and how fast.

The loops are those of the packages, in their own code where it runs without further packages.
"""

import contextlib
import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tf_lstm_ops.files.hdf5 import read_model as read
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import load_h5_weights
from tf_lstm_ops.weights import LSTMWeights
from zoo import reference, sessions
from zoo.comparison import compare, load_module, seconds
from zoo.packages import download, only

pytestmark = [pytest.mark.zoo, pytest.mark.downloads("packages with models")]


def print_loop(name: str, theirs: Callable[[], Any], ours: Callable[[], Any]) -> None:
    """Requires equal results of the two loops, and prints how fast they are."""
    assert theirs() == ours()
    ratio = seconds(theirs, 1) / seconds(ours)
    print(f"\n| {name}, the whole loop | equal | | {ratio:.1f} |", flush=True)


def cast(dtype: Any, arrays: Sequence[Any]) -> list[Any]:
    return [np.asarray(each, dtype) for each in arrays]


WORDS = ["activationist", "zyzzogeton", "frobnicate", "syzygial", "lstm", "grumbler", "x"]


def test_g2p_en(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """Road: arrays of an .npz file, GRUWeights.from_torch, from_layers, a stream. 14 lines.

    The original is the package's `predict` in NumPy.
    """
    package = download("g2p-en", tmp_path)
    absent: dict[str, Any] = {
        "nltk": {"pos_tag": None, "data": type("", (), {"find": lambda name: None})},
        "nltk.corpus": {"cmudict": type("", (), {"dict": dict})},
        "nltk.tokenize": {"TweetTokenizer": type("", (), {"tokenize": None})},
        "inflect": {"engine": lambda: None},
    }
    g2p = load_module(only(package, "g2p.py"), monkeypatch, absent).G2p()
    with np.load(only(package, "checkpoint20.npz")) as file:
        arrays = {name: np.asarray(array, "float32") for name, array in file.items()}
    encode, decode = sessions.g2p_en(arrays)

    stream = decode.stream()

    def ours(word: str) -> list[str]:
        stream.set_state([encode([[g2p.g2idx.get(each, 1) for each in (*word, "</s>")]])])
        found: list[int] = []
        last = 2  # <s>
        while len(found) < 20:
            last = int(stream(np.array([last], np.int32)).argmax())
            if last == 3:  # </s>
                break
            found.append(last)
        return [g2p.idx2p[each] for each in found]

    print_loop(
        "g2p-en 2.1.0", lambda: [g2p.predict(w) for w in WORDS], lambda: [ours(w) for w in WORDS]
    )

    letters, phonemes = rng.integers(3, 29, (64, 12)), rng.integers(3, 74, (64, 10))

    def run(dtype: Any) -> Any:
        """The logits for given phonemes."""
        own = {name: np.asarray(array, dtype) for name, array in arrays.items()}
        encoder, decoder = (_gru_of_torch(own, part) for part in ("enc", "dec"))
        h = reference.gru(own["enc_emb"][letters], *encoder)[:, -1]
        h = reference.gru(own["dec_emb"][phonemes], *decoder, h=h)
        return h @ own["fc_w"].T + own["fc_b"]

    together = decode.stream(len(letters))
    together.set_state([encode(letters)])
    found = together(phonemes)
    (word,) = WORDS[:1]
    compare("g2p-en 2.1.0", run, found, lambda: g2p.predict(word), lambda: ours(word))


def _gru_of_torch(arrays: dict[str, Any], part: str) -> list[Any]:
    """The arguments of `reference.gru`: with the gates z, r, h instead of r, z, n."""
    kernel, recurrent, *biases = (
        np.concatenate([np.split(arrays[f"{part}_{name}"], 3)[gate] for gate in (1, 0, 2)])
        for name in ("w_ih", "w_hh", "b_ih", "b_hh")
    )
    return [kernel.T, recurrent.T, np.stack(biases)]


class DataOnly(pickle.Unpickler):
    """Reads the vocabularies of a tokenizer without its class."""

    def find_class(self, module: str, name: str) -> Any:
        return {
            "Tokenizer": type("Tokenizer", (), {}),
            "OrderedDict": dict,
            "defaultdict": lambda *_: {},
            "int": int,
        }[name]


class Predictor:
    """What the package's search needs of a model."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def predict(self, x: Any, verbose: int = 0) -> Any:
        found = self._session(x)
        if not isinstance(found, list | tuple):
            return None, found
        shares, state = found
        return shares[:, np.newaxis], state


def netra_weights(model: Any) -> dict[str, list[Any]]:
    """The weights of each layer, by the role that `build_inference_models` gives it."""
    by_class: dict[str, list[Any]] = {}
    for layer in model.layers:
        by_class.setdefault(type(layer).__name__, []).append(layer.get_weights())
    letters, signs = by_class["Embedding"]
    return {
        **{"letters": letters, "signs": signs, "encoder": by_class["Bidirectional"][0]},
        **{"projection": by_class["TimeDistributed"][0], "decoder": by_class["GRU"][0]},
        **{"attention": by_class["AdditiveAttention"][0], "output": by_class["Dense"][0]},
    }


NAMES = ["sokha", "srolanh", "angkor"]


def test_netra_transliterate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Road: keras.models.load_model, from_layers and from_graph. 21 lines.

    The original is the package's beam search with Keras' models.
    """
    package = download("netra-transliterate", tmp_path)
    stock = keras.models.load_model(only(package, "*.keras"), compile=False)
    absent = {"khmerspell": {"khnormal": str}}
    module = load_module(only(package, "_inference.py"), monkeypatch, absent)
    with open(only(package, "*.pkl"), "rb") as file:
        assets = DataOnly(file).load()
    steps, weights = assets["max_eng_len"], netra_weights(stock)
    encode, decode = sessions.netra_transliterate(weights, steps)

    theirs, ours = module.Transliterator(), module.Transliterator()
    parts = module.build_inference_models(stock)
    for each, models in ((theirs, parts[:2]), (ours, (Predictor(encode), Predictor(decode)))):
        each._loaded, each._gru_units, each._max_eng_len = True, parts[2], steps
        each._encoder, each._decoder = models
        each._eng_tokenizer, each._khm_tokenizer = assets["eng_tokenizer"], assets["khm_tokenizer"]
    theirs._eng_tokenizer.texts_to_sequences = lambda texts: [
        [assets["eng_tokenizer"].word_index[letter] for letter in text] for text in texts
    ]
    assert all(theirs.transliterate(name) for name in NAMES)
    print_loop(
        "netra-transliterate 1.0.1",
        lambda: [theirs.transliterate(name) for name in NAMES],
        lambda: [ours.transliterate(name) for name in NAMES],
    )

    x, y = rng.integers(1, 28, (8, steps)), rng.integers(1, 81, (8, 20))

    def run(dtype: Any) -> Any:
        own = {name: cast(dtype, arrays) for name, arrays in weights.items()}
        embedded = own["letters"][0][x]
        directions = (
            reference.gru(embedded, *own["encoder"][:3]),
            reference.backwards(reference.gru, embedded, *own["encoder"][3:]),
        )
        kernel, bias = own["projection"]
        projected = np.concatenate(directions, -1) @ kernel + bias
        h = reference.gru(own["signs"][0][y], *own["decoder"])
        context = reference.additive_attention(h, projected, *own["attention"])
        kernel, bias = own["output"]
        return reference.softmax(np.concatenate([h, context], -1) @ kernel + bias)

    keys = encode(x)
    state, found = np.zeros((8, parts[2]), "float32"), []
    for step in y.T:
        shares, state = decode([step[:, np.newaxis], state, keys])
        found.append(shares)
    given = [y[:1, :1], np.zeros((1, parts[2]), "float32"), keys[:1]]
    compare(
        "netra-transliterate 1.0.1, one step",
        run,
        np.stack(found, 1),
        lambda: parts[1].predict_on_batch(given),
        lambda: decode(given),
    )


def test_textgenrnn(tmp_path: Path, rng: np.random.Generator) -> None:
    """Road: read of the .hdf5 file, LSTMWeights.from_keras, from_graph. 11 lines.

    The package does not run with Keras 3: the original is its model of layers of Keras.
    """
    package = download("textgenrnn", tmp_path)
    given = {
        name: [each.value for each in own]
        for name, own in read(only(package, "*.hdf5")).layers.items()
    }
    session = sessions.textgenrnn(given, 40)
    stock = stock_textgenrnn(given)
    vocabulary = json.loads(only(package, "textgenrnn_vocab.json").read_text())
    characters = {number: character for character, number in vocabulary.items()}

    def generate(predict: Callable[[Any], Any], prefix: str, length: int) -> str:
        """The loop of the package with temperature 0."""
        text = ["<s>", *prefix]
        while len(text) < length:
            last = [vocabulary.get(each, 0) for each in text[-40:]]
            (shares,) = predict(np.array([[0] * (40 - len(last)) + last]))
            text.append(characters[int(shares.argmax())])
        return "".join(text[1:])

    print_loop(
        "textgenrnn 2.0.0",
        lambda: generate(stock.predict_on_batch, "What", 60),
        lambda: generate(session, "What", 60),
    )
    assert generate(session, "My cat", 200) == generate(stock.predict_on_batch, "My cat", 200)

    x = rng.integers(1, 465, (8, 40))

    def run(dtype: Any) -> Any:
        own = {name: cast(dtype, arrays) for name, arrays in given.items()}
        parts = [own["embedding"][0][x]]
        for name in ("rnn_1", "rnn_2"):
            weights = LSTMWeights.from_keras(given[name]).to_keras()
            parts.append(reference.lstm(parts[-1], *cast(dtype, weights)))
        averages = reference.weighted_average(np.concatenate(parts, -1), own["attention"][0])
        return reference.softmax(averages @ own["output"][0] + own["output"][1])

    compare(
        "textgenrnn 2.0.0, 8 texts",
        run,
        session(x),
        lambda: stock.predict_on_batch(x),
        lambda: session(x),
    )


def stock_textgenrnn(given: dict[str, Any]) -> keras.Model:
    """The package's model of stock layers; the sum over time is an average times 40."""
    x = keras.Input((40,))
    parts = [keras.layers.Embedding(465, 100, name="embedding")(x)]
    for name in ("rnn_1", "rnn_2"):
        parts.append(keras.layers.LSTM(128, return_sequences=True, name=name)(parts[-1]))
    joined = keras.layers.Concatenate()(parts)
    scores = keras.layers.Dense(1, use_bias=False, name="attention")(joined)
    mean = keras.layers.Dot((1, 1))([keras.layers.Softmax(axis=1)(scores), joined])
    output = keras.layers.Dense(465, "softmax", name="output")(keras.layers.Flatten()(mean))
    model = keras.Model(x, output)
    for name, arrays in given.items():
        if arrays:
            is_lstm = name.startswith("rnn")
            arrays = LSTMWeights.from_keras(arrays).to_keras() if is_lstm else arrays
            model.get_layer(name).set_weights(arrays)
    return model


THAI = "ตัดคำได้ดีมาก ฉันอยากกินข้าวของฉันและนอนอย่างสงบ Thai text 2026 วันนี้อากาศดีมากเราจึงไปเดินเล่นที่สวน"


def test_deepcut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """Road: load_h5_weights into the package's model, Session(model). 2 lines.

    The original is the same model in Keras, with the package's loop.
    """
    package = download("deepcut", tmp_path)
    absent: dict[str, Any] = {"scipy": {"sparse": None}, "scipy.sparse": {}}
    absent |= {"six": {"string_types": str}}
    path = only(package, "deepcut.py")
    module = load_module(path, monkeypatch, absent)
    stock = module.get_convo_nn2()
    load_h5_weights(stock, only(package, "*.h5"))
    session = Session(stock)

    theirs, ours = (module.DeepcutTokenizer.__new__(module.DeepcutTokenizer) for _ in range(2))
    theirs.model, ours.model = stock, type("", (), {"predict": staticmethod(session)})
    stock.predict = stock.predict_on_batch
    print_loop("deepcut 0.7.0.0", lambda: theirs.tokenize(THAI), lambda: ours.tokenize(THAI))
    assert len(ours.tokenize(THAI)) > 15

    x = [rng.integers(0, 178, (256, 21)), rng.integers(0, 12, (256, 21))]
    layers: dict[str, list[Any]] = {}
    for layer in stock.layers:
        if layer.weights:
            layers.setdefault(type(layer).__name__, []).append(layer.get_weights())

    def run(dtype: Any) -> Any:
        own = {kind: [cast(dtype, each) for each in every] for kind, every in layers.items()}
        first, second = own["BatchNormalization"]
        a = normalized(own["Embedding"][0][0][x[0]], *first)
        branches = [
            deepcut_branch(a, *convolution, *dense)
            for convolution, dense in zip(own["Conv1D"], own["TimeDistributed"], strict=True)
        ]
        parts = [a, np.max(branches, axis=0), own["Embedding"][1][0][x[1]]]
        flat = normalized(np.concatenate(parts, -1), *second).reshape(256, -1)
        (k, b), (kernel, bias) = own["Dense"]
        return reference.sigmoid((flat @ k + b).clip(0) @ kernel + bias)

    compare(
        "deepcut 0.7.0.0, 256 letters",
        run,
        session(x),
        lambda: stock.predict_on_batch(x),
        lambda: session(x),
    )


def normalized(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    return (x - mean) / np.sqrt(variance + x.dtype.type(1e-3)) * gamma + beta


def deepcut_branch(x: Any, kernel: Any, bias: Any, last: Any, last_bias: Any) -> Any:
    """A convolution, a Dense layer, and zeros behind it."""
    size = len(kernel)
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=1)
    y = np.einsum("ntck,kcu->ntu", windows, kernel, optimize=True) + bias
    return np.pad(y.clip(0) @ last + last_bias, [(0, 0), (0, size - 1), (0, 0)])


@contextlib.contextmanager
def one_thread(torch: Any) -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def test_uzmorph_nn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Road: a state dict of PyTorch, LSTMWeights.from_torch, from_layers. 8 lines.

    The original is the package's module in PyTorch, with one thread as the session: for one word
    two threads are slower.
    """
    torch = pytest.importorskip("torch")
    package = download("uzmorph-nn", tmp_path)
    state = torch.load(only(package, "morph_bilstm.pth"), map_location="cpu", weights_only=True)
    session = sessions.uzmorph_nn(state)
    module = load_module(only(package, "model.py"), monkeypatch, {})
    letters = json.loads(only(package, "char_vocab.json").read_text())
    stock = module.MorphBiLSTM(len(letters), len(state["hidden2tag.bias"]))
    stock.load_state_dict(state)
    words = ["kitoblarimizdan", "maktabga", "bolalarning", "yozuvchisi", "borayotgan"]
    x = np.array([[letters.get(c, letters["UNK"]) for c in f"{word:_<30}"] for word in words])
    for row, word in zip(x, words, strict=True):
        row[len(word) :] = letters["PAD"]
    tensor = torch.from_numpy(x)

    def theirs(dtype: Any = torch.float32, tensor: Any = tensor) -> Any:
        with one_thread(torch), torch.inference_mode():
            return stock.to(dtype)(tensor).numpy()

    np.testing.assert_array_equal(session(x).argmax(-1), theirs().argmax(-1))
    compare(
        "uzmorph-nn 0.1.0, one word",
        lambda dtype: theirs({np.float64: torch.float64, np.float32: torch.float32}[dtype]),
        session(x),
        lambda: theirs(tensor=tensor[:1]),
        lambda: session(x[:1]),
    )
