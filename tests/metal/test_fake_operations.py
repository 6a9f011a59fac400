"""The fake frameworks' operations agree with Apple's documentation, by comparison with
NumPy in float64. The package's kernels take no part."""

import ml_dtypes
import numpy as np
import pytest

from metal.closeness import assert_close, normal
from metal.objc import DATA_TYPES

pytestmark = pytest.mark.metal

BROADCASTS = [((3, 4), (3, 4)), ((3, 4), (4,)), ((1,), (2, 3)), ((2, 1, 4), (3, 1)), ((), (2, 2))]
SELECT = "selectWithPredicateTensor:truePredicateTensor:falsePredicateTensor:name:"
ARITHMETIC = {"addition": np.add, "subtraction": np.subtract, "multiplication": np.multiply}


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic(rng, graph, name, shapes):
    a, b = (normal(rng, *shape) for shape in shapes)
    got = graph.value(f"{name}WithPrimaryTensor:secondaryTensor:name:", a, b)
    assert_close(got, ARITHMETIC[name](a.astype(float), b.astype(float)))


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_of_integers(graph, name):
    a, b = np.array([[7, -2, 0]], np.int32), np.array([[3], [1 << 10]], np.int32)
    got = graph.value(f"{name}WithPrimaryTensor:secondaryTensor:name:", a, b)
    np.testing.assert_array_equal(got, ARITHMETIC[name](a, b))


def test_comparison_and_choice(rng, graph):
    a, b = normal(rng, 5, 6), normal(rng, 5, 6)
    b[0] = a[0]
    less = graph("lessThanWithPrimaryTensor:secondaryTensor:name:", a, b)
    got_less, got_choice = graph.run([less, graph(SELECT, less, a, b)])
    np.testing.assert_array_equal(got_less, a < b)
    np.testing.assert_array_equal(got_choice, np.minimum(a, b))


def test_choice_keeps_nan_out(graph):
    a = np.array([np.nan, 1], np.float32)
    got = graph.value(SELECT, np.array([False, True]), a, np.zeros(2, np.float32))
    np.testing.assert_array_equal(got, [0, 1])


def test_sigmoid_and_tanh(graph):
    x = np.concatenate([np.linspace(-90, 90, 999), [np.inf, -np.inf, np.nan]]).astype(np.float32)
    sigmoid, tanh = (graph.value(f"{name}WithTensor:name:", x) for name in ("sigmoid", "tanh"))
    with np.errstate(over="ignore"):
        assert_close(sigmoid[:-1], 1 / (1 + np.exp(-x[:-1].astype(float))))
    assert_close(tanh[:-1], np.tanh(x[:-1].astype(float)))
    assert np.isnan(sigmoid[-1]) and np.isnan(tanh[-1])


def test_products(rng, graph):
    a, b = normal(rng, 7, 300), normal(rng, 300, 5)
    got = graph.value("matrixMultiplicationWithPrimaryTensor:secondaryTensor:name:", a, b)
    # 300 terms: roundings of random sign.
    assert_close(got, a.astype(float) @ b.astype(float), units=np.sqrt(300))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_sums(rng, graph, axis):
    a = normal(rng, 4, 30, 5)
    got = graph.value("reductionSumWithTensor:axis:name:", a, axis)
    assert_close(got, a.astype(float).sum(axis, keepdims=True), units=np.sqrt(30))


@pytest.mark.parametrize(
    "selector, arguments, want",
    [
        ("reshapeTensor:withShape:name:", [(4, 6)], lambda a: a.reshape(4, 6)),
        ("transposeTensor:dimension:withDimension:name:", [0, 2], lambda a: a.swapaxes(0, 2)),
        ("sliceTensor:dimension:start:length:name:", [1, 1, 2], lambda a: a[:, 1:3]),
        ("sliceTensor:dimension:start:length:name:", [2, 3, 1], lambda a: a[..., 3:]),
        ("broadcastTensor:toShape:name:", [(5, 2, 3, 4)], lambda a: np.stack([a] * 5)),
        ("reverseTensor:axes:name:", [(0,)], lambda a: a[::-1]),
        ("reverseTensor:axes:name:", [(1, -1)], lambda a: a[:, ::-1, ::-1]),
        ("identityWithTensor:name:", [], lambda a: a),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool"])
def test_views_of_all_types(rng, graph, dtype, selector, arguments, want):
    a = rng.integers(0, 2 if dtype == "bool" else 100, size=(2, 3, 4)).astype(dtype)
    got = graph.value("identityWithTensor:name:", graph(selector, a, *arguments))
    np.testing.assert_array_equal(got, want(a))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parts_one_after_another(rng, graph, axis):
    shapes = [[2, 3, 4] for _ in range(3)]
    for k, shape in enumerate(shapes):
        shape[axis] = k + 1
    parts = tuple(normal(rng, *shape) for shape in shapes)
    got = graph.value("concatTensors:dimension:name:", parts, axis)
    np.testing.assert_array_equal(got, np.concatenate(parts, axis))


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_by_index(rng, graph, axis):
    a = normal(rng, 5, 6)
    chosen = np.array([3, 0], np.int32)
    gather = "gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions:name:"
    np.testing.assert_array_equal(graph.value(gather, a, chosen, axis, 0), a.take(chosen, axis))


def test_constants(graph):
    scalar = graph.value("constantWithScalar:dataType:", 2.5, DATA_TYPES["float32"])
    assert scalar.ravel() == [2.5]
    filled = graph.value("constantWithScalar:shape:dataType:", -1.0, (2, 3), DATA_TYPES["int32"])
    np.testing.assert_array_equal(filled, np.full((2, 3), -1))


def converted(graph, x: np.ndarray, *names: str) -> np.ndarray:
    """The values after a chain of casts."""
    for name in names:
        x = graph("castTensor:toType:name:", x, DATA_TYPES[name])
    [got] = graph.run([x])
    return got


HALF = [*np.linspace(-70000, 70000, 4001), *2.0 ** -np.arange(8, 27), np.nan, 2048 + 1, 2048 + 3]
BFLOAT16 = [*np.linspace(-3, 3, 1000), 256 + 1, 256 + 3, -1e-39, 3.4e38, np.inf, np.nan]


@pytest.mark.parametrize("numbers, kind", [(HALF, np.float16), (BFLOAT16, ml_dtypes.bfloat16)])
def test_conversion_and_back(graph, numbers, kind):
    """Ties to even, overflow to infinity, subnormal numbers: NumPy's own conversion."""
    x, name = np.array(numbers, np.float32), np.dtype(kind).name
    with np.errstate(over="ignore"):
        want = x.astype(kind).astype(np.float32)
    np.testing.assert_array_equal(converted(graph, x, name).astype(np.float32), want)
    np.testing.assert_array_equal(converted(graph, x, name, "float32"), want)


def test_casts_to_integers_and_truth_values(graph):
    x = np.array([2.9, -2.9, 0], np.float32)
    np.testing.assert_array_equal(converted(graph, x, "int32"), [2, -2, 0])
    np.testing.assert_array_equal(converted(graph, x, "bool"), [True, True, False])
