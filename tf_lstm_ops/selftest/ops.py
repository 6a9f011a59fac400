"""Checks of one op and its gradient op, called eagerly."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tf_lstm_ops import _gpu, _placement, _tf_private, op_definitions
from tf_lstm_ops.keras import cudnn_path
from tf_lstm_ops.raw_ops.common import run
from tf_lstm_ops.selftest import oracle
from tf_lstm_ops.selftest.check import (
    DTYPES,
    TF32_TOLERANCE,
    TOLERANCES,
    Check,
    Result,
    compare,
)

BATCH, INPUTS, UNITS = 3, 5, 8
SHORT, LONG = 6, 70  # steps

Random = Callable[..., Any]  # returns a tensor of these sizes, the same for every device
Call = Callable[..., Any]  # runs the op of this name on the device


class Case(NamedTuple):
    """A case.

    Attributes:
      op: the op's name without its namespace.
      what: a description.
      run: returns all results of the op and of its gradient op.
      attributes: of the op, by which a device may refuse the case.
    """

    op: str
    what: str
    run: Callable[[Random, Call], Sequence[Any]]
    attributes: Mapping[str, Any] = {}


def checks(device: str) -> Iterator[Check]:
    """The checks of all ops and types.

    Args:
      device: such as "GPU:0".

    Yields:
      A check for each case and type for which the device has a kernel. On an NVIDIA GPU float32 is
      checked with TF32 too, as users have it.
    """
    is_gpu = device.startswith("GPU")
    is_cuda = is_gpu and _gpu.status().cuda
    for case in CASES:
        if is_cuda and "dropout" in case.what:
            continue  # calls with dropout have no CUDA kernel
        if is_gpu and not is_cuda and _placement.metal_lacks(case.op, case.attributes):
            continue
        # Where a rounded value has the other sign, the gradient of relu differs as a whole.
        has_kinks = case.attributes.get("rnn_mode") == "rnn_relu"
        for dtype in (tf.float32, tf.float64) if has_kinks else (*DTYPES, tf.float64):
            if _has_kernel(case.op, device, dtype):
                name = f"{case.op}: {case.what}, {dtype.name}"
                yield Check(name, functools.partial(_check, case, dtype, False))
                if is_cuda and dtype == tf.float32 and not has_kinks:
                    yield Check(f"{name} with TF32", functools.partial(_check, case, dtype, True))


def _has_kernel(op: str, device: str, dtype: tf.DType) -> bool:
    """Whether a device has a kernel."""
    found = _tf_private.registered_kernels(f"{op_definitions.NAMESPACE}{op}")
    return any(
        kernel.device_type == device.partition(":")[0]
        and any(dtype.as_datatype_enum in c.allowed_values.list.type for c in kernel.constraint)
        for kernel in found
    )


def has_layer_kernel(op: str, device: str, dtype: tf.DType) -> bool:
    """Whether a device has a kernel for a layer.

    Args:
      op: the op of the layer, or another one, without its namespace.
      device: such as "GPU:0".
      dtype: the type of its tensors.

    Returns:
      Whether the kernel is registered; on Metal a layer is a call of CudnnRNNV3.
    """
    is_call = op == "KerasLSTM" and device.startswith("GPU") and _placement.on_metal()
    return _has_kernel("CudnnRNNV3" if is_call else op, device, dtype)


def call_layer(op: str, **given: Any) -> list[Any]:
    """Calls the op of a layer, or what computes it on this machine.

    Args:
      op: the op's name without its namespace.
      **given: inputs and attributes. Other inputs are absent, other attributes have the defaults.

    Returns:
      The output and the final states.
    """
    absent = {
        name: tf.zeros([0], declared.dtype or given["x"].dtype)
        for name, declared in op_definitions.inputs(op).items()
    }
    arguments = {**op_definitions.defaults(op), **absent, **given}
    if _placement.on_metal():
        return cudnn_path.run(op, arguments)
    return list(run(op, arguments))[:-1]


def _check(case: Case, dtype: tf.DType, tf32: bool, device: str) -> Result:
    tf.config.experimental.enable_tensor_float_32_execution(tf32)
    try:
        got = _results(case, dtype, device)
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(False)
    if oracle.is_oracle(device):
        want = case.run(_random(dtype, oracle.constant), oracle.call)
    else:
        want = _results(case, dtype, "CPU:0")
    return compare(got, want, TF32_TOLERANCE if tf32 else TOLERANCES[dtype])


def _random(dtype: tf.DType, constant: Callable[..., Any] = tf.constant) -> Random:
    rng = np.random.default_rng(0)

    def random(*shape: int) -> Any:
        with tf.device("CPU:0"):
            return constant(rng.standard_normal(shape) / 2, dtype)

    return random


def _results(case: Case, dtype: tf.DType, device: str) -> Sequence[Any]:
    def call(op: str, **arguments: Any) -> Any:
        with tf.device(device):
            results = op_definitions.function(op)(**arguments)
        first = tf.nest.flatten(results)[0]
        if not first.device.endswith(device):
            raise RuntimeError(f"{op} ran on {first.device}, not on {device}")
        return results

    return case.run(_random(dtype), call)


def _block_cell(random: Random, *sizes: int) -> dict[str, Any]:
    """The inputs of an op of the block cell, with x of the shape [*sizes, INPUTS]."""
    return {
        "x": random(*sizes, INPUTS),
        "cs_prev": random(BATCH, UNITS),
        "h_prev": random(BATCH, UNITS),
        "w": random(INPUTS + UNITS, 4 * UNITS),
        **{name: random(UNITS) for name in ("wci", "wcf", "wco")},
        "b": random(4 * UNITS),
    }


def _step(random: Random, call: Call) -> list[Any]:
    inputs = _block_cell(random, BATCH)
    outputs = call("LSTMBlockCell", **inputs, use_peephole=True, cell_clip=0.3)._asdict()
    grads = {f"{name}_grad": random(BATCH, UNITS) for name in ("cs", "h")}
    saved = {k: v for k, v in outputs.items() if k != "h"}
    stock = call("LSTMBlockCellGrad", **inputs, **saved, **grads, use_peephole=True)
    grads |= {f"{name}_grad": random(BATCH, UNITS) for name in ("i", "f", "o", "ci", "co")}
    full = call("LSTMBlockCellFullGrad", **inputs, **outputs, **grads, use_peephole=True)
    return [*outputs.values(), *stock, *full]


def _block_lstm(version: str, time: int, steps: int) -> Callable[[Random, Call], list[Any]]:
    def run(random: Random, call: Call) -> list[Any]:
        inputs = _block_cell(random, time, BATCH)
        inputs["seq_len_max"] = tf.constant(steps, tf.int64)
        outputs = call(f"BlockLSTM{version}", **inputs, use_peephole=True)._asdict()
        output_grads = {f"{name}_grad": random(time, BATCH, UNITS) for name in ("cs", "h")}
        backward = f"BlockLSTMGrad{version}"
        input_grads = call(backward, **inputs, **outputs, **output_grads, use_peephole=True)
        results = [*outputs.values(), *input_grads]
        if not version:
            for name in ("i", "f", "o", "ci", "co"):
                output_grads[f"{name}_grad"] = random(time, BATCH, UNITS)
            full = call("BlockLSTMFullGrad", **inputs, **outputs, **output_grads, use_peephole=True)
            results += full
        return results

    return run


def _two_layers(what: str, time: int = SHORT, version: str = "V3", **attributes: Any) -> Case:
    """CudnnRNN and its gradient, two layers."""
    given = attributes.copy()
    lengths = attributes.pop("lengths", None)
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    is_lstm = attributes.get("rnn_mode", "lstm") == "lstm"
    hidden = attributes.get("num_proj") or UNITS

    def run(random: Random, call: Call) -> list[Any]:
        scalars = {"num_layers": 2, "num_units": UNITS, "input_size": INPUTS}
        names = ("rnn_mode", "direction", "num_proj")
        model = {k: v for k, v in attributes.items() if k in names}
        with tf.device("CPU:0"):
            size = op_definitions.function("CudnnRNNParamsSize")(
                **scalars, **model, T=tf.float32, S=tf.int32
            )
        inputs = {
            "input": random(time, BATCH, INPUTS),
            "input_h": random(2 * directions, BATCH, hidden),
            "input_c": random(2 * directions, BATCH, UNITS) if is_lstm else random(),
            "params": random(int(size[0])),
        }
        if version == "V3":
            inputs["sequence_lengths"] = tf.constant(lengths or [time] * BATCH, tf.int32)
        outputs = call(f"CudnnRNN{version}", **inputs, **attributes)._asdict()
        results = {k: v for k, v in outputs.items() if k.startswith("output")}
        output_grads = {f"{name}_backprop": random(*v.shape) for name, v in results.items()}
        backward = f"CudnnRNNBackprop{version}"
        input_grads = call(backward, **inputs, **outputs, **output_grads, **attributes)
        return [*results.values(), *input_grads]

    return Case(f"CudnnRNN{version}", what, run, given)


def _mpsgraph(
    time: int, adds_source: bool = False, **descriptor: Any
) -> Callable[[Random, Call], list[Any]]:
    """`adds_source`: without an input weight."""
    directions = 2 if descriptor.get("bidirectional") else 1

    def run(random: Random, call: Call) -> list[Any]:
        gates, width = directions * 4 * UNITS, directions * UNITS
        both = [2] if directions == 2 else []
        inputs = {
            "source": random(time, BATCH, gates if adds_source else INPUTS),
            "recurrent_weight": random(*both, 4 * UNITS, UNITS),
            "input_weight": random(*([0] if adds_source else [gates, INPUTS])),
            "bias": random(gates),
            "init_state": random(BATCH, width),
            "init_cell": random(BATCH, width),
            "mask": random(BATCH, width),
            "peephole": random(*both, 4 * UNITS),
        }
        output, cell, z_state = call("MPSGraphLSTM", **inputs, **descriptor, training=True)
        input_grads = call(
            "MPSGraphLSTMGradients",
            **inputs,
            **descriptor,
            source_gradient=random(time, BATCH, width),
            z_state=z_state,
            cell_output_fwd=cell,
            state_gradient=random(BATCH, width),
            cell_gradient=random(BATCH, width),
            cell_output_gradient=random(0),
            z_state_gradient=random(0),
        )
        return [output, cell, *input_grads]  # on Metal z_state has MPSGraph's own content

    return run


def _layer(op: str, time: int, masked: bool, drops: bool = False, **attributes: Any) -> Case:
    """A Keras layer's op and its gradient."""
    is_lstm = op == "KerasLSTM"
    gates = {"KerasLSTM": 4, "KerasGRU": 3, "KerasSimpleRNN": 1}[op]

    def run(random: Random, call: Call) -> list[Any]:
        steps = np.arange(BATCH * time).reshape(BATCH, time) % 3 > 0
        inputs = {
            "x": random(BATCH, time, INPUTS),
            "mask": tf.constant(steps if masked else [], tf.bool),
            "initial_h": random(BATCH, UNITS),
            "kernel": random(INPUTS, gates * UNITS),
            "recurrent_kernel": random(UNITS, gates * UNITS),
            "bias": random(2, 3 * UNITS) if op == "KerasGRU" else random(gates * UNITS),
            "input_dropout": random(*([gates, BATCH, INPUTS] if drops else [0])),
            "recurrent_dropout": random(*([gates, BATCH, UNITS] if drops else [0])),
        }
        finals = ["final_h"]
        if is_lstm:
            inputs["initial_c"] = random(BATCH, UNITS)
            inputs["peephole"] = random(*([3, UNITS] if masked else [0]))
            inputs["projection"] = random(0)
            finals.append("final_c")
        outputs = call(op, **inputs, **attributes)._asdict()
        results = [v for k, v in outputs.items() if k != "reserve"]
        output_grads = {f"{k}_grad": random(*outputs[k].shape) for k in ("output", *finals)}
        saved = {k: outputs[k] for k in ("output", "reserve")}
        input_grads = call(f"{op}Grad", **inputs, **saved, **output_grads, **attributes)
        return [*results, *input_grads]

    what = f"{time} steps" + (", mask" if masked else "") + (", dropout" if drops else "")
    what = ", ".join([what, *(k for k, v in attributes.items() if v is True)])
    return Case(op, what, run)


_ACTIVATIONS: dict[str, Any] = {
    "input_gate_activation": "hard_sigmoid",
    "forget_gate_activation": "tanh",
    "cell_gate_activation": "none",
    "output_gate_activation": "sigmoid",
    "activation": "relu",
}

CASES = (
    Case("LSTMBlockCell", "peephole, clip", _step),
    Case("BlockLSTM", f"{SHORT} steps", _block_lstm("", SHORT, SHORT)),
    Case("BlockLSTM", f"{LONG} steps", _block_lstm("", LONG, LONG)),
    Case("BlockLSTM", f"{SHORT - 2} of {SHORT} steps", _block_lstm("", SHORT, SHORT - 2)),
    Case("BlockLSTMV2", f"{SHORT} steps", _block_lstm("V2", SHORT, SHORT)),
    _two_layers(f"lstm, {SHORT} steps"),
    _two_layers(f"lstm, {LONG} steps, lengths", LONG, lengths=[LONG, 1, 40]),
    _two_layers("lstm, bidirectional", direction="bidirectional"),
    _two_layers("lstm, bidirectional, lengths", direction="bidirectional", lengths=[SHORT, 0, 4]),
    _two_layers("lstm", version=""),
    _two_layers("lstm", version="V2"),
    _two_layers("lstm, projection", num_proj=3),
    _two_layers("lstm, dropout", dropout=0.5, seed=1),
    _two_layers("gru", rnn_mode="gru"),
    _two_layers("rnn_tanh", rnn_mode="rnn_tanh"),
    _two_layers("rnn_relu", rnn_mode="rnn_relu"),
    Case("MPSGraphLSTM", f"{SHORT} steps", _mpsgraph(SHORT)),
    Case("MPSGraphLSTM", f"{LONG} steps, reverse", _mpsgraph(LONG, reverse=True)),
    Case("MPSGraphLSTM", "bidirectional", _mpsgraph(SHORT, bidirectional=True)),
    Case("MPSGraphLSTM", "forget_gate_last", _mpsgraph(SHORT, forget_gate_last=True)),
    Case("MPSGraphLSTM", "without input_weight", _mpsgraph(SHORT, True)),
    Case("MPSGraphLSTM", "other activations", _mpsgraph(SHORT, **_ACTIVATIONS)),
    _layer("KerasLSTM", SHORT, False),
    _layer("KerasLSTM", LONG, True, zero_output_for_mask=True),
    _layer("KerasLSTM", LONG, True, True, zero_output_for_mask=True),
    _layer("KerasLSTM", SHORT, True, go_backwards=True),
    _layer("KerasGRU", SHORT, False),
    _layer("KerasGRU", LONG, True, go_backwards=True),
    _layer("KerasGRU", LONG, True, True, go_backwards=True),
    _layer("KerasSimpleRNN", SHORT, True),
)
