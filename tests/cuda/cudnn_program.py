"""One check of the CudnnRNN family on the CUDA kernels, in a process of its own. Not a test itself.

`python cudnn_program.py CHECK` in build.environment prints a line of JSON for test_cudnn.py.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import load_library

if __name__ == "__main__":
    load_library.load_pluggable_device_library(os.environ["TF_LSTM_OPS_TEST_PLUGIN"])
    tf.config.set_soft_device_placement(False)

from cudnn_rnn.cases import Case, Values, arguments, call

# A model for which cuDNN has persistent algorithms.
PLAIN = Case(time=4, batch=3, units=4)
STACKED = Case(layers=3, directions=2, time=4, batch=3)


def on_device(op: str, case: Case, values: Values, **options: Any) -> dict[str, tf.Tensor]:
    with tf.device("GPU:0"):
        return call(op, case, values, **options)._asdict()


def both_passes(case: Case, dtype: str, lengths: list[int] | None, **options: Any) -> Values:
    """The results and gradients of a training call on the device."""
    given = arguments("CudnnRNNV3", case, dtype, lengths)
    found = on_device("CudnnRNNV3", case, given, **options)
    upstream = {f"{k}_backprop": found[k] for k in ("output", "output_h", "output_c")}
    return found | on_device("CudnnRNNBackpropV3", case, {**given, **found, **upstream}, **options)


def digest(values: Values) -> dict[str, str]:
    shown = {k: v for k, v in values.items() if k not in ("reserve_space", "host_reserved")}
    return {k: v.numpy().astype("f8").tobytes().hex() for k, v in shown.items()}


def bits() -> Any:
    """Results and gradients of several models, to be compared with those of other runs."""
    found = []
    for case, lengths in ((PLAIN, None), (STACKED, [4, 0, 2]), (Case(proj=2, layers=2), None)):
        for dropout in (0.0, 0.5):
            found.append(digest(both_passes(case, "float32", lengths, dropout=dropout, seed=3)))
    return found


def gradients_again() -> Any:
    """Whether the same reserve_space gives the same gradients twice, and stays as it is."""
    given = arguments("CudnnRNNBackpropV3", STACKED, "float32", [4, 0, 2])
    forward = {k: given[k] for k in STACKED.shapes("CudnnRNNV3")}
    given |= on_device("CudnnRNNV3", STACKED, forward)
    before = given["reserve_space"].numpy().tobytes()
    first, second = (on_device("CudnnRNNBackpropV3", STACKED, given) for _ in range(2))
    return [digest(first) == digest(second), given["reserve_space"].numpy().tobytes() == before]


def many_lengths() -> Any:
    """Whether more rows than the parameters of a kernel hold have the outputs of few."""
    count = 1500
    case = Case(time=3, batch=count, units=4)
    lengths = [n % 4 for n in range(count)]
    given = arguments("CudnnRNNV3", case, "float32", lengths)
    many = on_device("CudnnRNNV3", case, given)["output"].numpy()
    whole = []
    for first in range(0, count, 500):
        rows = slice(first, first + 500)
        some = given | {
            "input": given["input"][:, rows],
            "input_h": given["input_h"][:, rows],
            "input_c": given["input_c"][:, rows],
            "sequence_lengths": given["sequence_lengths"][rows],
        }
        whole.append(on_device("CudnnRNNV3", case, some)["output"].numpy())
    return bool((many == np.concatenate(whole, 1)).all()) and bool(np.abs(many).max() > 0)


def passes() -> Any:
    """Calls whose passes are read from the log of the fake cuDNN."""
    with_lengths = Case(time=4, batch=3, units=4, time_major=False)
    for case, lengths in ((PLAIN, None), (PLAIN, [4, 1, 2]), (with_lengths, None)):
        on_device("CudnnRNNV3", case, arguments("CudnnRNNV3", case, "float32", lengths))
    values = arguments("CudnnRNNV3", PLAIN, "float32", [4, 0, 2])
    on_device("CudnnRNNV3", PLAIN, values, is_training=False)
    values = arguments("CudnnRNNV3", PLAIN, "float32", [0, 0, 0])
    on_device("CudnnRNNV3", PLAIN, values)
    return None


def algorithms() -> Any:
    """host_reserved of two training calls, and the results and gradients of the second one."""
    first = both_passes(PLAIN, "half", None)
    again = both_passes(PLAIN, "half", None)
    return [int(r["host_reserved"]) for r in (first, again)], digest(again)


def chosen(case: Case, lengths: list[int] | None, **options: Any) -> int:
    """The algorithm of a training call, from host_reserved."""
    return int(np.ravel(both_passes(case, "float32", lengths, **options)["host_reserved"])[0])


def choices() -> Any:
    """The algorithms that are chosen for lengths, for a projection, and for dropout."""
    return [
        chosen(PLAIN, [4, 1, 2]),
        chosen(Case(proj=2, layers=2), None),
        chosen(STACKED, None, dropout=0.5, seed=1),
    ]


def empty_rows() -> Any:
    """The algorithm that is chosen for a projection and a row of length zero."""
    return chosen(Case(proj=2, batch=3, time=4), [4, 0, 2])


def precision() -> Any:
    """A call that may use TF32 and one that may not."""
    values = arguments("CudnnRNNV3", PLAIN)
    for enabled in (True, False):
        tf.config.experimental.enable_tensor_float_32_execution(enabled)
        on_device("CudnnRNNV3", PLAIN, values)
    return None


def deterministic() -> Any:
    tf.config.experimental.enable_op_determinism()
    tf.random.set_seed(0)
    return algorithms()


def wrong_algorithm() -> Any:
    """The errors of a gradient op: no such algorithm, no number at all, another reserve."""
    given = arguments("CudnnRNNBackpropV3", PLAIN)
    forward = {k: given[k] for k in PLAIN.shapes("CudnnRNNV3")}
    given |= on_device("CudnnRNNV3", PLAIN, forward)
    messages = []
    for changed in (
        {"host_reserved": tf.constant(7, tf.int8)},
        {"host_reserved": tf.zeros([0], tf.int8)},
        {"reserve_space": given["reserve_space"][:-1]},
    ):
        try:
            on_device("CudnnRNNBackpropV3", PLAIN, {**given, **changed})
            messages.append("")
        except tf.errors.InvalidArgumentError as error:
            messages.append(error.message)
    return messages


def version_1() -> Any:
    """Results and gradients of two calls of CudnnRNN, which has no host_reserved; and the error of
    a reserve with one element less."""
    given = arguments("CudnnRNN", PLAIN, "half")
    found = []
    for _ in range(2):
        results = on_device("CudnnRNN", PLAIN, given)
        upstream = {f"{k}_backprop": results[k] for k in ("output", "output_h", "output_c")}
        given_back = {**given, **results, **upstream}
        found.append(digest(results | on_device("CudnnRNNBackprop", PLAIN, given_back)))
    given_back["reserve_space"] = given_back["reserve_space"][:-1]
    try:
        on_device("CudnnRNNBackprop", PLAIN, given_back)
    except tf.errors.InvalidArgumentError as error:
        return found, error.message
    return found, ""


def conversions() -> Any:
    """Whether params come back from their parts, on the device."""
    from tf_lstm_ops import raw_ops

    for case in (STACKED, Case(proj=2, layers=2)):
        sizes = {"num_layers": case.layers, "num_units": case.units, "input_size": case.inputs}
        params = arguments("CudnnRNNV3", case)["params"]
        options = case.attributes("CudnnRNNParamsToCanonicalV2")
        counts = {
            "num_params_weights": len(case.matrices()),
            "num_params_biases": len(case.biases()),
        }
        with tf.device("GPU:0"):
            parts = raw_ops.CudnnRNNParamsToCanonicalV2(**sizes, params=params, **counts, **options)
            again = raw_ops.CudnnRNNCanonicalToParamsV2(
                **sizes, weights=parts.weights, biases=parts.biases, **options
            )
            size = raw_ops.CudnnRNNParamsSize(**sizes, T=tf.float32, S=tf.int32, **options)
        assert again.device.endswith("GPU:0") and parts.weights[0].device.endswith("GPU:0")
        assert size.numpy() == [case.params_size()]
        start = 0
        for part in (*parts.weights, *parts.biases):
            part = np.ravel(part)
            np.testing.assert_array_equal(part, params[start : start + part.size])
            start += part.size
        np.testing.assert_array_equal(again, params)
    return True


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
