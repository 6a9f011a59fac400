"""Ordinary mistakes: each message says what came, in few words, and names the right call."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tf_lstm_ops import keras as ours
from tf_lstm_ops.inference import Session
from tf_lstm_ops.weights import GRUWeights, LSTMWeights


class My(keras.layers.LSTM):
    """Of the user's."""

    def get_initial_state(self, batch_size=None):
        return super().get_initial_state(batch_size)


class MyCell(keras.layers.GRUCell):
    """Of the user's."""

    def get_initial_state(self, batch_size=None):
        return super().get_initial_state(batch_size)


def weights() -> LSTMWeights:
    """With arrays that would fill pages."""
    return LSTMWeights.from_keras([np.zeros((20, 80)), np.zeros((20, 80)), np.zeros(80)])


def gru_weights() -> GRUWeights:
    return GRUWeights.from_keras([np.zeros((3, 12)), np.zeros((4, 12)), np.zeros((2, 12))])


def model() -> keras.Model:
    return keras.Sequential([keras.Input((None, 3)), ours.LSTM(4, name="me")])


def of(layer: keras.layers.Layer) -> Callable[[], Any]:
    return lambda: Session(keras.Sequential([keras.Input((8, 3)), layer]))


LOAD = "Load it with keras.models.load_model"
MISTAKES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "session of a file": (
        lambda: Session("m.keras"),
        ["Received: 'm.keras'. Session.load", "Session(keras.models.load_model('m.keras'))"],
    ),
    "session of a path": (
        lambda: Session(Path("m.keras")),
        ["Received: 'm.keras'", "Session(keras.models.load_model('m.keras'))"],
    ),
    "session of a layer": (lambda: Session(ours.LSTM(4)), ["Session([layer])"]),
    "session of a list of files": (lambda: Session(["m.keras"]), [f"'m.keras'. {LOAD}"]),
    "session of a number": (lambda: Session([3]), ["the list must have Keras layers. Received: 3"]),
    "session of an array": (lambda: Session(np.zeros(99)), ["Received: numpy.ndarray"]),
    "convert a file": (lambda: ours.convert_model("m.keras"), [f"Received: 'm.keras'. {LOAD}"]),
    "convert weights": (lambda: ours.convert_model(weights()), ["StackedLSTM.from_weights"]),
    "reasons of a file": (lambda: ours.fallback_reasons(Path("m.h5")), [f"'m.h5'. {LOAD}"]),
    "torch of a file": (
        lambda: LSTMWeights.from_torch("net.pt"),
        ["'net.pt' is neither", "from_torch(torch.load('net.pt'))"],
    ),
    "torch of safetensors": (
        lambda: GRUWeights.from_torch(Path("a.safetensors")),
        ["from_safetensors reads such a file"],
    ),
    "torch of a layer": (lambda: LSTMWeights.from_torch(ours.LSTM(4)), ["from_keras reads"]),
    "keras of a model": (
        lambda: LSTMWeights.from_keras(model()),
        ["Of a model, pass a recurrent layer: model.get_layer('me')"],
    ),
    "keras of a file": (lambda: GRUWeights.from_keras("m.keras"), [LOAD]),
    "unknown layer": (
        of(keras.layers.Conv1DTranspose(4, 3, name="me")),
        [
            "layer me: keras.layers.Conv1DTranspose is not a class that a session computes",
            "lists the layers",
        ],
    ),
    "subclass in a session": (of(My(4)), ["it is a subclass of keras.layers.LSTM, whose call may"]),
    "layer_normalization": (
        lambda: ours.LSTM(4, layer_normalization="yes"),
        ["must be True, False, 'haste' or 'addons'. Received: 'yes'"],
    ),
    "layer_normalization of a GRU": (
        lambda: ours.GRU(4, layer_normalization="yes"),
        ["must be True, False or 'haste'. Received: 'yes'"],
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name: str) -> None:
    call, texts = MISTAKES[name]
    with pytest.raises((TypeError, ValueError)) as raised:
        call()
    message = str(raised.value)
    for text in texts:
        assert text in message
    assert len(message) < 400


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_pytorch_modules(kind: str) -> None:
    torch = pytest.importorskip("torch")
    module = getattr(torch.nn, kind)(3, 4)
    text = f"tf_lstm_ops.weights.{kind}Weights.from_torch .*keras.Stacked{kind}.from_weights"
    with pytest.raises(TypeError, match=text):
        ours.convert_model(module)
    for call in (Session, lambda module: Session([module])):
        with pytest.raises(TypeError, match=r"takes a model of Keras\. Use Session\.from_torch"):
            call(module)
    with pytest.raises(ValueError, match="from_torch reads modules of PyTorch"):
        LSTMWeights.from_keras(module)


def test_load_of_another_file(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    model().save(path)
    text = f"{path} is not a file of Session.save (header: magic is not"
    with pytest.raises(ValueError, match=re.escape(text)) as raised:
        Session.load(path)
    assert str(raised.value).endswith(f"Session(keras.models.load_model({str(path)!r}))")


def test_subclasses_have_no_fused_op() -> None:
    layers = [
        My(4, return_sequences=True, name="my"),
        keras.layers.RNN(MyCell(4), return_sequences=True, name="rnn"),
        keras.layers.RNN([MyCell(4), MyCell(4)], return_sequences=True, name="stack"),
        keras.layers.SimpleRNN(4, name="simple"),
    ]
    why = "has no fused op: it is a subclass of keras.layers"
    assert ours.fallback_reasons(keras.Sequential([keras.Input((None, 3)), *layers])) == {
        "my": f"My {why}.LSTM, whose call may differ",
        "rnn": f"MyCell {why}.GRUCell, whose call may differ",
        "stack": f"MyCell {why}.GRUCell, whose call may differ",
        "simple": "it is keras.layers.SimpleRNN; convert_model replaces it",
    }


def test_the_layer_that_reads_backwards_is_named(tmp_path: Path) -> None:
    layers = [
        ours.LSTM(4, return_sequences=True),
        ours.Bidirectional(ours.GRU(4, return_sequences=True), name="both"),
        ours.GRU(2, go_backwards=True, name="last"),
    ]
    session = Session(keras.Sequential([keras.Input((None, 3)), *layers]))
    text = "the session cannot stream: a layer reads the sequence backwards: "
    with pytest.raises(ValueError, match=f"{text}layer 1, both"):
        session.stream()
    session.save(tmp_path / "file")
    with pytest.raises(ValueError, match=f"{text}layer 1 of the file"):
        Session.load(tmp_path / "file").stream()
