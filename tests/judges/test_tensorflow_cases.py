"""Expected numbers of TensorFlow's own tests, computed by the ops, the layers and sessions.

`tensorflow_cases.json` has the numbers, with their source and licence.

Where TensorFlow's tests compare two of its ops instead (lstm_ops_test.py, rnn_grad_test.py), other
tests of this package do the same with more sizes and options. tests/block_cell/test_forward.py and
test_gradients.py run LSTMBlockCell, BlockLSTM, BlockLSTMV2 and their gradient ops beside the stock
ones, and the two versions of BlockLSTM beside each other; test_seq_len.py cuts sequences, and
test_rejected_inputs.py has wrong ranks. tests/cudnn_rnn/test_gradients.py has finite differences.
"""

import itertools
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from cudnn_rnn import grid
from cudnn_rnn.accuracy import PROMISED, relative_errors
from judges import programs
from judges.programs import Array, States
from oracle.cudnn_rnn import Model
from tf_lstm_ops import raw_ops
from tf_lstm_ops.weights import CellWeights, GRUWeights, LSTMWeights, RNNWeights

# As Decimal a number keeps its digits.
DATA = json.loads(
    Path(__file__).with_name("tensorflow_cases.json").read_text("utf-8"), parse_float=Decimal
)
CELLS = {case["test"]: case for case in DATA["cells"]["cases"]}
GATES = {"lstm": 4, "gru": 3}
WEIGHT, STATE = 0.5, 0.1
UNIT_ROUNDOFF = {"float16": 2.0**-11, "float32": 2.0**-24}
SIZES = ("layers", "units", "inputs", "batch", "time")


def weights_of(case: dict[str, Any]) -> LSTMWeights | GRUWeights:
    """As TensorFlow 1 sets them; see the data."""
    units, gates = case["units"], GATES[case["cell"]]
    width, cells = len(case["calls"][0]["x"][0]), []
    bias = np.zeros((gates, units), np.float32)
    bias[1 if gates == 4 else slice(2)] = 1  # f of i, f, c, o; the two gates of a GRU
    for _ in range(case["layers"]):
        kernels = (np.full((n, gates * units), WEIGHT, np.float32) for n in (width, units))
        cells.append(CellWeights(*kernels, bias.ravel(), np.zeros(bias.size, np.float32)))
        width = units
    if gates == 4:
        return LSTMWeights(tuple(cells))
    return GRUWeights(tuple(cells), reset_after=False)


def block_cell(
    weights: LSTMWeights, x: Array, states: States, *, op: str, module: Any
) -> tuple[Array, States]:
    """A block-cell op for each layer; the one of a step for each step, too."""
    finals = []
    order, forget_bias = ("IFCO", 0.0) if op == "BlockLSTMV2" else ("ICFO", 1.0)
    attributes = {} if op == "BlockLSTMV2" else {"forget_bias": forget_bias}
    for cell, h, c in zip(weights.cells, states.h, states.c, strict=True):
        one = LSTMWeights((cell,)).to_block_cell(gate_order=order, forget_bias=forget_bias)
        given = {name: tf.constant(a, x.dtype) for name, a in one._asdict().items()}
        if op == "LSTMBlockCell":
            outputs = []
            for row in x:
                found = module.LSTMBlockCell(x=row, cs_prev=c, h_prev=h, **given, **attributes)
                h, c = found.h, found.cs
                outputs.append(h)
            x = np.stack(outputs)
        else:
            steps = {"seq_len_max": np.int64(len(x)), "x": x, "cs_prev": c, "h_prev": h}
            found = getattr(module, op)(**steps, **given, **attributes)
            x, h, c = found.h.numpy(), found.h[-1], found.cs[-1]
        finals.append((h, c))
    return x, States(*map(np.stack, zip(*finals, strict=True)))


def block(op: str, module: Any) -> Any:
    return lambda *given: block_cell(*given, op=op, module=module)


BLOCK_OPS = ("LSTMBlockCell", "BlockLSTM", "BlockLSTMV2")
PROGRAMS = {
    **{op: block(op, raw_ops) for op in BLOCK_OPS},
    **{f"stock {op}": block(op, tf.raw_ops) for op in BLOCK_OPS},  # for the data themselves
    **{"CudnnRNN": programs.cudnn, "keras": programs.keras_layers, "session": programs.session},
}
ONLY_LSTM = PROGRAMS.keys() - {"keras", "session"}


def runs() -> list[tuple[str, str]]:
    """Each case with each program that has its cell and type."""
    return [
        (test, program)
        for (test, case), program in itertools.product(CELLS.items(), PROGRAMS)
        if not (case["cell"] == "gru" and program in ONLY_LSTM)
        and not ("dtype" in case and program == "session")
    ]


def assert_prints(values: Any, literals: list[Decimal], dtype: str) -> None:
    """That each row of values has the digits of its literal.

    Some literals are cut off instead of rounded, so the allowed error is a unit of the last digit.
    Four units of roundoff of 1, the size of gates and states, are added: both programs computed in
    the type. In float32 our results and the literals differ by at most 1.6 of them from float64.
    """
    for value, literal in zip(values, literals, strict=True):
        last = 10.0 ** literal.as_tuple().exponent
        allowed = last + 4 * UNIT_ROUNDOFF[dtype]
        np.testing.assert_allclose(value, float(literal), rtol=0, atol=allowed)


@pytest.mark.parametrize("test, program", runs())
def test_cells(test: str, program: str) -> None:
    case = CELLS[test]
    dtype = case.get("dtype", "float32")
    weights = weights_of(case)
    shape = case["layers"], 1, case["units"]
    states = States(*(np.full(shape, STATE, dtype) for _ in range(2)))
    for call in case["calls"]:
        if "h_before" in call:
            states = states._replace(h=np.full(shape, call["h_before"], dtype))
        x = np.array(call["x"], dtype)[:, None]
        output, states = PROGRAMS[program](weights, x, states)
        got = {"output": output, **states._asdict()}
        for name in got.keys() & call.keys():
            assert_prints(got[name], call[name], dtype)


# --- CudnnRNN --------------------------------------------------------------------------------

INFERENCE = DATA["simple_inference"]
WEIGHTS = {"lstm": LSTMWeights, "gru": GRUWeights, "rnn_tanh": RNNWeights, "rnn_relu": RNNWeights}


def assert_sum(results: Any, literal: Decimal | int) -> None:
    """Half a unit of the last digit, and the rounding of a sum in float32 on TensorFlow's side.

    It is 0.02 of 231833.22, where the test itself allows 2318.
    """
    want = float(literal)
    allowed = 0.5 * 10.0 ** Decimal(literal).as_tuple().exponent + np.spacing(np.float32(want))
    got = sum(np.sum(np.asarray(a), dtype=np.float64) for a in results)
    assert abs(got - want) <= allowed


def ones_of(case: dict[str, Any]) -> tuple[dict[str, int], grid.Arguments]:
    """The sizes of a case of simple_inference, and its arguments."""
    sizes = {name: case[name] for name in SIZES}
    model = Model(case["mode"], sizes["inputs"], sizes["units"], sizes["layers"])
    state = np.ones((sizes["layers"], sizes["batch"], sizes["units"]), np.float32)
    cell_state = state if case["mode"] == "lstm" else np.zeros((), np.float32)
    x = np.ones((sizes["time"], sizes["batch"], sizes["inputs"]), np.float32)
    params = np.ones(model.params_size, np.float32)
    return sizes, grid.Arguments(x, state, cell_state, params)


@pytest.mark.parametrize("dropout", INFERENCE["dropouts"])
@pytest.mark.parametrize("case", INFERENCE["cases"], ids=lambda case: case["mode"])
def test_sums(case: dict[str, Any], dropout: Decimal) -> None:
    """Dropout has no effect in inference."""
    _, arguments = ones_of(case)
    options = {"rnn_mode": case["mode"], "dropout": float(dropout), "is_training": False}
    assert_sum(raw_ops.CudnnRNN(**arguments._asdict(), **options)[:3], case["sum"])


@pytest.mark.parametrize("case", INFERENCE["cases"], ids=lambda case: case["mode"])
def test_sums_of_sessions(case: dict[str, Any]) -> None:
    sizes, arguments = ones_of(case)
    named = {"input_size": sizes["inputs"], "num_layers": sizes["layers"]}
    if case["mode"] == "rnn_relu":
        named["activation"] = "relu"
    weights = WEIGHTS[case["mode"]].from_cudnn(arguments.params, units=sizes["units"], **named)
    states = States(arguments.input_h, arguments.input_h)
    output, final = programs.session(weights, arguments.input, states)
    has_cell_state = case["mode"] == "lstm"
    assert_sum([output, *final[: 1 + has_cell_state]], case["sum"])


@pytest.mark.parametrize("mode", grid.MODES)
def test_size_of_params(mode: str) -> None:
    for sizes, directions in itertools.product(DATA["params_size"]["cases"], (1, 2)):
        num_layers, units, inputs = sizes
        size = raw_ops.CudnnRNNParamsSize(
            **{"num_layers": num_layers, "num_units": units, "input_size": inputs},
            **{"T": tf.float32, "S": tf.int32, "rnn_mode": mode},
            direction="bidirectional" if directions == 2 else "unidirectional",
        )
        assert size >= Model(mode, inputs, units, num_layers, directions).params_size


@pytest.mark.parametrize("mode", grid.MODES)
def test_compatible_cells(rng: np.random.Generator, mode: str) -> None:
    """A float64 oracle computes the cells."""
    for sizes, directions in itertools.product(DATA["compatible_cells"]["cases"], (1, 2)):
        num_layers, time, units, inputs, batch = sizes
        case = grid.Case(Model(mode, inputs, units, num_layers, directions), time, batch)
        arguments = grid.random_arguments(rng, case, "float32")
        given = grid.Arguments(*(a.astype(np.float32) for a in arguments))
        got = grid.call(case, given, version=1, is_training=False)
        errors = relative_errors(grid.Results(*got[:3]), grid.reference(case, arguments))
        assert max(errors.values()) <= PROMISED, (sizes, directions)
