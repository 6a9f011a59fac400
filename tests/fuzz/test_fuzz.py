"""Random calls, and that the fuzzer sees what it is for."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session

from cudnn_rnn.cases import Case, arguments
from cudnn_rnn.forged import HEADER
from tf_lstm_ops import _library

from . import block_cell, cudnn_rnn, draw, graphs, keras, mpsgraph, runner
from .call import Derivatives, check, check_derivatives, execute

FAMILIES = runner.MODULES
ROOT = Path(__file__).resolve().parents[2]


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "tests.fuzz", *options]


def right_call(family, name, has_derivatives=False):
    """The first drawn call of this name that must be accepted."""
    for seed in range(10_000):
        call = family.draw(np.random.default_rng(seed))
        is_right = call.name == name and call.errors == [] and call.want
        if is_right and call.dtype == "float64" and (call.derivatives or not has_derivatives):
            return call
    raise AssertionError(name)


@pytest.mark.full
@pytest.mark.parametrize("calls", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_calls(calls):
    """In a process of its own, because stock.override cannot be undone."""
    result = subprocess.run(
        command("--calls", str(calls)), cwd=ROOT, capture_output=True, text=True, timeout=900
    )
    assert result.returncode == 0, result.stderr[-4000:]
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"{calls} calls in") and last.endswith(" 0 failed"), last


@pytest.mark.full
def test_every_op_is_drawn():
    _library.register()
    registered = pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList())
    ops = (op.name for op in op_def_pb2.OpList.FromString(registered).op)
    own = {op.removeprefix("TfLstmOps>") for op in ops if op.startswith("TfLstmOps>")}
    assert own == {op for family in FAMILIES for op in family.OPS}
    drawn = set()
    for number in range(1000):
        rng = np.random.default_rng([7, number])
        drawn.add(FAMILIES[number % len(FAMILIES)].draw(rng).name)
    assert drawn == runner.NAMES


def test_a_call_depends_on_its_number_only():
    def tensors(number):
        call = runner.draw_call(np.random.default_rng([3, number]))
        return call.name, [tf.io.serialize_tensor(t).numpy() for t in call.tensors]

    first = [tensors(number) for number in range(40)]
    assert [tensors(number) for number in reversed(range(40))] == first[::-1]


# --- what it must see --------------------------------------------------------------------------


@pytest.mark.full
def test_right_calls_pass():
    for family, name in (
        (block_cell, "own BlockLSTM"),
        (cudnn_rnn, "own CudnnRNNV3"),
        (keras, "own KerasGRU"),
        (mpsgraph, "own MPSGraphLSTM"),
    ):
        call = right_call(family, name, has_derivatives=True)
        for how in ("eager", *call.how):
            assert check(call, how)
        for order in (1, 2):
            check_derivatives(call, np.random.default_rng(0), order, traced=False)


def test_a_wrong_result_is_seen():
    call = right_call(block_cell, "own BlockLSTMV2")
    want = list(call.want())
    want[3] = want[3] + 1e-9
    with pytest.raises(AssertionError, match="result 3 differs by 1e-09"):
        check(call._replace(want=lambda: want), "eager")
    want[3] = want[3][:, :, None]
    with pytest.raises(AssertionError, match="result 3 has shape"):
        check(call._replace(want=lambda: want), "eager")


def test_nan_is_seen():
    call = right_call(block_cell, "own BlockLSTM")
    broken = call._replace(run=lambda *t: [a * np.nan for a in execute(call, "eager")])
    with pytest.raises(AssertionError, match="differs"):
        check(broken, "eager")
    shapes = [tuple(a.shape) for a in execute(call, "eager")]
    assert check(call._replace(want=None, shapes=shapes), "eager")
    with pytest.raises(AssertionError, match="result 0 is not finite"):
        check(broken._replace(want=None, shapes=shapes), "eager")
    with pytest.raises(AssertionError, match="result 0 has shape"):
        check(call._replace(want=None, shapes=[(1,), *shapes[1:]]), "eager")


def test_wrong_verdicts_are_seen():
    call = right_call(keras, "own KerasLSTM")
    with pytest.raises(AssertionError, match="a wrong call was accepted"):
        check(call._replace(errors=["rank"]), "eager")
    refused = call._replace(tensors=[call.tensors[0][0], *call.tensors[1:]])
    with pytest.raises(AssertionError, match="a right call was refused"):
        check(refused, "eager")
    with pytest.raises(AssertionError, match=r"not \['another text'\]"):
        check(refused._replace(errors=["another text"]), "eager")
    assert not check(refused._replace(errors=["x must be rank 3 but is rank 2"]), "eager")


@pytest.mark.parametrize("order", [pytest.param(1, marks=pytest.mark.full), 2])
def test_a_wrong_derivative_is_seen(order):
    call = right_call(cudnn_rnn, "own CudnnRNNV3", has_derivatives=True)
    right: Derivatives = call.derivatives
    wrong = right._replace(backward=lambda *given: [1.001 * a for a in right.backward(*given)])
    with pytest.raises(AssertionError, match="differs"):
        check_derivatives(
            call._replace(derivatives=wrong), np.random.default_rng(0), order, traced=False
        )


def test_forged_headers_are_consistent():
    """Each field is forged, and the checksum is right, so that the other checks must refuse."""
    right = arguments("CudnnRNNBackprop", replace(Case(), layers=2))["reserve_space"]
    changed = set()
    for seed in range(300):
        found = cudnn_rnn.forged(np.random.default_rng(seed), right)
        header, own = (a[: 64 // a.itemsize].view(HEADER)[0] for a in (found, right.numpy()))
        changed |= {k for k in HEADER.names if header[k] != own[k]}
    assert changed == set(HEADER.names)


def test_sizes_reach_the_largest():
    shapes = [draw.wrong_shape(np.random.default_rng(seed), (2, 3)) for seed in range(500)]
    assert 2**63 - 1 in {size for shape in shapes for size in shape}


@pytest.mark.parametrize("name", graphs.BODIES)
def test_the_graphs_run_as_they_are(name):
    """Else tampering with them would show nothing."""
    graphs.run_graph(graphs.graph_of(name))


@pytest.mark.parametrize("name", ["KerasLSTM", pytest.param("CudnnRNNV3", marks=pytest.mark.slow)])
def test_the_saved_models_run_as_they_are(name):
    graphs.run_saved_model(name, graphs.saved_graph_of(name))


def test_the_end_of_the_process_is_reported():
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    process = subprocess.Popen(
        command("--calls", "10000", "--seed", "5"),
        cwd=ROOT,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (found := children.read_text().split()):
        time.sleep(0.02)
    os.kill(int(found[0]), signal.SIGSEGV)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "status -11" in text
    assert "python -m tests.fuzz --seed 5 --first 0 --calls 1" in text
