"""The shapes of oneDNN's benchdnn, computed by the ops, the layers and sessions.

`benchdnn_shapes.txt` has the shapes, with their source and licence. This is which of them are
computed:

* A sequence is cut to STEPS steps. Shapes that then are the same are computed once.
* An initial h with fewer units than the cell is h with zeros: benchdnn has such shapes of one step
  and one layer. The LSTM and the RNN compute them. A GRU mixes h with its candidate of H units.
* An initial h with more units than the cell is that of no recurrent layer. These shapes are left
  out.
* A projection to more units than the cell has is refused, by cuDNN and PyTorch, too. benchdnn has
  no projection to fewer.
* A shape with more than LARGEST weights is computed by the RNN only: oneDNN has it for the RNN.
"""

import numpy as np
import pytest

from cudnn_rnn.accuracy import PROMISED, relative_errors
from judges import programs
from judges.programs import Array, States, Weights
from oracle import keras_gru, keras_lstm, keras_simple_rnn
from oracle.cudnn_rnn import Results
from peers import benchdnn
from peers.benchdnn import Shape
from tf_lstm_ops.weights import CellWeights, GRUWeights, LSTMWeights, RNNWeights

STEPS = 3
LARGEST = 2**26
# Multiply-adds of a gate that the default run and `full` compute, and the weights of a gate.
DEFAULT_WORK, FULL_WORK, FULL_WEIGHTS = 1e6, 1e8, 1e6
GATES = {"lstm": 4, "gru": 3, "vanilla gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
SHAPES = {shape._replace(time=min(shape.time, STEPS)) for shape in benchdnn.read()}
PROJECTED = [shape for shape in benchdnn.read() if shape.dst_iter != shape.hidden]


def is_computed(shape: Shape, kind: str) -> bool:
    """See above."""
    is_padded = shape.src_iter < shape.hidden == shape.dst_iter and shape.layers == shape.time == 1
    if not shape.has_one_state_size and not (is_padded and "gru" not in kind):
        return False
    return kind.startswith("rnn") or shape.weights_per_gate * GATES[kind] <= LARGEST


def runs() -> list[pytest.param]:
    return [
        pytest.param(kind, shape, marks=marks(shape), id=f"{kind}-{name(shape)}")
        for kind in GATES
        for shape in sorted(SHAPES)
        if is_computed(shape, kind)
    ]


def marks(shape: Shape) -> list[pytest.MarkDecorator]:
    if shape.work_per_gate <= DEFAULT_WORK:
        return []
    is_small = shape.work_per_gate <= FULL_WORK and shape.weights_per_gate <= FULL_WEIGHTS
    return [pytest.mark.full if is_small else pytest.mark.slow]


def name(shape: Shape) -> str:
    letters = ("L", "T", "B", "S", "I", "H")
    return "-".join(f"{letter}{n}" for letter, n in zip(letters, shape, strict=False))


def draw_weights(rng: np.random.Generator, kind: str, shape: Shape) -> Weights:
    """Pre-activations of size one."""
    width, cells, columns = shape.src_layer, [], GATES[kind] * shape.hidden
    for _ in range(shape.layers):
        scale = np.float32((width + shape.hidden) ** -0.5)
        sizes = ((width, columns), (shape.hidden, columns), columns, columns)
        cells.append(CellWeights(*(scale * rng.standard_normal(n, np.float32) for n in sizes)))
        width = shape.hidden
    if kind == "lstm":
        return LSTMWeights(tuple(cells))
    if "gru" in kind:
        if kind == "vanilla gru":  # has one bias
            cells = [vars(cell) | {"recurrent_bias": 0 * cell.bias} for cell in cells]
            cells = [CellWeights(**cell) for cell in cells]
        return GRUWeights(tuple(cells), reset_after=kind == "gru")
    return RNNWeights(tuple(cells), activation=kind.partition("_")[2])


def of_oracle(weights: Weights, x: Array, states: States) -> tuple[Array, States]:
    """In float64, a layer after another."""
    y, finals = np.float64(x).swapaxes(0, 1), []
    for cell, h, c in zip(weights.cells, *map(np.float64, states), strict=True):
        kernels = np.float64(cell.kernel), np.float64(cell.recurrent_kernel)
        biases = np.stack([np.float64(cell.bias), cell.recurrent_bias])
        bias = biases.sum(0)
        if isinstance(weights, LSTMWeights):
            peephole = np.zeros((3, weights.units))
            arguments = keras_lstm.Arguments(y, h, c, *kernels, bias, peephole)
            y, *final = keras_lstm.keras_lstm(arguments)
        elif isinstance(weights, GRUWeights):
            bias = biases if weights.reset_after else bias
            y, *final = keras_gru.keras_gru(keras_gru.Arguments(y, h, *kernels, bias))
        else:
            function = {"tanh": np.tanh, "relu": lambda z: np.maximum(z, 0)}[weights.activation]
            arguments = keras_simple_rnn.Arguments(y, h, *kernels, bias)
            y, *final = keras_simple_rnn.keras_simple_rnn(arguments, function=function)
        finals.append([*final, c][:2])
    return y.swapaxes(0, 1), States(*map(np.stack, zip(*finals, strict=True)))


def test_number_of_shapes() -> None:
    """Of all 203, 12 have a projection, and 7 an initial h with more units than the cell."""
    shapes = benchdnn.read()
    computed = [shape for shape in shapes if any(is_computed(shape, kind) for kind in GATES)]
    larger = [shape for shape in shapes if shape.src_iter > shape.hidden]
    assert (len(shapes), len(computed), len(PROJECTED), len(larger)) == (203, 184, 12, 7)


@pytest.mark.parametrize("kind, shape", runs())
def test_shape(rng: np.random.Generator, kind: str, shape: Shape) -> None:
    weights = draw_weights(rng, kind, shape)
    x = rng.standard_normal((shape.time, shape.batch, shape.src_layer), np.float32)
    states = States(
        *rng.uniform(-1, 1, (2, shape.layers, shape.batch, shape.hidden)).astype(np.float32)
    )
    states.h[..., shape.src_iter :] = 0
    output, final = of_oracle(weights, x, states)
    want = Results(output, *final)
    names = ("keras_layers", "session", *([] if kind == "vanilla gru" else ["cudnn"]))
    for program in names:
        output, final = getattr(programs, program)(weights, x, states)
        found = relative_errors(Results(output, *final), want)
        assert max(found.values()) <= PROMISED, (program, found)


@pytest.mark.parametrize("shape", PROJECTED, ids=name)
def test_projection_to_more_units(shape: Shape) -> None:
    columns, size = 4 * shape.hidden, (shape.src_layer, shape.dst_iter)
    kernels = (np.zeros((n, columns), np.float32) for n in size)
    biases = (np.zeros(columns, np.float32) for _ in range(2))
    projection = np.zeros((shape.hidden, shape.dst_iter), np.float32)
    cell = CellWeights(*kernels, *biases, projection=projection)
    with pytest.raises(ValueError, match="with a projection h must be smaller than"):
        LSTMWeights((cell,))
