"""Every format to the canonical one and back, exactly."""

import dataclasses
import sys
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from oracle.cudnn_rnn import Model
from tf_lstm_ops.weights import CellWeights, GRUWeights, LSTMWeights

from .formats import (
    GATES,
    INPUTS,
    KINDS,
    PEEPHOLE,
    PLAIN,
    PROJECTED,
    UNITS,
    Shape,
    Weights,
    assert_equal,
    assert_same_bits,
    random_weights,
)
from .runs import KERAS_LAYERS, keras_layers, set_weights

BFLOAT16 = tf.bfloat16.as_numpy_dtype
DTYPES = [np.float16, BFLOAT16, np.float32, np.float64]
LSTM_LAYERS = [s for s in PLAIN + PEEPHOLE if (s.kind, s.layers) == ("lstm", 1)]


def through_cudnn(weights: Weights, **options: Any) -> Weights:
    return type(weights).from_cudnn(
        weights.to_cudnn(**options),
        input_size=weights.input_size,
        units=weights.units,
        num_layers=weights.num_layers,
        directions=weights.directions,
        projection_size=weights.projection_size,
        **options,
    )


def through_torch(weights: Weights) -> Weights:
    return type(weights).from_torch(weights.to_torch())


def through_keras(weights: Weights) -> Weights:
    return type(weights).from_keras(weights.to_keras())


def read_onnx(kind: str, *inputs: Any) -> Weights:
    options = {"linear_before_reset": 1} if kind == "gru" else {}
    return KINDS[kind].from_onnx(*(array for array in inputs if array is not None), **options)


def through_onnx(weights: Weights) -> Weights:
    [kind] = [kind for kind, cls in KINDS.items() if cls is type(weights)]
    return read_onnx(kind, *weights.to_onnx())


def without_output_peephole(weights: LSTMWeights) -> LSTMWeights:
    """MPSGraph's output gate sees another state."""
    for cell in weights.cells:
        if cell.peephole is not None:
            cell.peephole[2] = 0
    return weights


def with_one_bias(weights: Weights) -> Weights:
    """The weights that a format with one bias can express: all of it on the recurrent side."""
    cells = [CellWeights(**{**c.arrays(), "bias": np.zeros_like(c.bias)}) for c in weights.cells]
    return type(weights)(tuple(cells), weights.directions)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", PLAIN + PROJECTED, ids=str)
def test_through_cudnn_and_torch(rng, shape, dtype):
    weights = random_weights(shape, rng, dtype)
    assert_equal(through_cudnn(weights), weights)
    assert_equal(through_torch(weights), weights)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", PLAIN + PEEPHOLE, ids=str)
def test_through_keras(rng, shape, dtype):
    weights = random_weights(shape, rng, dtype)
    if shape.kind != "gru":  # Keras' GRU has two biases
        weights = with_one_bias(weights)
    assert_equal(through_keras(weights), weights)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize("gate_order", ["ICFO", "IFCO"])
def test_through_block_cell(rng, gate_order, peephole, dtype):
    weights = with_one_bias(random_weights(Shape(peephole=peephole), rng, dtype))
    cell = weights.to_block_cell(gate_order=gate_order, forget_bias=0.0)
    given = cell if peephole else cell[:2]
    back = LSTMWeights.from_block_cell(*given, gate_order=gate_order, forget_bias=0.0)
    assert_equal(back, weights)
    assert peephole or not np.any(cell[2:])


@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize("inputs", [1, 3])  # I + P less than H, and more
def test_from_a_block_cell_with_a_projection(rng, inputs, peephole):
    """As TensorFlow 1's LSTMCell(num_proj=P) stores it: w [I+P, 4H] and a projection [H, P]."""
    shape = Shape(inputs=inputs, num_proj=2, peephole=peephole)
    weights = with_one_bias(random_weights(shape, rng))
    [cell] = weights.cells
    w = np.concatenate([cell.kernel, cell.recurrent_kernel])
    rows = list(cell.peephole) if peephole else []
    options = {"gate_order": "IFCO", "forget_bias": 0.0, "projection": cell.projection}
    assert_equal(LSTMWeights.from_block_cell(w, cell.recurrent_bias, *rows, **options), weights)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [s for s in PLAIN + PEEPHOLE if s.layers == 1], ids=str)
def test_through_onnx(rng, shape, dtype):
    weights = random_weights(shape, rng, dtype)
    assert_equal(through_onnx(weights), weights)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("forget_gate_last", [False, True])
@pytest.mark.parametrize("shape", LSTM_LAYERS, ids=str)
def test_through_mpsgraph(rng, shape, forget_gate_last, dtype):
    weights = without_output_peephole(with_one_bias(random_weights(shape, rng, dtype)))
    converted = weights.to_mpsgraph(forget_gate_last=forget_gate_last)
    back = LSTMWeights.from_mpsgraph(*converted, forget_gate_last=forget_gate_last)
    assert_equal(back, weights)


@pytest.mark.parametrize("shape", [s for s in PLAIN if s.layers == 1], ids=str)
def test_onnx_without_bias(rng, shape):
    weights = random_weights(shape, rng)
    W, R, B, _ = weights.to_onnx()
    assert_equal(read_onnx(shape.kind, W, R), read_onnx(shape.kind, W, R, np.zeros_like(B)))


@pytest.mark.parametrize("shape", [s for s in LSTM_LAYERS if not s.peephole], ids=str)
def test_mpsgraph_without_weights_of_the_input_and_bias(rng, shape):
    """The kernel then hands the source, which holds the products already, to the gates."""
    converted = random_weights(shape, rng).to_mpsgraph()
    weights = LSTMWeights.from_mpsgraph(None, converted.recurrent_weight)
    products = rng.normal(size=(2, shape.directions * 4 * UNITS))
    seen = np.concatenate([products @ cell.kernel for cell in weights.cells], axis=1)
    np.testing.assert_array_equal(seen, products)
    assert not any(cell.bias.any() or cell.recurrent_bias.any() for cell in weights.cells)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("forget_bias", [0.0, 1.0, 0.1, -3.7])
def test_block_cell_through_the_canonical_form(rng, forget_bias, dtype):
    """Exact with a forget_bias too, which is stored in the bias of the input side."""
    w = rng.normal(size=(INPUTS + UNITS, 4 * UNITS)).astype(dtype)
    b = rng.normal(size=4 * UNITS).astype(dtype) * dtype(1e-3)
    weights = LSTMWeights.from_block_cell(w, b, gate_order="ICFO", forget_bias=forget_bias)
    back = weights.to_block_cell(gate_order="ICFO", forget_bias=forget_bias)
    assert_same_bits(back.w, w)
    assert_same_bits(back.b, b)


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("shape", PLAIN + PEEPHOLE, ids=str)
def test_keras_layers_and_their_weights(rng, shape, use_bias):
    """A layer, a Bidirectional, several layers: from the layers or from their arrays, and back."""
    layers = keras_layers(shape, use_bias=use_bias)
    for layer in layers:
        layer.set_weights([rng.normal(size=w.shape) for w in layer.weights])
    source, arrays = layers, [layer.get_weights() for layer in layers]
    if shape.layers == 1:
        source, arrays = layers[0], arrays[0]
    weights = KINDS[shape.kind].from_keras(source)
    assert (weights.num_layers, weights.directions) == (shape.layers, shape.directions)
    assert_equal(KINDS[shape.kind].from_keras(arrays), weights)
    back = weights.to_keras(use_bias=use_bias)
    for a, b in zip(tf.nest.flatten(back), tf.nest.flatten(arrays), strict=True):
        assert_same_bits(a, b)
    set_weights(layers, back)  # in the format that Keras takes


@pytest.mark.parametrize("kind", KINDS)
def test_bidirectional_without_bias_and_two_inputs(rng, kind):
    """Where a kernel [2, 3H] could be taken for GRU's bias."""
    layer = keras.layers.Bidirectional(KERAS_LAYERS[kind](UNITS, use_bias=False))
    layer.build((None, None, 2))
    weights = KINDS[kind].from_keras(layer.get_weights())
    assert (weights.input_size, weights.units, weights.directions) == (2, UNITS, 2)
    assert_equal(weights, KINDS[kind].from_keras(layer))


def test_keras_variables_and_states_of_a_stateful_layer(rng):
    layer = keras.layers.LSTM(UNITS, stateful=True)
    layer(np.ones((2, 3, INPUTS), "float32"))
    weights = LSTMWeights.from_keras(layer)
    assert_equal(LSTMWeights.from_keras(layer.trainable_weights), weights)
    assert_equal(LSTMWeights.from_keras([w.value for w in layer.trainable_weights]), weights)


@pytest.mark.parametrize("shape", PLAIN + PROJECTED, ids=str)
def test_cudnn_buffer_as_the_oracle_reads_it(rng, shape):
    """The oracle splits the buffer by itself."""
    model = Model(shape.kind, INPUTS, UNITS, shape.layers, shape.directions, shape.num_proj)
    weights = random_weights(shape, rng)
    params = weights.to_cudnn()
    assert params.shape == (model.params_size,)
    order = [1, 0, 2] if shape.kind == "gru" else list(range(GATES[shape.kind]))  # from Keras'
    for cell, want in zip(weights.cells, model.split(params), strict=True):

        def gates(array: np.ndarray, order: list[int] = order) -> np.ndarray:
            return np.stack(np.split(array, len(order), axis=-1))[order]

        np.testing.assert_array_equal(gates(cell.kernel).swapaxes(1, 2), want.w)
        np.testing.assert_array_equal(gates(cell.recurrent_kernel).swapaxes(1, 2), want.r)
        np.testing.assert_array_equal(gates(cell.bias), want.bw)
        np.testing.assert_array_equal(gates(cell.recurrent_bias), want.br)
        if shape.num_proj:
            np.testing.assert_array_equal(cell.projection.T, want.projection)


@pytest.mark.parametrize("input_mode", ["skip_input", "auto_select"])
@pytest.mark.parametrize("kind", KINDS)
def test_skipped_input_is_a_kernel_of_identities(rng, kind, input_mode):
    shape = Shape(kind, layers=2, directions=2, inputs=UNITS)
    model = Model(kind, UNITS, UNITS, 2, 2, skip_input=True)
    params = rng.normal(size=model.params_size)
    sizes = {"input_size": UNITS, "units": UNITS, "num_layers": 2, "directions": 2}
    weights = KINDS[kind].from_cudnn(params, **sizes, input_mode=input_mode)
    assert_same_bits(weights.to_cudnn(input_mode=input_mode), params)
    linear = weights.to_cudnn()
    assert linear.size == model.params_size + 2 * GATES[kind] * UNITS * UNITS
    x = rng.normal(size=(5, UNITS))
    for cell in weights.cells[:2]:
        np.testing.assert_array_equal(x @ cell.kernel, np.tile(x, GATES[kind]))
    with pytest.raises(ValueError, match="not the identity; use input_mode='linear_input'"):
        random_weights(shape, rng).to_cudnn(input_mode=input_mode)


FORMATS = {"cudnn": through_cudnn, "torch": through_torch, "keras": through_keras}


def drawn_path(rng, names):
    """Up to four formats, some of them again."""
    return [str(name) for name in rng.choice(names, rng.integers(1, 5))]


def test_any_path_through_the_formats():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        layers, directions, inputs, units = (int(rng.integers(1, n)) for n in (5, 3, 6, 6))
        kind = str(rng.choice(sorted(KINDS)))
        shape = Shape(kind, layers, directions, inputs=inputs, units=units)
        start = random_weights(shape, rng, DTYPES[seed % len(DTYPES)])
        path = drawn_path(rng, sorted(FORMATS))
        start = with_one_bias(start) if "keras" in path and kind != "gru" else start
        weights = start
        for name in path:
            weights = FORMATS[name](weights)
        assert_equal(weights, start)


def test_any_path_with_a_projection():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        num_proj, layers, directions, inputs = (int(rng.integers(1, n)) for n in (5, 4, 3, 5))
        shape = Shape("lstm", layers, directions, num_proj, inputs=inputs, units=5)
        start = weights = random_weights(shape, rng)
        for name in drawn_path(rng, ["cudnn", "torch"]):
            weights = FORMATS[name](weights)
        assert_equal(weights, start)


def test_two_biases_become_one_where_the_format_has_one(rng):
    weights = random_weights(Shape(), rng)
    (cell,) = weights.cells
    total = cell.bias + cell.recurrent_bias
    assert_same_bits(weights.to_keras()[2], total)
    assert_same_bits(weights.to_block_cell(gate_order="IFCO", forget_bias=0.0).b, total)
    assert_same_bits(through_keras(weights).cells[0].recurrent_bias, total)
    assert not through_keras(weights).cells[0].bias.any()


def test_results_share_no_memory_with_their_source(rng):
    """Training in one format does not change the other."""
    shape = Shape(peephole=True)
    weights, unchanged = (
        without_output_peephole(with_one_bias(random_weights(shape, np.random.default_rng(1))))
        for _ in "ab"
    )
    arrays, node, graph = weights.to_keras(), weights.to_onnx(), weights.to_mpsgraph()
    block = weights.to_block_cell(gate_order="IFCO", forget_bias=0.0)
    read = [
        LSTMWeights.from_keras(arrays),
        LSTMWeights.from_block_cell(*block, gate_order="IFCO", forget_bias=0.0),
        LSTMWeights.from_onnx(*node),
        LSTMWeights.from_mpsgraph(*graph),
    ]
    plain = random_weights(Shape(num_proj=2), rng)
    state, params = plain.to_torch(), plain.to_cudnn()
    made = LSTMWeights.from_torch(state), through_cudnn(plain)
    for array in [*arrays, *block, *node, *graph, *state.values(), params]:
        array[...] = 0
    for result in [weights, *read]:
        assert_equal(result, unchanged)
    for result in made:
        assert_equal(result, plain)
    assert plain.cells[0].projection.any()


@pytest.mark.parametrize("directions", [1, 2])
def test_gru_with_reset_before(directions, rng):
    """From layers, from their weights, and through ONNX; there is one bias, the sum."""
    weights = with_one_bias(random_weights(Shape("gru", directions=directions), rng))
    weights = dataclasses.replace(weights, reset_after=False)
    arrays = weights.to_keras()
    assert [array.ndim for array in arrays] == [2, 2, 1] * directions
    layer = keras.layers.GRU(UNITS, reset_after=False, dtype="float64")
    if directions == 2:
        layer = keras.layers.Bidirectional(layer, dtype="float64")
    layer.build((None, None, INPUTS))
    layer.set_weights(arrays)
    back = GRUWeights.from_onnx(*weights.to_onnx()[:3], linear_before_reset=0)
    for found in (GRUWeights.from_keras(layer), GRUWeights.from_keras(arrays), back):
        assert not found.reset_after
        for got, want in zip(found.to_keras(), arrays, strict=True):
            np.testing.assert_array_equal(got, want)


def test_gru_without_bias_says_so_by_its_layer():
    """The arrays do not show whether the reset gate acts before or after the product."""
    layer = keras.layers.GRU(UNITS, reset_after=False, use_bias=False)
    layer.build((None, None, INPUTS))
    assert not GRUWeights.from_keras(layer).reset_after
    assert not GRUWeights.from_keras([layer]).reset_after
    assert GRUWeights.from_keras(layer.get_weights()).reset_after


@pytest.mark.parametrize("shape", PLAIN + PROJECTED, ids=str)
def test_torch_with_a_prefix(shape, rng):
    weights = random_weights(shape, rng)
    state = {f"encoder.rnn.{name}": array for name, array in weights.to_torch().items()}
    state["encoder.embedding.weight"] = np.zeros((3, 3))
    assert_equal(type(weights).from_torch(state, prefix="encoder.rnn."), weights)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("prefix", ["", "encoder."])
@pytest.mark.parametrize("shape", PLAIN + PROJECTED + PEEPHOLE, ids=str)
def test_through_safetensors(shape, prefix, dtype, rng, tmp_path):
    pytest.importorskip("safetensors", reason="writes the files")
    weights, path = random_weights(shape, rng, dtype), tmp_path / "weights.safetensors"
    weights.to_safetensors(path, prefix=prefix)
    assert_equal(type(weights).from_safetensors(path, prefix=prefix), weights)


def test_safetensors_has_names_of_torch(rng, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy", reason="writes the files")
    weights = random_weights(Shape(layers=2, directions=2), rng)
    weights.to_safetensors(tmp_path / "weights.safetensors")
    found = safetensors.load_file(tmp_path / "weights.safetensors")
    want = weights.to_torch()
    assert found.keys() == want.keys()
    for name, array in want.items():
        np.testing.assert_array_equal(found[name], array)


def test_safetensors_is_not_installed(rng, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ImportError, match="pip install 'safetensors>="):
        random_weights(Shape(), rng).to_safetensors(tmp_path / "weights.safetensors")
