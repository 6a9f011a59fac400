"""Options of recurrent layers of sessions that come from ONNX: functions with numbers, a bound of
their arguments, and constant initial states, in calls and streams, beside float64.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tf_lstm_ops._activations import BY_NAME, OF_NODES
from tf_lstm_ops.inference import Session, file, layers
from tf_lstm_ops.inference.layers.recurrent import with_functions

Array = npt.NDArray[Any]
B, T, FEATURES, H = 3, 6, 5, 7
ALPHA, BETA = 0.6, 0.3
# By the number in the file, from the text of ONNX's operators.
FUNCTIONS: dict[int, Callable[[Array], Array]] = {
    OF_NODES["affine"].number: lambda z: ALPHA * z + BETA,
    OF_NODES["scaledtanh"].number: lambda z: ALPHA * np.tanh(BETA * z),
    OF_NODES["hardsigmoid"].number: lambda z: np.clip(ALPHA * z + BETA, 0, 1),
    OF_NODES["thresholdedrelu"].number: lambda z: np.where(z > ALPHA, z, 0),
    OF_NODES["elu"].number: lambda z: np.where(z > 0, z, ALPHA * np.expm1(np.minimum(z, 0))),
    OF_NODES["leakyrelu"].number: lambda z: np.where(z > 0, z, ALPHA * z),
    OF_NODES["softplus"].number: lambda z: np.logaddexp(0, z),
    BY_NAME["sigmoid"].number: lambda z: 1 / (1 + np.exp(-z)),
    BY_NAME["tanh"].number: np.tanh,
    BY_NAME["relu"].number: lambda z: np.maximum(z, 0),
    BY_NAME["softsign"].number: lambda z: z / (1 + np.abs(z)),
}
SIGMOID, TANH = BY_NAME["sigmoid"].number, BY_NAME["tanh"].number
WITH_NUMBERS = sorted(OF_NODES, key=lambda name: OF_NODES[name].number)
BOUNDS = [0.0, 0.4]
# Weights of 0.2 keep the states of functions without bounds small; sums of 12 numbers of float32.
TOLERANCE = 2e-6


def arrays(rng: Any, gates: int, peepholes: bool = False) -> list[Array]:
    shapes = [(FEATURES, gates * H), (H, gates * H), (gates * H,), *[(3, H)] * peepholes]
    return [0.2 * rng.standard_normal(shape, np.float32) for shape in shapes]


def lstm(x: Array, weights: list[Array], functions: Any, bound: float, h: Any, c: Any) -> Array:
    kernel, recurrent, bias, peephole = (array.astype(float) for array in weights)
    f, g, state = (FUNCTIONS[number] for number in functions)
    clip = (lambda z: np.clip(z, -bound, bound)) if bound else (lambda z: z)
    outputs = []
    for t in range(x.shape[1]):
        zi, zf, zc, zo = np.split(x[:, t] @ kernel + h @ recurrent + bias, 4, axis=1)
        i, forget = f(clip(zi + peephole[0] * c)), f(clip(zf + peephole[1] * c))
        c = forget * c + i * g(clip(zc))
        h = f(clip(zo + peephole[2] * c)) * state(clip(c))
        outputs.append(h)
    return np.stack(outputs, axis=1)


def changed(layer: Any, functions: Any, bound: float) -> Any:
    """The layer with functions of ALPHA and BETA."""
    own = [(number, ALPHA, BETA) for number in functions]
    layer.records = [with_functions(record, own, bound) for record in layer.records]
    return layer


def require_same(session: Session, x: Array, want: Array) -> None:
    """A call, single rows and streams."""
    np.testing.assert_allclose(session(x), want, rtol=TOLERANCE, atol=TOLERANCE)
    for rows in (x, x[:1]):  # one row has a function of its own
        whole, stream = session(rows), session.stream(len(rows))
        for _ in range(2):
            steps = np.stack([stream(rows[:, t]) for t in range(T)], axis=1)
            np.testing.assert_array_equal(steps, whole)
            stream.reset()
        stream(rows)
        stream.reset([0])
        np.testing.assert_array_equal(stream(rows[:, 0])[0], whole[0, 0])


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("name", WITH_NUMBERS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_lstm(name: str, place: int, bound: float, rng: Any) -> None:
    functions = [SIGMOID, TANH, TANH]
    functions[place] = OF_NODES[name].number
    weights = arrays(rng, 4, peepholes=True)
    h, c = rng.standard_normal((2, H))
    layer = layers.LSTM(weights, return_sequences=True, initial_state=[h, c])
    x = rng.standard_normal((B, T, FEATURES), np.float32)
    want = lstm(x, weights, functions, bound, np.float32(h), np.float32(c))
    require_same(Session.from_layers([changed(layer, functions, bound)]), x, want)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("reset_after", [False, True])
def test_gru(reset_after: bool, bound: float, rng: Any) -> None:
    f, g = OF_NODES["hardsigmoid"].number, OF_NODES["leakyrelu"].number
    kernel, recurrent, bias = arrays(rng, 3)
    both = np.stack([bias, np.zeros_like(bias)])
    (h,) = rng.standard_normal((1, H))
    layer = layers.GRU(
        [kernel, recurrent, both if reset_after else bias],
        return_sequences=True,
        initial_state=[h],
    )
    x = rng.standard_normal((B, T, FEATURES), np.float32)
    clip = (lambda z: np.clip(z, -bound, bound)) if bound else (lambda z: z)
    state, want = np.broadcast_to(np.float32(h), (B, H)), []
    for t in range(T):
        xz, xr, xn = np.split(x[:, t] @ kernel.astype(float) + bias, 3, axis=1)
        uz, ur, un = np.split(recurrent.astype(float), 3, axis=1)
        z, r = (FUNCTIONS[f](clip(a + state @ u)) for a, u in ((xz, uz), (xr, ur)))
        product = r * (state @ un) if reset_after else (r * state) @ un
        state = z * state + (1 - z) * FUNCTIONS[g](clip(xn + product))
        want.append(state)
    session = Session.from_layers([changed(layer, [f, g], bound)])
    require_same(session, x, np.stack(want, axis=1))


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("number", FUNCTIONS)
def test_plain_rnn(number: int, bound: float, rng: Any) -> None:
    kernel, recurrent, bias = arrays(rng, 1)
    (h,) = rng.standard_normal((1, H))
    layer = layers.SimpleRNN([kernel, recurrent, bias], return_sequences=True, initial_state=[h])
    x = rng.standard_normal((B, T, FEATURES), np.float32)
    state, want = np.broadcast_to(np.float32(h), (B, H)), []
    for t in range(T):
        z = x[:, t] @ kernel.astype(float) + state @ recurrent.astype(float) + bias
        state = FUNCTIONS[number](np.clip(z, -bound, bound) if bound else z)
        want.append(state)
    session = Session.from_layers([changed(layer, [number], bound)])
    require_same(session, x, np.stack(want, axis=1))


def test_nan_is_not_clipped(rng: Any) -> None:
    layer = changed(layers.LSTM(arrays(rng, 4, True), return_sequences=True), [SIGMOID] * 3, 1.0)
    x = rng.standard_normal((1, 2, FEATURES), np.float32)
    x[0, 1, 0] = np.nan
    assert np.isnan(Session.from_layers([layer])(x)).any(axis=-1).tolist() == [[False, True]]


@pytest.mark.parametrize("directions", [1, 2])
def test_initial_states_of_each_layer(directions: int, rng: Any) -> None:
    """Both layers, both directions: equal to states that a call gives."""
    from tf_lstm_ops.weights import CellWeights, LSTMWeights

    sizes = [FEATURES, directions * H]
    cells = [
        CellWeights(*(rng.standard_normal(s) for s in ((n, 4 * H), (H, 4 * H), 4 * H, 4 * H)))
        for n in sizes
        for _ in range(directions)
    ]
    weights = LSTMWeights(tuple(cells), directions)
    states = rng.standard_normal((4 * directions, H)).astype(np.float32)
    own = layers.LSTM(weights, return_sequences=True, return_state=True, initial_state=states)
    given = layers.LSTM(weights, return_sequences=True, return_state=True)
    x, inputs = layers.Input((None, FEATURES)), [layers.Input((H,)) for _ in states]
    first = Session.from_graph(x, [*own(x)])
    second = Session.from_graph([x, *inputs], [*given(x, initial_state=inputs)])
    data = rng.standard_normal((B, T, FEATURES), np.float32)
    repeated = [np.tile(state, (B, 1)) for state in states]
    for a, b in zip(first(data), second([data, *repeated]), strict=True):
        np.testing.assert_array_equal(a, b)
    empty = first(data[:, :0])
    for a, b in zip(empty[1:], repeated, strict=True):
        np.testing.assert_array_equal(a, b)


def test_states_of_another_shape(rng: Any) -> None:
    weights = arrays(rng, 4)
    for states in ([np.zeros(H)], [np.zeros(H + 1), np.zeros(H)], [np.zeros(H)] * 3):
        with pytest.raises(ValueError, match=r"layer l: initial_state must have the shapes"):
            layers.LSTM(weights, initial_state=states, name="l")


WRONG = {
    "a number that is no number": (0, np.nan),
    "a negative bound": (6, -1.0),
    "neither coupled nor not": (7, 0.5),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_numbers_in_a_file(kind: str, rng: Any) -> None:
    index, value = WRONG[kind]
    layer = changed(layers.LSTM(arrays(rng, 4)), [OF_NODES["elu"].number] * 3, 1.0)
    numbers = layer.records[0].arrays[0]["functions"].copy()
    numbers[index] = value
    own = [{**layer.records[0].arrays[0], "functions": numbers}]
    layer.records = [dataclasses.replace(layer.records[0], arrays=own)]
    with pytest.raises(ValueError, match=rf"number {index} of its functions is"):
        Session.from_layers([layer])


def test_functions_that_a_file_cannot_have(rng: Any) -> None:
    layer = layers.LSTM(arrays(rng, 4))
    end = max(function.number for function in OF_NODES.values()) + 1
    for number in (11, 63, end):
        layer.records = [dataclasses.replace(layer.records[0], activation=number)]
        with pytest.raises(ValueError, match="activation is"):
            Session.from_layers([layer])


def test_version_1_has_no_initial_states(rng: Any) -> None:
    plain = layers.LSTM(arrays(rng, 4))
    other = layers.LSTM(arrays(rng, 4), initial_state=[np.ones(H)] * 2)
    assert [file.write(_graph(each))[8] for each in (plain, other)] == [1, 2]


def _graph(layer: Any) -> Any:
    from tf_lstm_ops.inference import graph

    x = layers.Input((None, FEATURES))
    return graph.lower(x, layer(x))
