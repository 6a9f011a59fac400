"""The layers of other programs compute with their weights what these programs computed."""

import numpy as np
import pytest

from tf_lstm_ops.checkpoints import candidates
from tf_lstm_ops.weights import GRUWeights, LSTMWeights

from . import cells, written
from .cells import BATCH, INPUTS, PEEPHOLES, PROJECTION, STEPS, UNITS

X = cells.sequence()
CUDNN = "cudnn_lstm/rnn/multi_rnn_cell/cell_{}/cudnn_compatible_lstm_cell"
P = {"projection/kernel": (UNITS, PROJECTION)}


def assert_same(weights, want, x=X):
    np.testing.assert_allclose(written.computed(weights, x), want, atol=written.ROUNDING)


# The scope, further arrays of an LSTM of TensorFlow 1, and the forget bias of its class.
LSTMS = {
    "basic_lstm_cell": ("rnn/basic_lstm_cell", {}, 1.0),
    "lstm_cell": ("rnn/lstm_cell", {}, 1.0),
    "peepholes": ("decoder/lstm_cell", PEEPHOLES, 1.0),
    "projection": ("rnn/lstm_cell", P, 1.0),
    "peepholes and projection": ("rnn/lstm_cell_1", {**PEEPHOLES, **P}, 1.0),
    "fused": ("lstm_fused_cell", {}, 1.0),
    "own name": ("inference/encoder_fw_LSTM", {}, 1.0),
    "cudnn": (CUDNN.format(0), {}, 0.0),
}


@pytest.mark.parametrize("name", LSTMS)
def test_lstm_of_tensorflow_1(name, rng, tmp_path):
    scope, more, forget_bias = LSTMS[name]
    arrays = cells.joined(rng, **more)
    slots = {f"{key}/Adam": array for key, array in arrays.items()}
    file = written.checkpoint(
        tmp_path / "m.ckpt",
        {**written.under(scope, {**arrays, **slots}), "dense/kernel": arrays["kernel"]},
    )
    weights = LSTMWeights.from_checkpoint(file)
    assert_same(weights, cells.lstm(arrays, X, "ijfo", forget_bias))
    assert_same(
        LSTMWeights.from_checkpoint(file, forget_bias=0.25), cells.lstm(arrays, X, "ijfo", 0.25)
    )
    (found,) = candidates(file)
    assert (found.name, found.kind, found.forget_bias) == (scope, "lstm", forget_bias)
    assert (found.input_size, found.units, found.dtype) == (INPUTS, UNITS, "float32")
    assert found.projection_size == (PROJECTION if "projection/kernel" in more else None)
    assert (found.layers, found.directions) == (1, 1)


def test_names_before_tensorflow_1_2(rng, tmp_path):
    arrays = cells.joined(rng)
    old = {"weights": arrays["kernel"], "biases": arrays["bias"]}
    file = written.checkpoint(tmp_path / "m", written.under("rnn/basic_lstm_cell", old))
    assert_same(LSTMWeights.from_checkpoint(file), cells.lstm(arrays, X, "ijfo", 1.0))


def test_gru_cell_of_tensorflow_1(rng, tmp_path):
    arrays = cells.random_gru(rng)
    file = written.checkpoint(tmp_path / "m", written.under("rnn/gru_cell", arrays))
    weights = GRUWeights.from_checkpoint(file)
    assert not weights.reset_after
    assert_same(weights, cells.gru_cell(arrays, X))


def test_cudnn_gru(rng, tmp_path):
    arrays = cells.random_cudnn_gru(rng)
    scope = "cudnn_gru/rnn/multi_rnn_cell/cell_0/cudnn_compatible_gru_cell"
    file = written.checkpoint(tmp_path / "m", written.under(scope, arrays))
    weights = GRUWeights.from_checkpoint(file)
    assert weights.reset_after
    assert_same(weights, cells.cudnn_gru_cell(arrays, X))


def test_stack(rng, tmp_path):
    layers = [cells.joined(rng, width) for width in (INPUTS, UNITS, UNITS)]
    arrays = {}
    for k, layer in enumerate(layers):
        arrays |= written.under(CUDNN.format(k), layer)
    file = written.checkpoint(tmp_path / "m", arrays)
    want, x = [], X
    for layer in layers:
        want.append(cells.lstm(layer, x, "ijfo", 0.0))
        x = want[-1]
    assert_same(LSTMWeights.from_checkpoint(file), want[-1])
    one = LSTMWeights.from_checkpoint(file, layer=CUDNN.format(1))
    assert_same(one, want[1], want[0])
    (found,) = candidates(file)
    assert (found.name, found.layers) == ("cudnn_lstm/rnn/multi_rnn_cell", 3)
    assert "residual" in found.note


def test_bidirectional_stack(rng, tmp_path):
    scope = "stack_bidirectional_rnn/cell_{}/bidirectional_rnn/{}/lstm_cell"
    arrays, x = {}, X
    for k, width in enumerate((INPUTS, 2 * UNITS)):
        pair = [cells.joined(rng, width) for _ in range(2)]
        for name, one in zip(("fw", "bw"), pair, strict=True):
            arrays |= written.under(scope.format(k, name), one)
        halves = [cells.lstm(one, x, "ijfo", 1.0, backwards=n == 1) for n, one in enumerate(pair)]
        x = np.concatenate(halves, -1)
    weights = LSTMWeights.from_checkpoint(written.checkpoint(tmp_path / "m", arrays))
    assert (weights.num_layers, weights.directions) == (2, 2)
    assert_same(weights, x)


def test_each_direction_a_stack_of_its_own(rng, tmp_path):
    """MultiRNNCell in bidirectional_dynamic_rnn: the second layer has its direction's input."""
    scope = "bidirectional_rnn/{}/multi_rnn_cell/cell_{}/gru_cell"
    layers = {
        (d, k): cells.random_gru(rng, width)
        for d in ("fw", "bw")
        for k, width in enumerate((INPUTS, UNITS))
    }
    arrays = {}
    for (d, k), layer in layers.items():
        arrays |= written.under(scope.format(d, k), layer)
    file = written.checkpoint(tmp_path / "m", arrays)
    names = [f"bidirectional_rnn/{d}/multi_rnn_cell" for d in ("bw", "fw")]
    assert sorted(found.name for found in candidates(file)) == names
    with pytest.raises(ValueError, match="several; pass layer=, one of 'bidirectional_rnn/"):
        GRUWeights.from_checkpoint(file)
    for d in ("fw", "bw"):
        want = cells.gru_cell(layers[d, 1], cells.gru_cell(layers[d, 0], X))
        name = f"bidirectional_rnn/{d}/multi_rnn_cell"
        assert_same(GRUWeights.from_checkpoint(file, layer=name), want)


def test_elmo(rng, tmp_path):
    arrays, layers = {}, {}
    for direction in (0, 1):
        for k, width in enumerate((INPUTS, PROJECTION)):
            own = cells.normal(
                rng,
                W_0=(width + PROJECTION, 4 * UNITS),
                B=(4 * UNITS,),
                W_P_0=(UNITS, PROJECTION),
            )
            name = f"RNN_{direction}/RNN/MultiRNNCell/Cell{k}/LSTMCell"
            layers[name] = own, width
            arrays |= written.under(name, own)
    file = written.hdf5(tmp_path / "elmo.hdf5", arrays)
    assert [found.name for found in candidates(file)] == list(layers)
    for name, (own, width) in layers.items():
        x = cells.sequence(width)
        want = cells.lstm(own, x, "ijfo", 1.0, kernel="W_0", bias="B", projection="W_P_0")
        assert_same(LSTMWeights.from_checkpoint(file, layer=name), want, x)
    assert all("proj_clip" in found.note for found in candidates(file))


@pytest.mark.parametrize("projected", [False, True])
def test_lingvo(projected, rng, tmp_path):
    size = PROJECTION if projected else UNITS
    shapes = {"wm/var": (INPUTS + size, 4 * UNITS), "b/var": (4 * UNITS,)}
    shapes |= {"w_proj/var": (UNITS, PROJECTION)} if projected else {}
    arrays = cells.normal(rng, **shapes)
    file = written.checkpoint(tmp_path / "ckpt-7", written.under("lm/rnn_0/cell", arrays))
    names = {"kernel": "wm/var", "bias": "b/var", "projection": "w_proj/var"}
    want = cells.lstm(arrays, X, "jifo", 0.0, **names)
    assert_same(LSTMWeights.from_checkpoint(file), want)
    want = cells.lstm(arrays, X, "jifo", 1.0, **names)
    assert_same(LSTMWeights.from_checkpoint(file, forget_bias=1.0), want)
    assert "cell_value_cap" in candidates(file)[0].note


def test_pruned_weights_are_refused(rng, tmp_path):
    names = {"wm/var": (INPUTS + UNITS, 4 * UNITS), "mask/var": (INPUTS + UNITS, 4 * UNITS)}
    arrays = written.under("lm/cell", cells.normal(rng, **names))
    with pytest.raises(ValueError, match="the weights are pruned"):
        LSTMWeights.from_checkpoint(written.checkpoint(tmp_path / "m", arrays))


def test_layer_normalisation_is_refused(rng, tmp_path):
    arrays = cells.normal(
        rng,
        kernel=(INPUTS + UNITS, 4 * UNITS),
        **{
            f"{gate}/{part}": (UNITS,)
            for gate in ("input", "transform", "forget", "output", "state")
            for part in ("gamma", "beta")
        },
    )
    scope = "rnn/layer_norm_basic_lstm_cell"
    file = written.checkpoint(tmp_path / "m", written.under(scope, arrays))
    (found,) = candidates(file)
    assert found.name == scope and "layer normalisation" in found.problem
    with pytest.raises(ValueError, match="layer normalisation, which LSTMWeights does not hold"):
        LSTMWeights.from_checkpoint(file)


def test_other_kinds_are_named(rng, tmp_path):
    file = written.checkpoint(tmp_path / "m", written.under("gru_cell", cells.random_gru(rng)))
    with pytest.raises(ValueError, match="no weights of a known LSTM; it has a GRU"):
        LSTMWeights.from_checkpoint(file)
    with pytest.raises(ValueError, match="a GRU, which has no forget gate; leave forget_bias out"):
        GRUWeights.from_checkpoint(file, forget_bias=1.0)
    with pytest.raises(ValueError, match="has no 'lstm'; pass layer=, one of 'gru_cell'"):
        GRUWeights.from_checkpoint(file, "lstm")


def test_the_sequence_is_longer_than_a_step():
    """So the order of the gates and the recurrent kernel count."""
    assert X.shape == (BATCH, STEPS, INPUTS) and STEPS > 1


# The scope, the names of the arrays, and the error.
OTHERS = {
    "coupled gates": (
        "coupled_input_forget_gate_lstm_cell",
        ("kernel", "bias"),
        "another cell",
    ),
    "coupled gates, old": ("rnn/CoupledInputForgetGateLSTMCell", ("W_0", "B"), "another cell"),
    "grid": ("rnn/grid_lstm_cell", ("kernel", "bias"), "another cell"),
    "phased": ("rnn/phased_lstm_cell_1", ("kernel", "bias"), "another cell"),
    "no lstm": ("rnn/a_cell", ("W_0", "B"), "no weights of a known LSTM"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_cells_of_tensorflow_1(name, rng, tmp_path):
    """Three gates of 8 units have the columns of four gates of 6."""
    scope, (kernel, bias), text = OTHERS[name]
    arrays = cells.normal(rng, **{kernel: (18, 24), bias: (24,)})
    file = written.checkpoint(tmp_path / "m", written.under(scope, arrays))
    with pytest.raises(ValueError, match=text):
        LSTMWeights.from_checkpoint(file)


def test_eight_gates(rng, tmp_path):
    """The NASCell has the names of Keras. An LSTM of these shapes has a projection."""
    arrays = cells.normal(rng, kernel=(3, 32), recurrent_kernel=(4, 32), bias=(32,))
    file = written.checkpoint(tmp_path / "m", written.under("rnn/nas_cell", arrays))
    assert candidates(file) == []
