"""The functions of activation layers: the table of the C++ code, and which of them are the same."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from session import c_library as c
from session import session_file as f
from tf_lstm_ops import _activations, _library
from tf_lstm_ops.inference import file, layers


def test_python_has_the_table_of_the_library() -> None:
    _library.load()
    function = ctypes.CDLL(str(_library.path())).tf_lstm_ops_function
    function.restype = ctypes.c_char_p
    found, rows = {}, set()
    for number in range(-1, 64):
        count, is_of_rows = ctypes.c_int(), ctypes.c_int()
        name = function(number, ctypes.byref(count), ctypes.byref(is_of_rows))
        if name is not None:
            found[name.decode()] = number, count.value
            rows |= {name.decode()} if is_of_rows.value else set()
    assert found == {f.name: (f.number, len(f.defaults)) for f in _activations.TABLE}
    assert rows == {"softmax", "log_softmax"}


def activate(number: int, x: np.ndarray, *numbers: float) -> np.ndarray:
    """By a session, of x [..., width]."""
    layer = f.Layer(f.ACTIVATION, 0, 0, activation=number)
    graph = f.Graph([f.Input([*x.shape[1:]])], [f.Node(layer, (0,), numbers=numbers)], [2])
    [y] = c.Session(c.load(c.path()), f.write_graph(graph)).run([x])
    return y


SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 88.7, 88.8, -87.3, -104.0]
X = np.array([[*SPECIAL, *np.linspace(-20, 20, 300)]], np.float32)


@pytest.mark.parametrize("name", ["elu_with", "celu"])
def test_elu_with_one_is_elu(name: str) -> None:
    elu = activate(file.ALL_FUNCTIONS["elu"], X)
    y = activate(file.ALL_FUNCTIONS[name], X, 1.0)
    np.testing.assert_array_equal(y.view(np.uint32), elu.view(np.uint32))


@pytest.mark.parametrize("alpha", [-0.7, 1.0, 1.5])
def test_celu(alpha: float) -> None:
    """Of a negative number the exponential grows, and its difference to 1 is rounded twice."""
    with np.errstate(over="ignore"):
        below = alpha * np.expm1(np.minimum(X.astype(np.float64), 0) / np.float32(alpha))
        want = np.where(X > 0, X, below).astype(np.float32)
    y = activate(file.ALL_FUNCTIONS["celu"], X, alpha)
    np.testing.assert_allclose(y, want, rtol=1e-6, atol=1e-7)


def _softplus(z: np.ndarray) -> np.ndarray:
    return np.logaddexp(z, 0.0)


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("exponential", np.exp),
        ("softplus", _softplus),
        ("log_sigmoid", lambda z: -_softplus(-z)),
        ("mish", lambda z: z * -np.expm1(-2 * _softplus(z)) / (1 + np.exp(-2 * _softplus(z)))),
        ("silu", lambda z: z / (1 + np.exp(-z))),
        ("elu", lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0)))),
    ],
)
def test_errors(name: str, reference: Callable[[np.ndarray], np.ndarray]) -> None:
    """Infinity and NaN too. 4 to 8 units in the last place, for an exponential, a logarithm and
    quotients of them; results below 2^-126 may be 0."""
    with np.errstate(all="ignore"):
        want = reference(X.astype(np.float64)).astype(np.float32)
    y = activate(file.ALL_FUNCTIONS[name], X)
    np.testing.assert_allclose(y, want, rtol=8 * 2.0**-24, atol=2.0**-126)


@pytest.mark.parametrize("function", [("relu6", [0.3]), ("swish", []), ("nope", []), ("", [1.0])])
def test_an_unknown_name_beside_numbers(function: Any) -> None:
    with pytest.raises(ValueError, match="activation must be"):
        layers.Activation(function)
