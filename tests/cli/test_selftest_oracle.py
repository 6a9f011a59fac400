"""The self-test of the CPU: its kernels beside plain TensorFlow ops in float64."""

import functools
import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import op_definitions
from tf_lstm_ops.selftest import check, large, ops, oracle, programs

CASES = {f"{case.op}: {case.what}": case for case in ops.CASES}
SHORT = [name for name, case in CASES.items() if str(ops.LONG) not in case.what]
PROGRAMS = {f"{op}: {what}": (shapes, layers) for op, what, shapes, layers in programs._programs()}
SMALL = large.Size(2, 8, 5)


@pytest.fixture(autouse=True)
def same_dropout_mask_in_every_call(monkeypatch):
    """As in the child process of the self-test."""
    monkeypatch.setenv("TF_CUDNN_RESET_RND_GEN_STATE", "1")


@pytest.fixture
def break_kernels(monkeypatch):
    """Makes an op return a wrong output. Where plain ops replace the op, it is not run."""
    original = op_definitions.function

    def broken(op, wrong):
        function = original(op)
        if op != wrong:
            return function

        @functools.wraps(function)
        def call(*args, **kwargs):
            results = function(*args, **kwargs)
            values = tf.nest.flatten(results)
            output = -1 if op.startswith("Block") else 0  # h, or output
            wrong_by = tf.cast(0.01, values[output].dtype)
            values[output] += wrong_by * values[output] + wrong_by
            return tf.nest.pack_sequence_as(results, values)

        return call

    return lambda op: monkeypatch.setattr(
        op_definitions, "function", functools.partial(broken, wrong=op)
    )


@pytest.mark.parametrize("name", SHORT)
def test_the_kernels_agree_with_the_oracle(name):
    result = ops._check(CASES[name], tf.float32, False, "CPU:0")
    assert result.passed, result


def all_cases():
    for number, case in enumerate(itertools.product(CASES, check.DTYPES)):
        yield pytest.param(*case, marks=pytest.mark.slow if number % 4 else pytest.mark.full)


@pytest.mark.parametrize(("name", "dtype"), all_cases())
def test_all_kernels_agree_with_the_oracle(name, dtype):
    result = ops._check(CASES[name], dtype, False, "CPU:0")
    assert result.passed, result


@pytest.mark.parametrize("name", SHORT)
def test_a_broken_kernel_is_noticed(name, break_kernels):
    break_kernels(CASES[name].op)
    result = ops._check(CASES[name], tf.float32, False, "CPU:0")
    assert not result.passed and not result.error


def test_a_broken_gradient_kernel_is_noticed(break_kernels):
    break_kernels("KerasGRUGrad")
    assert not ops._check(CASES["KerasGRU: 6 steps"], tf.float32, False, "CPU:0").passed


def test_a_broken_dropout_mask_is_noticed(monkeypatch):
    original = op_definitions.function
    monkeypatch.setattr(
        op_definitions,
        "function",
        lambda op: (
            (lambda reserve_space: 3 * original(op)(reserve_space=reserve_space))
            if op == "CudnnRNNDropoutMask"
            else original(op)
        ),
    )
    with pytest.raises(RuntimeError, match="the dropout mask is wrong"):
        ops._check(CASES["CudnnRNNV3: lstm, dropout"], tf.float32, False, "CPU:0")


@pytest.mark.parametrize(
    "op", [pytest.param("KerasLSTM", marks=pytest.mark.full), "BlockLSTM", "MPSGraphLSTM"]
)
def test_programs(op, break_kernels):
    name = next(name for name in PROGRAMS if name.startswith(f"{op}:"))
    assert programs._check(*PROGRAMS[name], tf.float32, "CPU:0").passed
    break_kernels(op)
    assert not programs._check(*PROGRAMS[name], tf.float32, "CPU:0").passed


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", large.TOLERANCES)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("op", ["KerasLSTM", "CudnnRNNV3"])
def test_large_sizes(op, masked, dtype):
    assert large._check(SMALL._replace(op=op, masked=masked), dtype, "CPU:0").passed


def test_a_failure_of_stock_code_is_none_of_ours(monkeypatch):
    def stock(size, x, device):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(large, "_stock", stock)
    result = large._measure(SMALL, "CPU:0")
    assert result.passed and math.isnan(result.times["stock"])


@pytest.mark.full
@pytest.mark.parametrize("op", ["KerasLSTM", "CudnnRNNV3"])
def test_a_broken_kernel_is_noticed_in_large_sizes(op, break_kernels):
    break_kernels(op)
    assert not large._check(SMALL._replace(op=op), tf.float32, "CPU:0").passed


@pytest.mark.parametrize("name", [name for name in SHORT if not name.endswith("lstm, dropout")])
def test_the_oracle_runs_no_kernel_of_this_package(name, monkeypatch):
    """An op may be traced for its shapes, but not run."""
    original, run = op_definitions.function, set()

    def recorded(op):
        @functools.wraps(original(op))
        def call(*args, **kwargs):
            if tf.executing_eagerly():
                run.add(op)
            return original(op)(*args, **kwargs)

        return call

    monkeypatch.setattr(op_definitions, "function", recorded)
    CASES[name].run(ops._random(tf.float32, oracle.constant), oracle.call)
    assert run <= {"CudnnRNNParamsSize"}  # a number of elements


def test_a_gpu_is_compared_with_the_cpu(monkeypatch):
    devices = []

    def results(case, dtype, device):
        devices.append(device)
        return [np.ones(2)]

    monkeypatch.setattr(ops, "_results", results)
    assert ops._check(ops.CASES[0], tf.float32, False, "GPU:0").passed
    assert sorted(devices) == ["CPU:0", "GPU:0"]


def test_times_of_the_cpu_are_not_compared_with_themselves():
    assert not [c.name for c in large.checks("CPU:0") if c.name.startswith("time")]
