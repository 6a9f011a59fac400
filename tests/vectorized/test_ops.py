"""tf.vectorized_map of every op, without TensorFlow's own fallback, against a loop in Python.

The arguments that differ between the iterations are the sequences and states (one call of the op),
the weights (a call for each iteration), or all. Also the gradients, computed within the map.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops import dialects, op_definitions, raw_ops

N, T, B, I, H = 3, 4, 2, 3, 5  # noqa: E741
# Sums of some 40 products of about 1 in float64, in another order or grouping.
TOLERANCE = {"rtol": 0, "atol": 1e-13}

BLOCK = {
    **{"cs_prev": (B, H), "h_prev": (B, H), "w": (I + H, 4 * H), "b": (4 * H,)},
    **dict.fromkeys(["wci", "wcf", "wco"], (H,)),
}
CUDNN = {
    "input": (T, B, I),
    "input_h": (2, B, H),
    "input_c": (2, B, H),
    "params": (4 * H * (I + H + 2) + 4 * H * (2 * H + 2),),
}
KERAS = {
    **{"x": (B, T, I), "kernel": (I, 4 * H), "recurrent_kernel": (H, 4 * H), "bias": (4 * H,)},
    **{"initial_h": (B, H), "initial_c": (B, H), "peephole": (3, H)},
    **{"input_dropout": (4, B, I), "recurrent_dropout": (4, B, H)},
}
GRU = {
    **{"x": (B, T, I), "kernel": (I, 3 * H), "recurrent_kernel": (H, 3 * H), "bias": (2, 3 * H)},
    "initial_h": (B, H),
}
SIMPLE_RNN = {
    **{"x": (B, T, I), "kernel": (I, H), "recurrent_kernel": (H, H), "bias": (H,)},
    "initial_h": (B, H),
}
MPSGRAPH = {
    **{"source": (T, B, I), "recurrent_weight": (4 * H, H), "input_weight": (4 * H, I)},
    **{"bias": (4 * H,), "init_state": (B, H), "init_cell": (B, H), "mask": (B, H)},
    "peephole": (4 * H,),
}
LENGTHS = tf.constant([4, 2])
NONE = tf.zeros([0], tf.float64)


def keras_op(op: str, absent: tuple[str, ...]) -> Callable[..., Any]:
    """The op behind a layer; the mask has a gap."""
    mask = tf.constant([[True, False, True, True], [True, True, True, False]])
    fixed = {"mask": mask, "go_backwards": True, "zero_output_for_mask": False, "training": True}

    def call(**values: Any) -> Any:
        given = {**fixed, **dict.fromkeys(absent, NONE), **values, "return_sequences": True}
        output, *states, _ = op_definitions.function(op)(**given)
        output.set_shape([B, T, H])  # as the layers do; the op itself does not infer it
        # Without the reserve, whose layout is the kernel's own.
        return output, *states

    return call


def lstm(**values: Any) -> Any:
    return keras_op("KerasLSTM", ("projection",))(**values, cell_clip=0.0)


def mpsgraph(**values: Any) -> Any:
    return raw_ops.MPSGraphLSTM(**values, produce_cell=True, training=True)


def without_reserve(op: Any, **options: Any) -> Callable[..., Any]:
    return lambda **values: tuple(op(**values, **options))[:3]


# By name: the op, the shapes of its arguments, those that are weights.
OPS: dict[str, tuple[Callable[..., Any], dict[str, Any], tuple[str, ...]]] = {
    "LSTMBlockCell": (
        lambda **v: raw_ops.LSTMBlockCell(**v, use_peephole=True),
        {"x": (B, I), **BLOCK},
        ("w", "wci", "b"),
    ),
    "BlockLSTM": (
        lambda **v: raw_ops.BlockLSTM(seq_len_max=np.int64(3), **v, use_peephole=True),
        {"x": (T, B, I), **BLOCK},
        ("w", "wco"),
    ),
    "BlockLSTMV2": (
        lambda **v: raw_ops.BlockLSTMV2(seq_len_max=np.int64(T), **v),
        {"x": (T, B, I), **BLOCK},
        ("w", "b"),
    ),
    "CudnnRNN": (without_reserve(raw_ops.CudnnRNN), CUDNN, ("params",)),
    "CudnnRNNV2": (without_reserve(raw_ops.CudnnRNNV2), CUDNN, ("params",)),
    "CudnnRNNV3": (
        without_reserve(raw_ops.CudnnRNNV3, sequence_lengths=LENGTHS),
        CUDNN,
        ("params",),
    ),
    "KerasLSTM": (lstm, KERAS, ("kernel", "peephole")),
    "KerasGRU": (
        keras_op("KerasGRU", ("input_dropout", "recurrent_dropout")),
        GRU,
        ("kernel", "bias"),
    ),
    "KerasSimpleRNN": (
        keras_op("KerasSimpleRNN", ("input_dropout", "recurrent_dropout")),
        SIMPLE_RNN,
        ("kernel", "bias"),
    ),
    "MPSGraphLSTM": (mpsgraph, MPSGRAPH, ("recurrent_weight", "bias")),
}


def arguments(shapes: dict[str, Any], stacked: set[str], rng: Any) -> tuple[dict, dict]:
    """Random tensors: those of all iterations, and those that are the same for each."""
    tensors = {
        name: tf.constant(rng.normal(size=(*((N,) if name in stacked else ()), *shape)))
        for name, shape in shapes.items()
    }
    return (
        {name: t for name, t in tensors.items() if name in stacked},
        {name: t for name, t in tensors.items() if name not in stacked},
    )


def assert_as_in_a_loop(function: Callable[[dict], Any], stacked: dict[str, Any]) -> None:
    got = tf.vectorized_map(function, stacked, fallback_to_while_loop=False)
    each = [function({name: t[n] for name, t in stacked.items()}) for n in range(N)]
    for k, (a, *b) in enumerate(
        zip(tf.nest.flatten(got), *map(tf.nest.flatten, each), strict=True)
    ):
        np.testing.assert_allclose(a, tf.stack(b), **TOLERANCE, err_msg=str(k))


def rows_of(shapes: dict[str, Any], weights: tuple[str, ...]) -> set[str]:
    """The arguments with an axis of rows."""
    return {name for name in shapes if B in shapes[name][:2]} - set(weights)


@pytest.fixture(params=["rows", "weights", "all", "one"])
def choose(request: pytest.FixtureRequest) -> Callable[..., set[str]]:
    def chosen(shapes: dict[str, Any], weights: tuple[str, ...]) -> set[str]:
        rows = rows_of(shapes, weights)
        return {
            "rows": rows,
            "weights": set(weights),
            "all": set(shapes),
            "one": {min(rows)},
        }[request.param]

    return chosen


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", OPS)
def test_op(name, choose, rng):
    op, shapes, weights = OPS[name]
    stacked, same = arguments(shapes, choose(shapes, weights), rng)
    assert_as_in_a_loop(lambda values: op(**values, **same), stacked)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", OPS)
def test_gradient(name, choose, rng):
    """All gradients, those of the weights for each iteration."""
    op, shapes, weights = OPS[name]
    stacked, same = arguments(shapes, choose(shapes, weights), rng)

    def gradients(values: dict[str, Any]) -> Any:
        given = {**values, **same}
        sources = [t for n, t in given.items() if "dropout" not in n and n != "mask"]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            results = tf.nest.flatten(op(**given))
            loss = sum(tf.reduce_sum(tf.sin(r)) for r in results)
        return tape.gradient(loss, sources, unconnected_gradients="zero")

    assert_as_in_a_loop(gradients, stacked)


def graph_of(function: Callable[..., Any], *inputs: Any) -> list[str]:
    """The types of the ops that run, after TensorFlow has left out what is not used."""
    concrete = tf.function(function).get_concrete_function(*inputs)
    nodes, seen = [], set()
    pending = [t.op for t in concrete.graph.outputs]
    while pending:
        op = pending.pop()
        if op.name not in seen:
            seen.add(op.name)
            nodes.append(op.type)
            pending += [t.op for t in op.inputs]
    return nodes


@pytest.mark.parametrize("name", ["LSTMBlockCell", "BlockLSTM", "KerasLSTM", "KerasGRU"])
def test_rows_are_one_call(name, rng):
    op, shapes, weights = OPS[name]
    stacked, same = arguments(shapes, rows_of(shapes, weights), rng)

    def mapped(values: dict[str, Any]) -> Any:
        results = tf.vectorized_map(lambda v: op(**v, **same), values, fallback_to_while_loop=False)
        return tf.nest.flatten(results)

    types = graph_of(mapped, stacked)
    assert types.count(f"TfLstmOps>{name}") == 1
    assert not any("While" in t for t in types)


def test_all_ops_have_a_converter():
    """All that the library registers, except those that are listed in no dialect."""
    converters = {op for d in dialects.DIALECTS.values() for op in d.converters}
    with_gradient = {op for d in dialects.DIALECTS.values() for op in d.gradients}
    assert {op for op in with_gradient if op.startswith("TfLstmOps>")} <= converters
    assert {f"TfLstmOps>{name}" for name in dialects.COMPOSITES} <= converters


def test_stock_names(rng):
    """TensorFlow has no converter for the CudnnRNN ops."""
    stacked, same = arguments(CUDNN, {"input"}, rng)
    for training in False, True:
        op = without_reserve(tf.raw_ops.CudnnRNNV3, sequence_lengths=LENGTHS, is_training=training)
        assert_as_in_a_loop(lambda values, op=op: op(**values, **same), stacked)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("make", [tf_lstm_ops.keras.LSTM, tf_lstm_ops.keras.GRU])
def test_layer(make, masked, rng):
    layer = make(H, dtype="float64", return_sequences=True)
    x = tf.constant(rng.normal(size=(N, B, T, I)))
    mask = tf.constant(rng.random((N, B, T)) < 0.6) if masked else tf.ones([N, B, T], tf.bool)
    layer.build((B, T, I))
    assert_as_in_a_loop(lambda v: layer(v["x"], mask=v["mask"]), {"x": x, "mask": mask})
