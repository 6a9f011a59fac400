"""The eleven ops: their definitions are stock's, under both names there are kernels on the CPU."""

import inspect
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf.message import Message
from tensorflow.python.framework import op_def_registry

from tf_lstm_ops import raw_ops

from .cases import (
    BACKPROP,
    DTYPES,
    FORWARD,
    LAYOUT_OPS,
    SEQUENCE_OPS,
    TO_CANONICAL,
    TO_PARAMS,
    Case,
    arguments,
    call,
    random_tensor,
)

OPS = [*SEQUENCE_OPS, *LAYOUT_OPS]
CASE = Case(layers=2, directions=2, time=3, batch=2)
PROJECTED = Case(layers=2, directions=2, time=3, batch=2, proj=2)


def call_layout_op(op: str, case: Case, dtype: str, source: str) -> Any:
    """An op of the canonical conversions on random inputs, or the op of the size."""
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {
        "num_layers": case.layers,
        "num_units": case.units,
        "input_size": case.inputs,
    }
    if op == "CudnnRNNParamsSize":
        given |= {"T": tf.as_dtype(dtype), "S": tf.int32}
    elif op in TO_CANONICAL:
        given["params"] = random_tensor(rng, (case.params_size(),), dtype)
        weights, biases = len(case.matrices()), len(case.biases())
        if op.endswith("V2"):
            given |= {"num_params_weights": weights, "num_params_biases": biases}
        else:
            given["num_params"] = weights
    else:
        given["weights"] = [random_tensor(rng, shape, dtype) for shape in case.matrices()]
        given["biases"] = [random_tensor(rng, shape, dtype) for shape in case.biases()]
    return call(op, case, given, source)


def run(op: str, dtype: str, source: str) -> Any:
    takes_projection = op.endswith("V3") or op in (TO_CANONICAL[1], TO_PARAMS[1])
    case = PROJECTED if takes_projection else CASE
    if op in LAYOUT_OPS:
        return call_layout_op(op, case, dtype, source)
    return call(op, case, arguments(op, case, dtype), source)


def definition(name: str) -> Message:
    found = op_def_registry.get(name)
    assert found is not None, name
    return found


def attributes(op_def: Message) -> dict[str, Any]:
    """Type, default, least value and set of allowed values of each attribute."""
    return {
        a.name: (
            a.type,
            a.default_value,
            a.minimum if a.has_minimum else None,
            sorted(a.allowed_values.list.s),
            sorted(a.allowed_values.list.type),
        )
        for a in op_def.attr
    }


@pytest.mark.parametrize("op", OPS)
def test_definition_is_that_of_stock(op):
    """Arguments and results with their order and types, attributes, and being stateful: kernels
    that count their calls must not be merged or moved."""
    ours, stock = definition(f"TfLstmOps>{op}"), definition(op)
    for argument in ("input_arg", "output_arg"):
        fields = [
            [(a.name, a.type, a.type_attr, a.number_attr) for a in getattr(d, argument)]
            for d in (ours, stock)
        ]
        assert fields[0] == fields[1]
    assert attributes(ours) == attributes(stock)
    assert ours.is_stateful == stock.is_stateful


@pytest.mark.parametrize("op", OPS)
def test_signature_is_that_of_stock(op):
    """Argument for argument, but for `name`, which callers pass by name."""
    ours, stock = (inspect.signature(getattr(m, op)).parameters for m in (raw_ops, tf.raw_ops))
    assert [p for p in ours if p != "name"] == [p for p in stock if p != "name"]
    assert {p.kind for p in ours.values()} == {inspect.Parameter.KEYWORD_ONLY}
    for argument, parameter in stock.items():
        assert ours[argument].default == parameter.default, argument


def test_ops_are_public():
    assert set(OPS) <= set(raw_ops.__all__)
    assert len(OPS) == len(set(OPS)) == 11


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
def test_both_names_run_on_the_cpu_and_agree(op, dtype):
    """The same named tuple or tensor with the same bits, every float of the asked type."""
    with tf.device("CPU"):
        ours, stock = run(op, dtype, "own"), run(op, dtype, "stock")
    assert getattr(ours, "_fields", None) == getattr(stock, "_fields", None)
    ours, stock = tf.nest.flatten(ours), tf.nest.flatten(stock)
    assert len(ours) >= (4 if op in SEQUENCE_OPS else 1)
    for a, b in zip(ours, stock, strict=True):
        assert a.dtype == b.dtype and a.dtype in (tf.as_dtype(dtype), tf.int8, tf.int32)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("op", [*FORWARD, *BACKPROP])
def test_results_have_the_documented_shapes(op):
    results = run(op, "float32", "own")
    case = PROJECTED if op.endswith("V3") else CASE
    for a, shape in zip(results, case.result_shapes(op), strict=True):
        assert shape is None or tuple(a.shape) == shape


PROBE = """
import sys
import numpy as np
import tensorflow as tf

def attempt():
    size = tf.raw_ops.CudnnRNNParamsSize(
        num_layers=1, num_units=2, input_size=3, T=tf.float32, S=tf.int32
    )
    state = np.zeros([1, 4, 2], np.float32)
    return tf.raw_ops.CudnnRNNV3(
        input=np.zeros([5, 4, 3], np.float32),
        input_h=state,
        input_c=state,
        params=np.zeros(size, np.float32),
        sequence_lengths=[5] * 4,
    ).output.shape

try:
    attempt()
except tf.errors.NotFoundError as error:
    print("without:", str(error).splitlines()[0])
import tf_lstm_ops
print("with:", attempt())
"""


@pytest.mark.full
def test_without_the_package_tensorflow_has_no_kernel():
    """In a new process that sees no GPU; and the package may come late."""
    process = subprocess.run(
        [sys.executable, "-c", PROBE],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    without, with_package = process.stdout.splitlines()
    assert "CudnnRNNParamsSize" in without
    assert with_package == "with: (5, 4, 2)"
