"""Sessions of functional models with operations of keras.ops and operators of Python."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from tf_lstm_ops import keras as ours
from tf_lstm_ops.inference import Session

pytestmark = pytest.mark.filterwarnings("ignore:.*supports_masking")

STEPS, FEATURES = 5, 4
# A multiplication by 1 / c and a division by c differ by one rounding.
TOLERANCE = 1e-6
ROW = np.linspace(-1.5, 1.25, FEATURES).astype("float32")


def _of_x(name: str) -> Callable[[Any, Any, Any], Any]:
    """A function of keras.ops of x alone."""
    return lambda x, y, v: getattr(ops, name)(x)


# Of x and y, both [B, T, C], and v [B, C].
OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda x, y, v: x + y,
    "sum_of_constants": lambda x, y, v: 1 + (x + ROW) + 2.0,
    "difference": lambda x, y, v: x - y,
    "difference_of_constants": lambda x, y, v: (1 - x) - ROW,
    "product": lambda x, y, v: x * y,
    "product_of_constants": lambda x, y, v: 2 * (x * ROW),
    "quotient": lambda x, y, v: ops.divide(x / 3, ROW[None, None]),
    "square": lambda x, y, v: ops.square(x) + x * x,
    "negative": lambda x, y, v: -x,
    "maximum": lambda x, y, v: ops.maximum(x, y),
    "minimum": lambda x, y, v: ops.minimum(x, y),
    "one_step_repeated": lambda x, y, v: x * y[:, :1],
    "one_feature_repeated": lambda x, y, v: x * y[..., -1:],
    "concatenate": lambda x, y, v: ops.concatenate([x, y], -1),
    "concatenate_steps": lambda x, y, v: ops.concatenate([x, y], axis=1),
    "last": lambda x, y, v: x[:, -1],
    "second": lambda x, y, v: x[:, 1, :],
    "one_feature": lambda x, y, v: x[..., 2],
    "one_number": lambda x, y, v: x[:, -2, 1:2],
    "steps": lambda x, y, v: x[:, 1:-1],
    "features": lambda x, y, v: x[:, :, :-1],
    "backwards": lambda x, y, v: x[:, ::-1],
    "flip": lambda x, y, v: ops.flip(x, axis=1) + ops.flip(x, axis=-1),
    "mean": lambda x, y, v: ops.mean(x, axis=1) + ops.mean(y, 1, keepdims=True)[:, 0],
    "max": lambda x, y, v: ops.max(x, axis=-2),
    "total": lambda x, y, v: ops.sum(x, axis=1),
    "axes": lambda x, y, v: ops.expand_dims(v, 1) * x + ops.reshape(v, (-1, 1, FEATURES)),
    "transpose": lambda x, y, v: ops.transpose(x, (0, 2, 1))[:, :, -1],
    "squeeze": lambda x, y, v: ops.squeeze(ops.expand_dims(v, 1), axis=1),
    "clip": lambda x, y, v: ops.clip(x, -0.25, 0.5),
    **{
        name: _of_x(name)
        for name in (
            *("relu", "relu6", "sigmoid", "tanh", "softplus", "softsign", "silu", "elu", "selu"),
            *("gelu", "leaky_relu", "hard_sigmoid", "log_sigmoid", "exp", "softmax"),
            *("log_softmax", "hard_silu", "hard_tanh"),
        )
        if hasattr(ops, name)
    },
    "gelu_of_erf": lambda x, y, v: ops.gelu(x, approximate=False),
    "elu_with": lambda x, y, v: ops.elu(x, 0.25) + ops.leaky_relu(x, negative_slope=0.125),
}


def _inputs() -> list[Any]:
    return [keras.Input((None, FEATURES)), keras.Input((None, FEATURES)), keras.Input((FEATURES,))]


def _arrays(rows: int = 3) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = ((rows, STEPS, FEATURES), (rows, STEPS, FEATURES), (rows, FEATURES))
    return [rng.normal(size=shape).astype("float32") for shape in shapes]


def _model(build: Callable[[Any, Any, Any], Any]) -> keras.Model:
    """Of three inputs, each of which is read."""
    x, y, v = _inputs()
    all_read = [keras.layers.ReLU()(each) for each in (x, y, v)]
    return keras.Model([x, y, v], [build(x, y, v), *all_read])


@pytest.mark.parametrize("name", OPERATIONS)
def test_results(name: str) -> None:
    model, arrays = _model(OPERATIONS[name]), _arrays()
    expected = np.asarray(model(arrays)[0])
    result = Session(model)(arrays)[0]
    np.testing.assert_allclose(result, expected, rtol=TOLERANCE, atol=TOLERANCE)


def test_between_recurrent_layers(tmp_path: Any) -> None:
    x = keras.Input((None, FEATURES))
    h = ours.LSTM(FEATURES, return_sequences=True)(2 * x - 1)
    model = keras.Model(x, ours.GRU(3)(h[:, 1:] - x[:, :-1]))
    model.save(tmp_path / "model.keras")
    (given, *_) = _arrays()
    expected = model(given)
    for each in (model, keras.models.load_model(tmp_path / "model.keras")):
        np.testing.assert_allclose(Session(each)(given), expected, rtol=0, atol=TOLERANCE)


def test_within_time_distributed() -> None:
    x = keras.Input((STEPS, FEATURES))
    inner = keras.Model(x, ours.LSTM(2)(1 - x) * 3)
    outer = keras.Input((None, STEPS, FEATURES))
    model = keras.Model(outer, keras.layers.TimeDistributed(inner)(outer))
    given = np.stack(_arrays(2)[:2], axis=1)
    np.testing.assert_allclose(Session(model)(given), model(given), rtol=0, atol=TOLERANCE)


def test_no_mask_behind_an_operation() -> None:
    words = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(7, FEATURES, mask_zero=True)(words)
    model = keras.Model(words, [ours.LSTM(3)(x * 1.5), ours.LSTM(3)(x)])
    given = np.array([[1, 2, 0, 0], [3, 4, 5, 6]])
    for result, expected in zip(Session(model)(given), model(given), strict=True):
        np.testing.assert_allclose(result, expected, rtol=0, atol=TOLERANCE)


REFUSED: dict[str, tuple[str, Callable[[Any, Any, Any], Any]]] = {
    "unknown": ("it is Sqrt, which", lambda x, y, v: ops.sqrt(x)),
    "division": ("it divides by an array", lambda x, y, v: x / y),
    "division_of_constant": ("it divides by an array", lambda x, y, v: 1 / x),
    "division_by_zero": ("it divides by zero", lambda x, y, v: x / 0.0),
    "steps_of_a_constant": ("not one number for each", lambda x, y, v: x + ROW[:, None]),
    "more_axes": ("not one number for each", lambda x, y, v: x + np.ones((1, 1, 1, 4), "f")),
    "repeated": ("it repeats an array", lambda x, y, v: x[:, :4] + v),
    "constant": ("is a constant", lambda x, y, v: ops.maximum(x, 0.0)),
    "float64": ("it computes with float64", lambda x, y, v: x + np.ones(FEATURES)),
    "batch": ("part of the batch", lambda x, y, v: x[1:2, 1]),
    "stride": ("the step 2", lambda x, y, v: x[:, ::2]),
    "new_axis": ("other parts than", lambda x, y, v: x[:, None]),
    "mean_of_features": ("it joins the axes", lambda x, y, v: ops.mean(x, axis=-1)),
    "initial": ("it has initial", lambda x, y, v: ops.max(x, axis=1, initial=0.0)),
    "moved_batch": ("it moves the batch", lambda x, y, v: ops.transpose(x, (1, 0, 2))),
    "changed_batch": ("size of the batch", lambda x, y, v: ops.reshape(v, (-1, 2))),
    "reversed_batch": ("axis is that of the batch", lambda x, y, v: ops.flip(x, axis=0)),
    "softmax_of_steps": ("is not the last one", lambda x, y, v: ops.softmax(x, axis=1)),
    "clip": ("it has the bounds", lambda x, y, v: ops.clip(x, -2.0, -1.0)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    why, build = REFUSED[name]
    with pytest.raises(ValueError, match=rf"layer \w+: [^:]*{why}.*Keep this part"):
        Session(_model(build))


def test_replaced_call() -> None:
    x, y, _ = _inputs()
    result = x + y
    operation = result._keras_history.operation
    operation.call = lambda a, b: a - b
    with pytest.raises(ValueError, match=r"its call was replaced"):
        Session(keras.Model([x, y], result))
