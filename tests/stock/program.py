"""Runs the stock ops before and after `override`, then with bad inputs. Not a test itself.

`python program.py FOLDER` writes arrays to FOLDER/results.npz, and then for each bad input a line
of JSON: [name, error type or null, message]. If the process dies, the guilty one's line is missing.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

OPTIONS = {"forget_bias": 0.3, "cell_clip": 0.4, "use_peephole": True}
FORWARD = ["LSTMBlockCell", "BlockLSTM"]
OPS = [*FORWARD, *(op + "Grad" for op in FORWARD)]
DTYPES = ["float32", "float16"]
SIZES = {"time": 6, "batch": 4, "inputs": 9, "units": 33}
Results = dict[str, np.ndarray]


def arguments(op: str, dtype: str = "float32", steps: int = SIZES["time"]) -> dict[str, Any]:
    from block_cell import contract

    values = contract.arguments(op, contract.right_shapes(op, **SIZES), steps, dtype)
    return values | ({"use_peephole": True} if op.endswith("Grad") else OPTIONS)


def flat(values: Any) -> np.ndarray:
    import tensorflow as tf

    return np.concatenate([np.ravel(v) for v in tf.nest.flatten(values)])


def run(op: str, given: dict[str, Any], module: Any) -> Any:
    return getattr(module, op)(**given)


def gradient(op: str, module: Any) -> Any:
    """By all float inputs, from cs and h, the outputs whose gradients TensorFlow's own counts."""
    import tensorflow as tf

    given = arguments(op)
    inputs = [v for v in given.values() if tf.is_tensor(v) and v.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = run(op, given, module)
        loss = tf.reduce_sum(outputs.cs**2) + tf.reduce_sum(outputs.h**3)
    return tape.gradient(loss, inputs)


CallPair = tuple[str, Callable[[], Any], Callable[[], Any]]


def call_pairs(folder: Path) -> Iterator[CallPair]:
    """Name, a call of stock ops, and the call of ours that must give the same."""
    import tensorflow as tf

    from tf_lstm_ops import raw_ops

    for op in OPS:
        for dtype in DTYPES:
            call = partial(run, op, arguments(op, dtype))
            yield f"eager {op} {dtype}", partial(call, tf.raw_ops), partial(call, raw_ops)
    for op in FORWARD:
        call = partial(gradient, op)
        yield f"gradient {op}", partial(call, tf.raw_ops), partial(call, raw_ops)

    given = arguments("BlockLSTM")
    x = given.pop("x")

    @tf.function(input_signature=[tf.TensorSpec(x.shape)])
    def stock(x: Any) -> Any:
        return tf.raw_ops.BlockLSTM(x=x, **given).h

    def ours() -> Any:
        return raw_ops.BlockLSTM(x=x, **given).h

    nested = tf.function(lambda x: tf.map_fn(stock, x[None])[0])
    module = tf.Module()
    module.sequence = stock
    tf.saved_model.save(module, folder / "model")
    loaded = tf.saved_model.load(folder / "model").sequence
    yield "function", partial(stock, x), ours
    yield "nested function", partial(nested, x), ours
    yield "SavedModel", partial(loaded, x), ours


def graph_session() -> tuple[Callable[[], Any], Callable[[], Any]]:
    """A GraphDef's stock op, run in a session that lives on, and in a new one each time."""
    import tensorflow as tf

    given = {k: v.numpy() if tf.is_tensor(v) else v for k, v in arguments("BlockLSTM").items()}
    with tf.Graph().as_default() as source:
        tf.raw_ops.BlockLSTM(**given, name="lstm")
    with tf.Graph().as_default() as graph:
        (h,) = tf.import_graph_def(source.as_graph_def(), return_elements=["lstm:6"])
    session = tf.compat.v1.Session(graph=graph)
    return lambda: session.run(h), lambda: tf.compat.v1.Session(graph=graph).run(h)


def iterator() -> Iterator[Any]:
    """The stock op in a tf.data pipeline."""
    import tensorflow as tf

    given = arguments("BlockLSTM")
    x = given.pop("x")
    dataset = tf.data.Dataset.from_tensors(x).repeat()
    return iter(dataset.map(lambda x: tf.raw_ops.BlockLSTM(x=x, **given).h))


def served() -> list[str]:
    """Op, device and types of the kernels above TensorFlow's own."""
    import tensorflow as tf
    from tensorflow.python.framework import kernels

    return sorted(
        f"{op} {kernel.device_type} {tf.as_dtype(dtype).name}"
        for op in [*OPS, "BlockLSTMV2", "BlockLSTMGradV2"]
        for kernel in kernels.get_registered_kernels_for_op(op).kernel
        if kernel.priority > 0
        for constraint in kernel.constraint
        for dtype in constraint.allowed_values.list.type
    )


def override() -> Results:
    """Twice."""
    import tensorflow as tf

    from tf_lstm_ops import stock

    draw = tf.function(lambda: tf.random.uniform([9], seed=1))
    draws = [draw()]
    for _ in range(2):
        stock.override()
        draws.append(draw())
    return {"draws": np.array(draws), "served": np.array(served())}


def take_over(folder: Path) -> Results:
    """The results of every call before and after, and those of our own ops."""
    import tensorflow as tf

    from tf_lstm_ops import raw_ops

    todo = list(call_pairs(folder))
    old_session, new_session = graph_session()
    old_iterator = iterator()
    results = {}

    def record(when: str) -> None:
        results.update({f"{name} {when}": flat(stock()) for name, stock, _ in todo})
        results[f"old session {when}"] = flat(old_session())
        results[f"old iterator {when}"] = flat(next(old_iterator))

    record("before")
    results |= override()
    record("after")
    results |= {f"{name} ours": flat(ours()) for name, _, ours in todo}
    results |= {
        "new session after": flat(new_session()),
        "new session ours": results["function ours"],
    }
    for op in "BlockLSTM", "BlockLSTMGrad":
        given = arguments(op, steps=2)
        results[f"short {op} after"] = flat(run(op, given, tf.raw_ops))
        results[f"short {op} ours"] = flat(run(op, given, raw_ops))
    return results


def bad_calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Those known to end the process with stock's kernels; and types that no kernel has."""
    import tensorflow as tf

    from block_cell import contract, crashes

    for name, case in crashes.CASES.items():
        if case.op in OPS:
            shapes = contract.right_shapes(case.op, **crashes.SIZES)
            shapes |= {argument: tuple(shape) for argument, shape in case.shapes.items()}
            given = contract.arguments(case.op, shapes, case.length) | {"use_peephole": True}
            yield name, partial(run, case.op, given, tf.raw_ops)
    for op in OPS:
        for dtype in "float64", "bfloat16":
            yield f"{op} {dtype}", partial(run, op, arguments(op, dtype), tf.raw_ops)


def report_bad_calls() -> None:
    for name, call in bad_calls():
        error, message = None, ""
        try:
            call()
        except Exception as e:
            error, message = type(e).__name__, str(e)
        print(json.dumps([name, error, message]), flush=True)


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # the tests folder instead of this one
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    np.savez(Path(sys.argv[1]) / "results.npz", **take_over(Path(sys.argv[1])))
    report_bad_calls()
