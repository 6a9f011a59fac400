"""A pytest plugin with which a suite runs on the device GPU.

tests/conftest.py loads it if TF_LSTM_OPS_TEST_PLUGIN names a PluggableDevice's library. Soft
placement is off. Every call of an op with a GPU kernel for its type is asked to run on GPU:0 and
must say that it did; TF_LSTM_OPS_TEST_REPORT gets the number of such calls of each op.
"""

import functools
import json
import os
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf
from keras.src.trainers import trainer
from tensorflow.python.framework import kernels, load_library

# Before anything runs: a device cannot be added later.
load_library.load_pluggable_device_library(os.environ["TF_LSTM_OPS_TEST_PLUGIN"])
tf.config.set_soft_device_placement(False)
os.environ.setdefault("TF_LSTM_OPS_GPU", "1")  # the emulated device has no record of a self-test

from tf_lstm_ops import _library, _placement, _tf_private  # noqa: E402

# As on a Mac, where Keras does not ask XLA, which knows no such device.
trainer.model_supports_jit = lambda model: False
# Stock layers are what ours are compared with: their own path, not CudnnRNNV3, which is ours too.
import_module("keras.src.backend.tensorflow.rnn")._is_gpu_available = lambda: False

# With a plugin the CPU kernels would refuse GRUs under stock names (tests/stock/test_gru_order.py).
_library._native().tf_lstm_ops_set_cuda_build(True)

HAS_CUDA = "TF_LSTM_OPS_CUDA_LIBRARY" in os.environ  # not Metal's kernels
DEVICE = "GPU:0"
NAMESPACE = "TfLstmOps>"
# Tests that cannot run here, by patterns of their ids.
NOT_OURS = {
    "another process has no device": (
        *("*test_determinism.py*", "*_in_another_process*", "*test_in_new_processes*"),
    ),
    # Metal's LSTM and ours in primitive operations round differently.
    "the same bits whatever is asked for: the CPU engine's promise": (
        "*changes_no_bit*",
        "*test_a_row_alone_has_the_bits_it_has_in_a_batch*",
        "*test_full_lengths_are_no_lengths*",
    ),
    # Its eager mode mixes up the arguments in host memory, here sequence_lengths, of calls at the
    # same time: github.com/tensorflow/tensorflow/issues/124017.
    "TensorFlow's own error": ("tests/cudnn_rnn/test_modes.py::test_many_python_threads*",),
    "an op of TensorFlow's has no kernel for the device": (
        "*test_jacobian*",
        "*test_hessian_is_symmetric*",
        "*test_xla*",
        "*test_backward_passes_draw_nothing*",
        "tests/keras/test_gradients.py::test_batch_jacobian*",
        "*test_forward_mode*",
        "tests/keras/test_mixed_precision.py::test_states_between_calls*",
        "tests/keras/test_mixed_precision.py::test_saved_model_trains_on*",
        "tests/keras/test_parity.py::test_fit_follows_stock*True*",
        "tests/keras/test_mixed_precision.py::test_short_demo*",
    ),
}
WITH_CUDA = {
    "stock names are TensorFlow's own there": ("*stock*",),
    "an op of TensorFlow's has no kernel for the device": ("*test_a_loop_of_calls_is_one_call*",),
    # TensorFlow's op for cuDNN would compute it, and has no kernel here.
    "a GRU is plain ops, and so is a SimpleRNN": (
        "*test_a_row_does_not_depend_on_its_batch?GRU*",
        "*test_the_gradient_of_the_input_is_computed_only_where_it_is_needed?GRU*",
        "*test_the_gradient_of_the_input_is_computed_only_where_it_is_needed?SimpleRNN*",
    ),
    # TensorFlow's own op computes these calls on a GPU, and has no kernel here.
    "the kernels of the CudnnRNN family have no bfloat16 and no dropout": (
        *("tests/cudnn_rnn/*bfloat16*", "*test_runs_repeat*", "*test_inputs_stay_as_they_are*"),
        *(
            "*test_the_mask_of_the_forward_pass_serves_all*",
            "*test_finite_differences_with_dropout*",
        ),
        *(
            "*test_attributes_that_change_nothing*dropout*",
            "tests/cudnn_rnn/test_empty.py*own-0.5*",
        ),
    ),
}
WITH_METAL = {
    "calls of the CPU's kernels, which round differently": (
        *("*stock_name*", "*test_versions_agree*", "*test_in_a_function*stock*"),
        "*test_a_projection_to_the_cell_size_is_none*",
    ),
    "a layer's own op, of which a trace is expected": (
        "*test_the_gradient_of_the_input_is_computed_only_where_it_is_needed*",
    ),
    # reserve_space has no header: it is the mask itself.
    "the op CudnnRNNDropoutMask is the CPU's": (
        "*test_results_and_gradients_are_those_of_the_mask*own*",
        *("*test_no_dropout*own*", "*test_a_new_kernel_begins_anew*own*"),
        "*test_what_the_mask_does_not_depend_on*",
    ),
    # The loop of tf.vectorized_map does not keep a call's device.
    "a GRU where only an LSTM has a kernel": (
        "tests/cudnn_rnn/test_modes.py::test_vectorized_map*",
    ),
}
# tensorflow-metal's memory has no addresses, so TensorFlow ends the process.
NO_ADDRESSES = {
    "lists of tensors": (
        "*test_map_fn*",
        "*test_vectorized_map*",
        "*test_second_derivatives_traced_are_eager*",
        "*test_in_a_function_*",
        "*test_empty.py*sizes*",
        # Stock layers in a graph: their loop.
        "*test_functional_model_with_unknown_batch_and_time*",
        "*test_stateful_model_across_batches*",
        "*test_states_pass_from_encoder_to_decoder*",
        "*test_masks_that_come_with_the_input*",
        "*test_stock_in_a_graph*",
        "*test_third_order_in_a_function*",
        "*test_fit_draws_the_masks_of_stock*",
        "*test_error_does_not_grow_with_time*",
    ),
    "variables that an optimizer changes": (
        "*test_training_moves_the_peepholes*",
        "*test_model_is_as_accurate_as_stock*",
        "*test_fit_follows_stock*",
        "*test_overflow_skips_steps_until_the_scale_fits*",
    ),
}

calls: Counter[str] = Counter()


@functools.cache
def gpu_types() -> dict[str, set[tf.DType]]:
    """For each op of ours the types of which it has GPU kernels, once the library is loaded."""
    found: dict[str, set[tf.DType]] = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type == "GPU" and kernel.op.startswith(NAMESPACE):
            types = (t for c in kernel.constraint for t in c.allowed_values.list.type)
            found.setdefault(kernel.op, set()).update(map(tf.as_dtype, types))
    return found


def float_type(arguments: Any) -> tf.DType | None:
    """The type of the first tensor or array of floats."""
    for value in tf.nest.flatten(arguments):
        dtype = getattr(value, "dtype", None)
        if dtype is not None and tf.as_dtype(dtype).is_floating:
            return tf.as_dtype(dtype)
    return None


def is_on_cpu() -> bool:
    """Whether the package itself asks for the CPU: gradients of MPSGraph's cell states."""
    return not HAS_CUDA and _tf_private.device_type() == "CPU"


def on_device(op: str, function: Callable[..., Any], types: set[tf.DType]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        refused = not HAS_CUDA and _placement.metal_lacks(op.removeprefix(NAMESPACE), kwargs)
        if refused or is_on_cpu() or float_type((args, kwargs)) not in types:
            return function(*args, **kwargs)
        with tf.device(DEVICE):
            results = function(*args, **kwargs)
        for result in tf.nest.flatten(results):
            assert result.device.endswith(DEVICE), f"{op} ran on {result.device}"
        calls[op] += 1
        return results

    return call


@functools.cache
def load(original: Callable[[], Any] = _library.load) -> Any:
    """The library's functions, each on the device where it has a kernel."""
    module = original()
    functions = dict(vars(module))
    for op, types in gpu_types().items():
        # The name that the generated module has the function by.
        name = functions[op.replace(">", "_")].__name__
        functions[name] = on_device(op, functions[name], types)
    return SimpleNamespace(**functions)


_library.load = load


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    plugin = Path(os.environ["TF_LSTM_OPS_TEST_PLUGIN"]).stem
    reasons = [NOT_OURS, NO_ADDRESSES if plugin == "apple" else {}]
    reasons.append(WITH_CUDA if HAS_CUDA else WITH_METAL)
    patterns = [p for some in reasons for several in some.values() for p in several]
    excluded = [i for i in items if any(fnmatch(i.nodeid, pattern) for pattern in patterns)]
    config.hook.pytest_deselected(items=excluded)
    items[:] = [item for item in items if item not in excluded]


def pytest_sessionfinish() -> None:
    if report := os.environ.get("TF_LSTM_OPS_TEST_REPORT"):
        Path(report).write_text(json.dumps(calls))
