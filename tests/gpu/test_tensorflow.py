"""The ops on a GPU against the same ops on the CPU, whose own suites compare them with the oracle;
against stock's CudnnRNNV3; and what stock gets wrong on a GPU."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from block_cell.accuracy import UNIT_ROUNDOFF
from block_cell.grid import arrays, tensors
from cudnn_rnn.cases import SOURCES
from cudnn_rnn.cases import Case as Call
from cudnn_rnn.cases import arguments as call_arguments
from cudnn_rnn.cases import call as call_op
from cudnn_rnn.grid import CASES, TYPICAL, Case, random_arguments, reference, tape_grads
from cudnn_rnn.grid import call as call_case
from oracle.cudnn_rnn import Results
from tf_lstm_ops import raw_ops

pytestmark = pytest.mark.gpu

# Of the largest number of a tensor: both sides err by up to 34 units of roundoff (34: see
# cudnn_rnn.accuracy), in half and bfloat16 with states that are rounded between steps.
TOLERANCES = {dtype: 2 * 34 * u for dtype, u in UNIT_ROUNDOFF.items()}


def assert_close(got: Any, want: Any, dtype: str) -> None:
    for k, (a, b) in enumerate(zip(arrays(got), arrays(want), strict=True)):
        assert a.shape == b.shape, k
        assert np.isfinite(a).all(), k
        size = np.abs(b).max(initial=0)
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCES[dtype] * size, err_msg=str(k))


def both_passes(case: Case, dtype: str, device: str, **options: Any) -> list[tf.Tensor]:
    """Results, and gradients with the results themselves as upstream ones."""
    rng = np.random.default_rng(0)
    arguments = random_arguments(rng, case, dtype)
    upstream = reference(case, arguments)
    with tf.device(device):
        given = tensors(arguments, dtype)
        results, gradients = tape_grads(case, given, tensors(upstream, dtype), **options)
    assert results.output.device.endswith(device)
    return [*results, *gradients]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_cudnn_rnn_is_the_cpus(case, dtype):
    if case.model.mode == "rnn_relu" and dtype != "float64":
        case = case._replace(model=replace(case.model, layers=1))  # its kinks are no roundings
    want = both_passes(case, dtype, "CPU:0")
    assert_close(both_passes(case, dtype, "GPU:0"), want, dtype)


@pytest.mark.parametrize("case", TYPICAL, ids=str)
def test_a_second_backward_pass(case):
    """cuDNN writes to what its forward pass has saved. In a graph the second one is wrong."""
    given = tensors(random_arguments(np.random.default_rng(0), case, "float32"), "float32")

    def gradients() -> list[tf.Tensor]:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(given.input)
            loss = tf.reduce_sum(call_case(case, given).output ** 2)
        return [tape.gradient(loss, given.input) for _ in range(2)]

    with tf.device("GPU:0"):
        first, second = gradients()
    assert_close([second], [first], "float32")


def test_every_dialect_by_the_self_test():
    run = subprocess.run(
        [sys.executable, "-m", "tf_lstm_ops", "selftest", "--device", "GPU"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr


# --- stock -----------------------------------------------------------------------------------


def without_zeros(case: Case) -> Case:
    """Without lengths of zero, which stock refuses."""
    return case._replace(lengths="full" if case.lengths == "full" else "no zero")


def defined(case: Case, results: list[tf.Tensor]) -> list[tf.Tensor]:
    """Without output_c and its gradient where only an LSTM has them: stock does not write them."""
    return [r for k, r in enumerate(results) if case.model.mode == "lstm" or k not in (2, 5)]


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.model.time_major and not c.model.num_proj], ids=str
)
def test_stock_v3_agrees(case):
    """Its params have our layout. Lengths of zero are errors of cuDNN's there."""
    case = without_zeros(case)
    if case.lengths != "full":  # TensorFlow would take the descriptor of the full batch
        case = case._replace(time=case.time + 1)
    ours = defined(case, both_passes(case, "float32", "GPU:0"))
    stock = defined(case, both_passes(case, "float32", "GPU:0", module=tf.raw_ops))
    assert_close(stock, ours, "float32")


@pytest.mark.parametrize("time_major", [True, False])
def test_a_full_batch_then_a_shorter_one(time_major):
    """TensorFlow keeps one descriptor of cuDNN's for both."""
    case = TYPICAL[0]._replace(model=replace(TYPICAL[0].model, time_major=time_major))
    for lengths in ("full", "no zero", "full"):
        call = case._replace(lengths=lengths)
        want = both_passes(call, "float32", "CPU:0")
        assert_close(both_passes(call, "float32", "GPU:0"), want, "float32")


def outcome(op: str, case: Call, source: str, device: str = "GPU:0", **more: Any) -> Any:
    """The results of a call, or the error."""
    lengths = more.pop("lengths", None)
    with tf.device(device):
        try:
            values = call_arguments(op, case, more.pop("dtype", "float32"), lengths)
            return Results(*arrays(call_op(op, case, values, source, **more)[:3]))
        except tf.errors.OpError as error:
            return error


STOCK_BUGS = {
    "version 1 with cuDNN 9": ("CudnnRNN", Call(layers=2), None),
    "version 2 with cuDNN 9": ("CudnnRNNV2", Call(layers=2), None),
    "a length of zero": ("CudnnRNNV3", Call(), [5, 0, 2]),
    "states in batch-major": ("CudnnRNNV3", Call(layers=2, time_major=False), None),
    "a projection": ("CudnnRNNV3", Call(proj=2), None),
}


@pytest.mark.parametrize("bug", STOCK_BUGS)
def test_what_stock_gets_wrong(bug, record_property):
    """Ours is right; what stock does is only told."""
    op, case, lengths = STOCK_BUGS[bug]
    want = outcome(op, case, "own", "CPU:0", lengths=lengths)
    ours = outcome(op, case, "own", lengths=lengths)
    assert_close(ours, want, "float32")
    stock = outcome(op, case, "stock", lengths=lengths)
    if isinstance(stock, Exception):
        told = f"{type(stock).__name__}: {stock.message[:200]}"
    else:
        told = str([float(np.abs(a - b).max()) for a, b in zip(stock, want, strict=True)])
    print(f"stock, {bug}: {told}")
    record_property(bug, told)


def test_gradients_in_bfloat16(record_property):
    """Stock's gradient op makes a float copy of reserve_space and leaves out what is in it."""
    case = without_zeros(TYPICAL[0])
    want = both_passes(case, "bfloat16", "CPU:0")
    assert_close(both_passes(case, "bfloat16", "GPU:0"), want, "bfloat16")
    try:
        found = arrays(both_passes(case, "bfloat16", "GPU:0", module=tf.raw_ops))
        told = str([float(np.abs(a - b).max()) for a, b in zip(found, arrays(want), strict=True)])
    except tf.errors.OpError as error:
        told = f"{type(error).__name__}: {error.message[:200]}"
    print(f"stock's differences in bfloat16: {told}")
    record_property("bfloat16", told)


CONVERSION = """
import sys
import numpy as np
import tensorflow as tf
from tf_lstm_ops import raw_ops

module = {"own": raw_ops, "stock": tf.raw_ops}[sys.argv[1]]
sizes = {"num_layers": 2, "num_units": 3, "input_size": 4}
with tf.device("GPU:0"):
    size = int(raw_ops.CudnnRNNParamsSize(**sizes, T=tf.float32, S=tf.int32)[0])
    params = tf.range(size, dtype=tf.float32)
    parts = module.CudnnRNNParamsToCanonical(**sizes, params=params, num_params=16)
    again = module.CudnnRNNCanonicalToParams(**sizes, weights=parts.weights, biases=parts.biases)
flat = np.concatenate([np.ravel(part) for part in (*parts.weights, *parts.biases)])
print(len(flat) == size, np.array_equal(flat, params), np.array_equal(again, params))
"""


@pytest.mark.parametrize("source", ["own", "stock"])
def test_conversions(source, record_property):
    """Ours give back what they are given. Stock's, which may end the process, are only told."""
    run = subprocess.run([sys.executable, "-c", CONVERSION, source], capture_output=True, text=True)
    told = run.stdout.strip() if run.returncode == 0 else run.stderr.strip()[-300:]
    if source == "own":
        assert told == "True True True"
    print(f"{source}'s conversions: {told}")
    record_property(f"{source}'s conversions", told)


def test_peephole_gradients_count_once(record_property):
    """Stock adds those of i and f to cs_prev_grad twice."""
    rng = np.random.default_rng(0)
    batch, inputs, units = 3, 4, 5
    shapes = {"x": (batch, inputs), "cs_prev": (batch, units), "h_prev": (batch, units)}
    shapes |= {"w": (inputs + units, 4 * units), "wci": (units,), "wcf": (units,)}
    shapes |= {"wco": (units,), "b": (4 * units,)}
    given = {k: tf.constant(rng.normal(size=s), tf.float32) for k, s in shapes.items()}
    found = {}
    for device, source in (("CPU:0", "own"), ("GPU:0", "own"), ("GPU:0", "stock")):
        module = SOURCES[source]
        with tf.device(device):
            outputs = raw_ops.LSTMBlockCell(**given, use_peephole=True)._asdict()
            kept = {k: outputs[k] for k in ("i", "cs", "f", "o", "ci", "co")}
            gradients = module.LSTMBlockCellGrad(
                **given, **kept, cs_grad=outputs["cs"], h_grad=outputs["h"], use_peephole=True
            )
        found[device, source] = gradients.cs_prev_grad.numpy()
    want = found["CPU:0", "own"]
    assert_close([found["GPU:0", "own"]], [want], "float32")
    told = float(np.abs(found["GPU:0", "stock"] - want).max())
    print(f"stock's cs_prev_grad differs by {told}")
    record_property("cs_prev_grad", told)


@pytest.mark.parametrize("is_traced", [True, False])
def test_second_backward_pass(is_traced):
    """Each pass of one call has a reserve of its own, to which cuDNN writes."""
    rng = np.random.default_rng(0)
    x = tf.constant(rng.normal(size=(7, 3, 5)), tf.float32)
    given = {
        "input_h": tf.zeros([1, 3, 4]),
        "input_c": tf.zeros([1, 3, 4]),
        "params": tf.constant(rng.normal(size=4 * 4 * (5 + 4) + 8 * 4), tf.float32),
        "sequence_lengths": tf.constant([7, 4, 1]),
    }

    def gradients() -> list[tf.Tensor]:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.raw_ops.CudnnRNNV3(input=x, **given)[0] ** 2)
        return [tape.gradient(loss, x) for _ in range(3)]

    with tf.device("GPU:0"):
        first, *others = (tf.function(gradients) if is_traced else gradients)()
    for other in others:
        assert_close([other], [first], "float32")
