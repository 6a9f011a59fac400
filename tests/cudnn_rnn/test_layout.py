"""The layout of params: its size, where each matrix and bias lies, and the gradients of copying.

The expected values are cut from the buffer by a walk written here, from the documented order.
"""

import contextlib
import itertools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import composite

from .cases import DTYPES, GATES, SOURCES, Case, call

CASES = [
    *(
        Case(mode=mode, layers=layers, directions=directions, inputs=inputs, input_mode=input_mode)
        for mode, layers, directions, (inputs, input_mode) in itertools.product(
            GATES,
            (1, 3),
            (1, 2),
            (
                (3, "linear_input"),
                (4, "linear_input"),
                (4, "skip_input"),
                (4, "auto_select"),
                (3, "auto_select"),
            ),
        )
    ),
    *(
        Case(layers=layers, directions=directions, inputs=inputs, proj=proj, input_mode=input_mode)
        for layers, directions, proj, (inputs, input_mode) in itertools.product(
            (1, 2), (1, 2), (1, 3, 4), ((3, "linear_input"), (4, "skip_input"))
        )
    ),
]
PLAIN = [case for case in CASES if case.proj == 0]


def name(case: Case) -> str:
    proj = f"-P{case.proj}" if case.proj else ""
    return f"{case.mode}-L{case.layers}-D{case.directions}-I{case.inputs}{proj}-{case.input_mode}"


def sizes(case: Case) -> dict[str, int]:
    return {"num_layers": case.layers, "num_units": case.units, "input_size": case.inputs}


def random_params(rng: np.random.Generator, case: Case, dtype: str) -> np.ndarray:
    return rng.normal(size=case.params_size()).astype(tf.as_dtype(dtype).as_numpy_dtype)


def to_canonical(case: Case, params: Any, source: str = "own", version: str = "V2") -> Any:
    counts = {"num_params_weights": len(case.matrices()), "num_params_biases": len(case.biases())}
    if not version:
        counts = {"num_params": len(case.biases())}
    values = {**sizes(case), "params": params, **counts}
    return call(f"CudnnRNNParamsToCanonical{version}", case, values, source)


def to_params(
    case: Case, weights: Any, biases: Any, source: str = "own", version: str = "V2"
) -> tf.Tensor:
    values = {**sizes(case), "weights": weights, "biases": biases}
    return call(f"CudnnRNNCanonicalToParams{version}", case, values, source)


def cut(case: Case, params: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Matrices of all pseudo-layers, then biases of all pseudo-layers; each of them gate by gate,
    those of the input before those of the state, the projection last."""
    gates, units, hidden = GATES[case.mode], case.units, case.hidden
    rest = params

    def take(*shape: int) -> np.ndarray:
        nonlocal rest
        count = int(np.prod(shape))
        part, rest = rest[:count], rest[count:]
        return part.reshape(shape)

    weights, biases = [], []
    for pseudo_layer in range(case.layers * case.directions):
        if pseudo_layer >= case.directions:
            width = case.directions * hidden
        else:
            width = 0 if case.skips_input else case.inputs
        weights += [take(units, width) for _ in range(gates)]
        weights += [take(units, hidden) for _ in range(gates)]
        if hidden != units:
            weights.append(take(hidden, units))
    for _ in range(case.layers * case.directions):
        biases += [take(units) for _ in range(2 * gates)]
    assert not rest.size
    return weights, biases


def assert_same_bits(got: Any, want: Any) -> None:
    assert len(got) == len(want)
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        a = np.asarray(a)
        assert a.shape == b.shape and a.dtype == b.dtype, k
        assert a.tobytes() == b.tobytes(), k


# --- size ------------------------------------------------------------------------------------


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("count_type", [tf.int32, tf.int64], ids=lambda t: t.name)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("case", CASES, ids=name)
def test_size(case, source, count_type):
    for dtype in DTYPES:
        values = {**sizes(case), "T": tf.as_dtype(dtype), "S": count_type}
        size = call("CudnnRNNParamsSize", case, values, source)
        assert size.dtype == count_type and size.shape == [1]
        assert size.numpy().item() == case.params_size()


def test_size_of_a_known_model():
    """Numbers worked out by hand: 4 gates, H = 4, I = 3, P = 2, two directions, two layers."""
    layer_0 = 4 * 4 * 3 + 4 * 4 * 2 + 2 * 4  # W, R, W_p
    layer_1 = 4 * 4 * (2 * 2) + 4 * 4 * 2 + 2 * 4  # both directions' hidden state comes in
    biases = 2 * 4 * 4
    case = Case(layers=2, directions=2, proj=2)
    assert case.params_size() == 2 * (layer_0 + layer_1 + 2 * biases) == 512


def test_size_beyond_int32():
    """It fits int64 and only int64."""
    case = Case(units=2**14, inputs=2**14, layers=2)
    values = {**sizes(case), "T": tf.float32}
    (size,) = call("CudnnRNNParamsSize", case, {**values, "S": tf.int64})
    assert size == case.params_size() > 2**31
    for context in (contextlib.nullcontext, composite.plain_ops):
        refused = pytest.raises(tf.errors.InvalidArgumentError, match=r"params|int32|overflow")
        with refused, context():
            call("CudnnRNNParamsSize", case, {**values, "S": tf.int32})


# --- order -----------------------------------------------------------------------------------


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("case", CASES, ids=name)
def test_canonical_parts_are_slices_of_the_buffer(rng, case, source):
    params = random_params(rng, case, "float32")
    weights, biases = cut(case, params)
    got = to_canonical(case, params, source)
    assert_same_bits(got.weights, weights)
    assert_same_bits(got.biases, biases)
    assert_same_bits([to_params(case, weights, biases, source)], [params])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES[:: len(CASES) // 12], ids=name)
def test_round_trip_is_exact(rng, case, dtype):
    """NaN with its payload included: elements are copied, not computed with."""
    params = random_params(rng, case, dtype)
    params[::7] = np.nan
    parts = to_canonical(case, params)
    assert_same_bits([to_params(case, *parts)], [params])
    assert_same_bits(
        to_canonical(case, to_params(case, *parts)).weights, [*map(np.asarray, parts[0])]
    )


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("case", PLAIN[::5], ids=name)
def test_the_first_version_is_the_second_without_projection(rng, case, source):
    params = random_params(rng, case, "float32")
    first, second = (to_canonical(case, params, source, version) for version in ("", "V2"))
    assert_same_bits(first.weights, [np.asarray(w) for w in second.weights])
    assert_same_bits(first.biases, [np.asarray(b) for b in second.biases])
    assert_same_bits([to_params(case, *second, source, "")], [params])


def test_shapes_are_inferred():
    case = Case(layers=2, directions=2, proj=2)

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def trip(params):
        parts = to_canonical(case, params)
        return to_params(case, *parts)

    params = tf.random.normal([case.params_size()])
    np.testing.assert_array_equal(trip(params), params)


# --- gradients -------------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("version", ["", "V2"])
def test_gradients_are_each_others_adjoints(rng, version, source):
    """<A x, y> = <x, A' y>, element by element: the gradient of a copy is the copy back."""
    case = Case(mode="gru", layers=2, directions=2) if not version else Case(layers=2, proj=3)
    params = tf.constant(random_params(rng, case, "float64"))
    weights, biases = cut(case, random_params(rng, case, "float64"))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(params)
        parts = to_canonical(case, params, source, version)
        given = [tf.constant(a) for a in (*weights, *biases)]
        tape.watch(given)
        packed = to_params(case, given[: len(weights)], given[len(weights) :], source, version)
    upstream = [*weights, *biases]
    got = tape.gradient([*parts.weights, *parts.biases], params, output_gradients=upstream)
    assert_same_bits([got], [packed.numpy()])
    got = tape.gradient(packed, given, output_gradients=params)
    assert_same_bits(got, [np.asarray(a) for a in (*parts.weights, *parts.biases)])


def test_gradient_of_some_parts_only(rng):
    """Parts that the loss does not see count as zero."""
    case = Case(layers=2)
    params = tf.constant(random_params(rng, case, "float32"))
    with tf.GradientTape() as tape:
        tape.watch(params)
        loss = tf.reduce_sum(to_canonical(case, params).weights[5])
    got = to_canonical(case, tape.gradient(loss, params))
    for k, weight in enumerate(got.weights):
        assert np.all(np.asarray(weight) == (k == 5))
    assert not np.any(got.biases)


def test_second_derivatives(rng):
    """Of the cube of every number, through both conversions: 6 x."""
    case = Case(mode="rnn_tanh", layers=2, directions=2)
    params = tf.constant(random_params(rng, case, "float64"))
    with tf.GradientTape() as outer:
        outer.watch(params)
        with tf.GradientTape() as inner:
            inner.watch(params)
            parts = to_canonical(case, params)
            cubes = [[a**3 for a in part] for part in parts]
            loss = tf.reduce_sum(to_params(case, *cubes))
        slope = inner.gradient(loss, params)
    # Two multiplications, in another order than NumPy's.
    np.testing.assert_allclose(slope, 3 * params.numpy() ** 2, rtol=1e-14)
    np.testing.assert_allclose(outer.gradient(slope, params), 6 * params.numpy(), rtol=1e-14)
