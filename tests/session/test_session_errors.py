"""Models that a session does not compute, and wrong arguments: the messages name them."""

import re
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers as stock

from tf_lstm_ops import keras as ours
from tf_lstm_ops.inference import Session

INPUTS = 6
KEEP = "Keep this part of the model in Keras"


def sequential(*layers: keras.Layer) -> keras.Sequential:
    return keras.Sequential([keras.Input((None, INPUTS)), *layers])


class OwnLSTM(ours.LSTM):
    """A class of the user's, which may compute anything."""

    def get_initial_state(self, batch_size=None):
        return super().get_initial_state(batch_size)


class OwnModel(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.layer = ours.LSTM(2)

    def call(self, x: Any) -> Any:
        return self.layer(x)


LAYERS: dict[str, tuple[Any, str]] = {
    "conv": (lambda: stock.Conv1DTranspose(2, 2, name="me"), r"Conv1DTranspose is not a class"),
    "channels": (
        lambda: stock.MaxPooling1D(2, data_format="channels_first", name="me"),
        r"data_format='channels_first'",
    ),
    "softmax": (lambda: stock.Softmax(axis=1, name="me"), r"axis=1"),
    "subclass": (lambda: OwnLSTM(2, name="me"), r"OwnLSTM is not a class"),
    "rnn": (lambda: stock.RNN(stock.LSTMCell(2), name="me"), r"convert_model makes a layer"),
    "activation": (lambda: stock.LSTM(2, activation="selu", name="me"), r"activation is selu"),
    "lambda": (
        lambda: stock.LSTM(2, recurrent_activation=lambda x: x, name="me"),
        r"recurrent_activation is <lambda>",
    ),
    "gru": (lambda: ours.GRU(2, activation="selu", name="me"), r"activation is selu, which has"),
    "norm": (
        lambda: ours.LSTM(2, layer_normalization=True, use_peephole=True, name="me"),
        r"layer_normalization with use_peephole",
    ),
    "dense": (
        lambda: stock.Dense(2, "sparsemax", name="me"),
        r"activation is sparsemax, not one of linear",
    ),
    "float64": (lambda: ours.LSTM(2, dtype="float64", name="me"), r"float64, not float32"),
    "mixed": (lambda: ours.GRU(2, dtype="mixed_bfloat16", name="me"), r"bfloat16, not float32"),
    "both backwards": (
        lambda: stock.Bidirectional(
            stock.LSTM(2, go_backwards=True), backward_layer=stock.LSTM(2), name="me"
        ),
        r"its forward layer has go_backwards=True",
    ),
    "wrapped": (
        lambda: stock.Bidirectional(stock.RNN(stock.LSTMCell(2), name="inner"), name="me"),
        r"its layer forward_inner is a RNN",
    ),
    "distributed": (
        lambda: stock.TimeDistributed(stock.Rescaling(2.0, name="me")),
        r"Rescaling is not a class",
    ),
    "masking": (lambda: stock.Masking(float("nan"), name="me"), r"mask_value must be finite"),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_layers(kind: str) -> None:
    make, why = LAYERS[kind]
    layer = make()
    inputs = keras.Input((None, INPUTS))
    layer(inputs)  # builds it
    with pytest.raises(ValueError, match=rf"layer me: .*{why}.*{KEEP}"):
        Session([layer])


def test_graphs() -> None:
    x = keras.Input((4, INPUTS))
    y = ours.LSTM(INPUTS, return_sequences=True, name="encoder")(x)
    words = keras.Input((4,), name="words")
    models = {
        r"layer sqrt\w*: it is Sqrt, which": keras.Model(x, keras.ops.sqrt(y)),
        r"layer train: its call has further": keras.Model(
            x, stock.LSTM(2, dropout=0.5, name="train")(y, training=True)
        ),
        r"layer table: its input is also that of": keras.Model(
            words, [stock.Embedding(9, 2, name="table")(words), stock.Dense(2)(words)]
        ),
        r"layer late: .*another layer computes": keras.Model(
            words, stock.Embedding(9, 2, name="late")(stock.ReLU()(words))
        ),
        r"layer prelu: .*shared_axes=\[2\]": keras.Model(
            x, stock.PReLU(shared_axes=[2], name="prelu")(x)
        ),
        r"layer norm: .*normalizes axis": keras.Model(
            x, stock.LayerNormalization(axis=1, name="norm")(x)
        ),
        r"layer time: .*have masks": keras.Model(
            words,
            stock.Concatenate(axis=1, name="time")(
                [stock.Embedding(9, 2, mask_zero=True)(words), stock.Embedding(9, 2)(words)]
            ),
        ),
    }
    for message, model in models.items():
        with pytest.raises(ValueError, match=f"{message}.*{KEEP}"):
            Session(model)


def test_models() -> None:
    own = OwnModel()
    own(np.zeros((1, 2, INPUTS), "float32"))
    with pytest.raises(ValueError, match=rf"layer {own.name}: OwnModel is a class of its own"):
        Session(own)
    with pytest.raises(ValueError, match=r"the model s is not built"):
        Session(keras.Sequential([ours.LSTM(2)], name="s"))
    with pytest.raises(ValueError, match=r"layer l is not built"):
        Session([ours.LSTM(2, name="l")])
    with pytest.raises(ValueError, match=r"the list of layers is empty"):
        Session([])
    for wrong in (3, [3], keras.layers.LSTM(2)):
        with pytest.raises(TypeError, match=r"layers"):
            Session(wrong)
    with pytest.raises(ValueError, match=r"number of features is not known"):
        Session([stock.Masking()])


def test_layers_that_do_not_fit() -> None:
    first, second, third = (
        sequential(ours.LSTM(4, name="a")),
        sequential(ours.GRU(3, name="b")),
        sequential(ours.GRU(INPUTS, name="c")),
    )
    with pytest.raises(ValueError, match=r"layer 1, b \(.*axes|layer 1, b \(.*is 4, must be 6"):
        Session([*first.layers, *second.layers])
    with pytest.raises(ValueError, match=r"layer 1, b \(.*has 2 axes, must have 3"):
        Session([*third.layers, *second.layers])


@pytest.mark.parametrize("threads, error", [(0, ValueError), (257, ValueError), (1.5, TypeError)])
def test_threads(threads: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=rf"threads .*{threads}"):
        Session(sequential(ours.LSTM(2)), threads=threads)


def test_arguments_of_a_session() -> None:
    session = Session(sequential(ours.LSTM(2, return_sequences=True)))
    x = np.zeros((3, 4, INPUTS), "float32")
    for wrong in (x[0], x[:, :, 1:], np.zeros((3, 4, INPUTS, 1))):
        shape = re.escape(str(wrong.shape))
        with pytest.raises(ValueError, match=rf"x .*\[batch, steps, 6\]. Received: {shape}"):
            session(wrong)
    for wrong in (x.astype(complex), np.full((3, 4, INPUTS), "a"), x.astype(object)):
        with pytest.raises(TypeError, match="x must be an array of real numbers"):
            session(wrong)
    with pytest.raises(ValueError, match=r"mask must have the shape \[3, 4\]. Received: \(4, 3\)"):
        session(x, np.ones((4, 3)))
    outs = {
        r"type float32. Received: float64": np.zeros((3, 4, 2)),
        r"type float32. Received: list": [0],
        r"shape \(3, 4, 2\). Received: \(3, 2\)": np.zeros((3, 2), "float32"),
        r"C-contiguous": np.zeros((3, 2, 4), "float32").swapaxes(1, 2),
        r"must not share memory": x.reshape(-1)[:24].reshape(3, 4, 2),
    }
    for message, out in outs.items():
        with pytest.raises((TypeError, ValueError), match=f"out .*{message}"):
            session(x, out=out)


def test_arguments_of_a_stream() -> None:
    session = Session(sequential(ours.LSTM(2, return_sequences=True)))
    for batch, error in (
        (0, ValueError),
        (-1, ValueError),
        (1.0, TypeError),
        (1 << 40, ValueError),
    ):
        with pytest.raises(error, match=rf"batch.*{batch}"):
            session.stream(batch)
    stream = session.stream(3)
    for wrong in ((3,), (2, INPUTS), (3, 5), (3, 0, INPUTS), (2, 1, INPUTS), (3, 1, 1, INPUTS)):
        with pytest.raises(ValueError, match=rf"x .*Received: {re.escape(str(wrong))}"):
            stream(np.zeros(wrong))
    with pytest.raises(TypeError, match="x must be an array of real numbers"):
        stream(np.zeros((3, INPUTS), complex))
    with pytest.raises(ValueError, match=r"out must have the shape \(3, 2\)"):
        stream(np.zeros((3, INPUTS)), out=np.zeros((3, 1), "float32"))
    for rows, error in (([3], ValueError), ([-1], ValueError), ([0.5], TypeError)):
        with pytest.raises(error, match="rows"):
            stream.reset(rows)
    for state, message in (
        ([np.zeros((3, 2))], r"2 arrays. Received: 1"),
        ([np.zeros((3, 2)), np.zeros((2, 2))], r"state\[1\] must have the shape \(3, 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            stream.set_state(state)


@pytest.mark.parametrize(
    "layer", [ours.LSTM(2, go_backwards=True), ours.Bidirectional(ours.GRU(2))], ids=["one", "two"]
)
def test_no_stream_backwards(layer: keras.Layer) -> None:
    session = Session(sequential(layer))
    with pytest.raises(ValueError, match="backwards"):
        session.stream()


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(FileNotFoundError):
        Session.load(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"file: the file is empty"):
        Session.load(path)
    Session(sequential(ours.LSTM(2))).save(path)
    content = bytearray(path.read_bytes())
    path.write_bytes(content[:-64])
    with pytest.raises(ValueError, match=r"file: .*file_size"):
        Session.load(path)
    content[64] = 77  # the kind of the first layer
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"layer 0.*kind.*77"):
        Session.load(path)
    content[8] = 3
    path.write_bytes(content)
    with pytest.raises(ValueError, match="version"):
        Session.load(path)
