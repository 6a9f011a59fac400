"""Files whose weights are int8 or bfloat16. session_file.py writes the same bytes."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest

from session import graphs
from session import layers as test_layers
from session import session_file as f
from tf_lstm_ops.inference import file, layers, quantization, weight_types
from tf_lstm_ops.inference.graph import lower

Array = np.ndarray


def of_package(made: f.Graph) -> file.Graph:
    """The graph as the package describes it."""
    count = len(made.outputs)
    names = [*made.output_names] + [""] * (count - len(made.output_names))
    return file.Graph(
        [
            file.Input(
                each.name,
                "int32" if each.type == f.INTS else "float32",
                tuple(None if size < 0 else size for size in each.dims),
            )
            for each in made.inputs
        ],
        [_node(each) for each in made.nodes],
        [*zip(names, made.outputs, strict=True)],
        made.input_structure,
        made.output_structure,
    )


def _node(node: f.Node) -> file.Node:
    fields = {each.name: getattr(node.layer, each.name) for each in dataclasses.fields(node.layer)}
    functions = f.FUNCTIONS | f.FUNCTIONS_2
    for name in ("activation", "recurrent_activation"):
        fields[name] = functions.get(fields[name], fields[name])
    if fields["hidden_size"] is None:
        fields["hidden_size"] = node.layer.units
    layer = file.Layer("a layer", **fields, ints=node.ints, numbers=node.numbers)
    return file.Node(layer, tuple(node.operands), node.batch_axes)


@pytest.mark.parametrize("weights", f.WEIGHTS[1:])
@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_bytes(name: str, weights: int) -> None:
    made = graphs.make(name, weights)
    assert file.write(of_package(made)).tobytes() == f.write_graph(made)


@pytest.mark.parametrize("name", test_layers.CHAINS)
def test_float32_stays_version_1(name: str) -> None:
    chain = test_layers.chain(name, np.random.default_rng(0))
    made = graphs.of_chain(name)(np.random.default_rng(0))
    assert file.write(of_package(made)).tobytes() == f.write(chain)
    assert file.write(of_package(graphs.with_weights(made, f.INT8)))[8] == 2  # the version


@pytest.mark.parametrize(("weights", "part"), [("bfloat16", 0.5), ("int8", 0.25)])
def test_sizes(weights: str, part: float, rng: np.random.Generator) -> None:
    """Scales, biases and records are what is over."""
    shapes = [(256, 1024), (256, 1024), (1024,)]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    x = layers.Input((None,), "int32")
    y = layers.LSTM(arrays)(layers.Embedding(np.ones((1000, 256)))(x))
    made = lower(x, layers.Dense(np.ones((256, 1000)))(y))
    whole, less = (
        len(file.write(weight_types.applied(made, each))) for each in ("float32", weights)
    )
    assert part < less / whole < part + 0.01


@pytest.mark.parametrize("axis", [0, 1])
def test_quantized(rng: np.random.Generator, axis: int) -> None:
    exponents = rng.integers(-30, 30, (1, 40))
    matrix = (rng.standard_normal((300, 40)) * 2.0**exponents).astype(np.float32)
    matrix[:, 3] = 0
    matrix = matrix if axis == 0 else np.ascontiguousarray(matrix.T)
    with np.errstate(divide="raise", invalid="raise"):
        q, scales = quantization._quantized(matrix, axis)
    wide = matrix.astype(np.float64)
    largest = np.abs(wide).max(axis)
    assert q.dtype == np.int8 and scales.dtype == np.float32 and q.shape == matrix.shape
    np.testing.assert_array_equal(np.abs(q.astype(int)).max(axis), 127 * (largest > 0))
    # The quotient by 127 is rounded once to float32: half of 2**-23.
    np.testing.assert_allclose(scales, largest / 127, rtol=2**-24)
    scales = np.expand_dims(scales.astype(np.float64), axis)
    # Half a scale, and what the rounding of the quotient to float32 adds: at most 127 * 2**-24.
    assert (np.abs(q * scales - wide) <= scales * (0.5 + 127 * 2**-24)).all()


@pytest.mark.parametrize("value", [1e-45, 1e-44, 1e-40, 3.4e38, 0.0, -0.0])
def test_quantized_at_the_limits(value: float) -> None:
    matrix = np.array([[value, -value], [value / 2, value]], np.float32)
    q, scales = quantization._quantized(matrix)
    assert np.isfinite(scales).all() and np.abs(q.astype(int)).max() <= 127
    # A subnormal scale has few bits: at most half of the smallest number for each step.
    np.testing.assert_allclose(q * scales.astype(float), matrix, rtol=0.01, atol=127 * 2.0**-149)


def test_bfloat16_is_rounded_to_nearest_even(rng: np.random.Generator) -> None:
    halves = np.arange(2**16, dtype=np.uint32) << 16
    bits = np.concatenate([halves + low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)])
    values = bits.astype(np.uint32).view(np.float32)
    got = quantization.bfloat16(values).view(ml_dtypes.bfloat16)
    with np.errstate(invalid="ignore"):
        want = values.astype(ml_dtypes.bfloat16)
    assert np.isnan(got[np.isnan(values)]).all()
    numbers = ~np.isnan(values)
    np.testing.assert_array_equal(got[numbers].view(np.uint16), want[numbers].view(np.uint16))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_int8_of_what_is_not_finite(value: float, rng: np.random.Generator) -> None:
    kernel = rng.standard_normal((4, 3)).astype(np.float32)
    kernel[2, 1] = value
    x = layers.Input((None, 4))
    made = lower(x, layers.Dense(kernel, name="last")(x))
    (node,) = made.nodes
    for weights, number in (("float32", 0), ("bfloat16", 1), ("int8", 2)):
        layer = dataclasses.replace(node.layer, weights=number)
        changed = dataclasses.replace(made, nodes=[dataclasses.replace(node, layer=layer)])
        if weights != "int8":
            file.write(changed)
            continue
        with pytest.raises(ValueError, match="layer last: kernel must be finite to become int8"):
            file.write(changed)
