"""State dicts of PyTorch models of others as sessions, beside PyTorch."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tf_lstm_ops.inference import Session, layers
from tf_lstm_ops.weights import LSTMWeights
from zoo.packages import download, only

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.zoo, pytest.mark.downloads("packages with models")]

TEXTS = [
    "the quick brown fox jumps over the lazy dog",
    "le renard brun saute par-dessus le chien paresseux",
    "der schnelle braune Fuchs springt über den faulen Hund",
    "la rapida volpe marrone salta sopra il cane pigro",
    "nopea ruskea kettu hyppää laiskan koiran yli",
]


def milliseconds(call: Callable[[], Any]) -> float:
    """The median of some calls."""
    times = []
    for _ in range(30):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) * 1000


def shown(name: str, error: float, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    ratio = milliseconds(theirs) / milliseconds(ours)
    print(f"\n{name}: error {error:.1e}, {ratio:.2f} times as fast as PyTorch", end="")


def test_language_identifier(tmp_path: Path) -> None:
    """A character-level BiLSTM of two layers; the scores of all characters are added."""
    path = only(download("LanguageIdentifier", tmp_path), "LID_mixed_model.pkl")
    stored = torch.load(path, weights_only=True, map_location="cpu")
    state, index = stored["model_state_dict"], stored["char_to_idx"]
    session = Session.from_torch(
        state,
        [
            ("char_embeddings", "Embedding"),
            ("lstm", "LSTM"),
            ("hidden2lang", "Linear"),
            layers.GlobalSumPooling1D(),
        ],
    )
    embedding = torch.nn.Embedding.from_pretrained(state["char_embeddings.weight"])
    lstm = torch.nn.LSTM(
        embedding.embedding_dim, stored["hidden_dim"], 2, bidirectional=True, batch_first=True
    )
    lstm.load_state_dict({k[5:]: v for k, v in state.items() if k.startswith("lstm.")})
    head = torch.nn.Linear(2 * stored["hidden_dim"], len(stored["lang_to_idx"]))
    head.load_state_dict({k[12:]: v for k, v in state.items() if k.startswith("hidden2lang.")})

    def theirs(x: Any) -> Any:
        with torch.no_grad():
            return head(lstm(embedding(x))[0]).sum(dim=1).numpy()

    error = 0.0
    for text in TEXTS:
        indices = np.array([[index.get(char, len(index)) for char in text]])
        expected, found = theirs(torch.from_numpy(indices)), session(indices)
        error = max(error, np.abs(found - expected).max() / np.abs(expected).max())
        assert found.argmax() == expected.argmax()
    assert error <= 1e-6  # of the largest score; float32 gives about 3e-7
    given = torch.from_numpy(indices)
    shown("LanguageIdentifier", error, lambda: session(indices), lambda: theirs(given))


START, END, LONGEST = 1, 2, 30
LETTERS = "ءآئابتثجحخدذرزسشصضطظعغفقلمنهوُِپچژکگی"


class G2p:
    """The encoder and the decoder of g2p-fa in PyTorch."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.parts = {}
        for part in ("encoder", "decoder"):
            embedding = torch.nn.Embedding.from_pretrained(state[f"{part}.embedding.weight"])
            lstm = torch.nn.LSTM(embedding.embedding_dim, 256, 2, batch_first=True)
            start = f"{part}.rnn."
            lstm.load_state_dict(
                {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}
            )
            self.parts[part] = embedding, lstm
        self.head = torch.nn.Linear(256, 33)
        start = "decoder.fc_out."
        self.head.load_state_dict(
            {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}
        )

    def encode(self, word: Any) -> Any:
        embedding, lstm = self.parts["encoder"]
        return lstm(embedding(torch.from_numpy(word)))[1]

    def step(self, sign: int, states: Any) -> tuple[Any, Any]:
        embedding, lstm = self.parts["decoder"]
        y, states = lstm(embedding(torch.tensor([[sign]])), states)
        return self.head(y)[0, 0].numpy(), states


def sessions(state: dict[str, Any]) -> tuple[Session, Any]:
    """The encoder, which returns the states, and a stream of the decoder."""
    weights = {p: LSTMWeights.from_torch(state, prefix=f"{p}.rnn.") for p in ("encoder", "decoder")}
    word = layers.Input((None,), "int32")
    embedded = layers.Embedding(state["encoder.embedding.weight"])(word)
    _, *states = layers.LSTM(weights["encoder"], return_state=True)(embedded)
    decoder = Session.from_torch(
        state,
        [("decoder.embedding", "Embedding"), ("decoder.rnn", "LSTM"), ("decoder.fc_out", "Linear")],
    )
    return Session.from_graph(word, states), decoder.stream()


def test_g2p_fa(tmp_path: Path) -> None:
    """The phonemes of Persian words, sign by sign, with the states of the encoder of letters."""
    path = only(download("g2p-fa", tmp_path), "data/weights")
    state = torch.load(path, weights_only=True, map_location="cpu")
    theirs = G2p(state)
    encoder, decoder = sessions(state)
    worst = 0.0
    for text in ("سلام", "کتاب", "دانشگاه", "خورشید", "مدرسه"):
        word = np.zeros((1, LONGEST), np.int64)
        signs = [START, *(LETTERS.find(letter) + 3 for letter in text), END]
        word[0, : len(signs)] = signs
        with torch.no_grad():
            states = theirs.encode(word)
            decoder.set_state(encoder(word))
            ours = spoken = START
            for _ in range(LONGEST):
                scores, states = theirs.step(spoken, states)
                found = decoder([ours])
                worst = max(worst, float(np.abs(found[0] - scores).max() / np.abs(scores).max()))
                ours, spoken = int(found[0].argmax()), int(scores.argmax())
                assert ours == spoken
                if spoken == END:
                    break
    assert worst <= 2e-6  # float32 through 30 steps and back
    with torch.no_grad():
        shown("g2p-fa, one sign", worst, lambda: decoder([3]), lambda: theirs.step(3, states))


def test_silero_vad_of_torch_script(tmp_path: Path) -> None:
    """The layers behind the spectrum, by the names of the state dict of the TorchScript file."""
    folder = download("silero-vad", tmp_path)
    state = torch.jit.load(only(folder, "silero_vad.jit")).state_dict()
    chain: list[Any] = []
    for k, stride in enumerate((1, 2, 2, 1)):
        prefix = f"_model.encoder.{k}.reparam_conv"
        chain += [(prefix, "Conv1d", {"stride": stride, "padding": 1}), "ReLU"]
    session = Session.from_torch(state, chain)
    x = np.abs(np.random.default_rng(0).normal(size=(2, 4, 129))).astype(np.float32)
    y = torch.from_numpy(x).transpose(1, 2)
    for k, stride in enumerate((1, 2, 2, 1)):
        weight, bias = (
            state[f"_model.encoder.{k}.reparam_conv.{name}"] for name in ("weight", "bias")
        )
        y = torch.relu(torch.nn.functional.conv1d(y, weight, bias, stride, padding=1))
    expected = y.transpose(1, 2).numpy()
    np.testing.assert_allclose(session(x), expected, rtol=0, atol=1e-6 * np.abs(expected).max())
