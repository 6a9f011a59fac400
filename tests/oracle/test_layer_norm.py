"""The oracle of layer normalisation: its gradients against complex steps, its forward pass against
Keras' LayerNormalization."""

import keras
import numpy as np
import pytest

from oracle import derivatives
from oracle.layer_norm import Arguments, Options, Results, layer_norm, layer_norm_backward

BATCH, TIME, INPUTS, UNITS = 3, 4, 2, 5


def random_arguments(rng, gates: int) -> Arguments:
    is_lstm = gates == 4
    shapes = [
        (BATCH, TIME, INPUTS),
        (BATCH, UNITS),
        (BATCH, UNITS) if is_lstm else (0,),
        (INPUTS, gates * UNITS),
        (UNITS, gates * UNITS),
        (4 * UNITS,) if is_lstm else (2, 3 * UNITS),
        (gates * UNITS,),
        (gates * UNITS,),
        *[(UNITS,) if is_lstm else (0,)] * 2,
    ]
    return Arguments(*(rng.normal(size=shape) for shape in shapes))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("gates", [3, 4])
@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(carries_n=True, epsilon=0.1),
        Options(go_backwards=True, zero_output=True),
    ],
)
@pytest.mark.parametrize("drops", [False, True])
def test_gradients(gates, options, drops, rng):
    arguments = random_arguments(rng, gates)
    options = options._replace(mask=rng.random((BATCH, TIME)) < 0.7)
    if drops:
        options = options._replace(
            input_dropout=rng.normal(size=(gates, BATCH, INPUTS)),
            recurrent_dropout=rng.normal(size=(gates, BATCH, UNITS)),
        )
    results = layer_norm(arguments, options)
    grads = Results(*(rng.normal(size=r.shape) for r in results))

    def loss(values):
        found = layer_norm(Arguments(*values), options)
        return sum(np.sum(g * r) for g, r in zip(grads, found, strict=True))

    wanted = derivatives.complex_step(loss, arguments)
    got = layer_norm_backward(arguments, grads, options)
    for name, a, b in zip(Arguments._fields, got, wanted, strict=True):
        # 1e-12: a few thousand roundings, enlarged by 1 / sqrt(variance).
        np.testing.assert_allclose(
            a, b, rtol=0, atol=1e-12 * max(1, np.abs(b).max(initial=0)), err_msg=name
        )


@pytest.mark.parametrize("carries_n", [False, True])
def test_one_lstm_step_in_keras_layers(carries_n, rng):
    """The step in terms of Keras' LayerNormalization, as TensorFlow Addons documents it."""
    arguments = random_arguments(rng, 4)._replace(x=rng.normal(size=(BATCH, 1, INPUTS)))

    def normalised(value, gamma, beta):
        layer = keras.layers.LayerNormalization(epsilon=1e-3, dtype="float64")
        layer.build(value.shape)
        layer.set_weights([gamma, beta])
        return layer(value).numpy()

    def sigmoid(z):
        return 1 / (1 + np.exp(-z))

    a = arguments
    zero = np.zeros(4 * UNITS)
    z = normalised(a.x[:, 0] @ a.kernel, a.input_gamma, zero)
    z = z + normalised(a.h0 @ a.recurrent_kernel, a.recurrent_gamma, zero) + a.bias
    i, f, c, o = np.split(z, 4, axis=1)
    new_c = sigmoid(f) * a.c0 + sigmoid(i) * np.tanh(c)
    n = normalised(new_c, a.state_gamma, a.state_beta)
    got = layer_norm(a, Options(epsilon=1e-3, carries_n=carries_n))
    np.testing.assert_allclose(got.h, sigmoid(o) * np.tanh(n), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(got.c, n if carries_n else new_c, rtol=1e-12, atol=1e-14)
