"""Graphs and SavedModels that were tampered with: attributes, inputs, constants of the ops' nodes.

Such a graph is refused, or it runs. Its results are not compared.
"""

import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tf_lstm_ops import op_definitions, raw_ops

from .call import Call
from .draw import HUGE, choose, happens

NUMBERS = [-(2**63), -(2**31), -1, 0, 1, 2, 3, 7, *HUGE]
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 3e38, float("inf"), float("-inf"), float("nan")]
STRINGS = ["", "lstm", "gru", "ICFO", "tanh", "auto_select", "bidirectional", "\0", "x" * 5000]
TYPES = [tf.half, tf.float32, tf.float64, tf.bfloat16, tf.int32, tf.string, tf.bool, tf.resource]


def _block(x: tf.Tensor, w: tf.Tensor, v: tf.Tensor) -> Any:
    """BlockLSTM, 2 units, of x [T, B, 2], w [4, 8] and v [2], and its gradient."""
    state = tf.zeros([tf.shape(x)[1], 2])
    rest = {"cs_prev": state, "h_prev": state, "w": w, "wci": v, "wcf": v, "wco": v}
    steps = tf.constant(3, tf.int64)
    rest |= {"b": tf.concat([v] * 4, 0)}
    found = raw_ops.BlockLSTM(x=x, seq_len_max=steps, **rest)
    return tf.gradients([found.h, found.cs], [x, w])


def _cudnn(x: tf.Tensor, w: tf.Tensor, v: tf.Tensor) -> Any:
    """Two layers of CudnnRNNV3 with dropout, its gradient, and the mask that a second derivative
    draws again. The second derivative itself is loops of plain ops, which take too long here."""
    state = tf.zeros([2, tf.shape(x)[1], 2])
    params = tf.tile(tf.reshape(w, [-1]), [3])[:96]
    found = raw_ops.CudnnRNNV3(
        input=x,
        input_h=state,
        input_c=state,
        params=params,
        sequence_lengths=tf.fill([tf.shape(x)[1]], tf.shape(x)[0]),
        dropout=0.5,
    )
    mask = op_definitions.function("CudnnRNNDropoutMask")(reserve_space=found.reserve_space)
    return [*tf.gradients([found.output], [x, params]), mask]


def _keras(x: tf.Tensor, w: tf.Tensor, v: tf.Tensor) -> Any:
    """KerasLSTM and its gradient."""
    state = tf.zeros([tf.shape(x)[0], 2])
    absent = tf.zeros([0])
    found = op_definitions.function("KerasLSTM")(
        x=x,
        mask=tf.zeros([0], tf.bool),
        initial_h=state,
        initial_c=state,
        kernel=w[:2],
        recurrent_kernel=w[2:],
        bias=tf.concat([v] * 4, 0),
        peephole=absent,
        projection=absent,
        input_dropout=absent,
        recurrent_dropout=absent,
    )
    return tf.gradients([found.output], [x, w])


def _mpsgraph(x: tf.Tensor, w: tf.Tensor, v: tf.Tensor) -> Any:
    """MPSGraphLSTM with all outputs, and its gradients."""
    weight = tf.transpose(w[:2])
    found = raw_ops.MPSGraphLSTM(
        source=x, recurrent_weight=weight, input_weight=weight, produce_cell=True, training=True
    )
    return tf.gradients([found.output], [x, w])


BODIES: dict[str, Callable[..., Any]] = {
    "BlockLSTM": _block,
    "CudnnRNNV3": _cudnn,
    "KerasLSTM": _keras,
    "MPSGraphLSTM": _mpsgraph,
}
ARRAYS = (
    np.full((3, 2, 2), 0.25, np.float32),
    np.full((4, 8), 0.125, np.float32),
    np.full((2,), 0.5, np.float32),
)


def draw(rng: np.random.Generator) -> Call:
    name = choose(rng, sorted(BODIES))
    if happens(rng, 0.2):
        data = _tamper(rng, saved_graph_of(name))
        return Call(
            f"SavedModel {name}", functools.partial(run_saved_model, name, data), [], None, how=()
        )
    data = _tamper(rng, graph_of(name))
    return Call(f"GraphDef {name}", functools.partial(run_graph, data), [], None, how=())


@functools.cache
def _function(name: str) -> Any:
    shapes = [None, None, 2], [4, 8], [2]  # plain ops need the sizes of the cell
    specs = [tf.TensorSpec(shape, tf.float32) for shape in shapes]
    return tf.function(BODIES[name], input_signature=specs)


@functools.cache
def graph_of(name: str) -> bytes:
    with tf.Graph().as_default() as graph:
        arguments = [tf.constant(a, name=f"argument{k}") for k, a in enumerate(ARRAYS)]
        results = BODIES[name](*arguments)
        tf.group(*results, name="result")
    return graph.as_graph_def().SerializeToString()


def _tamper(rng: np.random.Generator, data: bytes) -> bytes:
    """One to three changes of the nodes of our ops, or of the constants that they read."""
    graph = tf.compat.v1.GraphDef.FromString(data)
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    ours = [node for node in nodes if node.op.startswith("TfLstmOps>")]
    # Only constants that our ops read: shape functions of TensorFlow's own ops abort the process
    # for some constants, such as those of Slice.
    read = {name.split(":")[0] for node in ours for name in node.input}
    constants = [node for node in nodes if node.op == "Const" and node.name in read]
    for _ in range(int(rng.integers(1, 4))):
        if constants and happens(rng, 0.25):
            _change_constant(rng, choose(rng, constants))
        else:
            _change_node(rng, choose(rng, ours), ours)
    return graph.SerializeToString()


def _change_node(rng: np.random.Generator, node: Any, others: list[Any]) -> None:
    kind = choose(rng, ["attribute", "attribute", "attribute", "swap", "drop", "op", "remove"])
    names = sorted(node.attr)
    if kind == "attribute" and names:
        _change_attribute(rng, node.attr[choose(rng, names)])
    elif kind == "remove" and names:
        del node.attr[choose(rng, names)]
    elif kind == "swap" and len(node.input) > 1:
        i, k = (int(n) for n in rng.integers(0, len(node.input), 2))
        node.input[i] = node.input[k]
    elif kind == "drop" and node.input:
        del node.input[int(rng.integers(len(node.input)))]
    elif kind == "op":
        node.op = choose(rng, others).op


def _change_attribute(rng: np.random.Generator, value: Any) -> None:
    field = value.WhichOneof("value")
    if happens(rng, 0.1):
        field = choose(rng, ["i", "f", "s", "b", "type"])
    if field == "i":
        value.i = choose(rng, NUMBERS)
    elif field == "f":
        value.f = choose(rng, REALS)
    elif field == "s":
        value.s = choose(rng, STRINGS).encode()
    elif field == "b":
        value.b = happens(rng, 0.5)
    elif field == "type":
        value.type = choose(rng, TYPES).as_datatype_enum


def _change_constant(rng: np.random.Generator, node: Any) -> None:
    """Another value of the same type, often of another shape."""
    old = tf.make_ndarray(node.attr["value"].tensor)
    shape = old.shape if happens(rng, 0.4) else tuple(rng.integers(0, 4, rng.integers(0, 5)))
    if old.dtype.kind in "iu":
        high = np.iinfo(old.dtype).max
        # A size of many gigabytes would be TensorFlow's own to refuse.
        found = np.full(shape, choose(rng, [-high, -1, 0, 1, 2, 3, 7]), old.dtype)
    elif old.dtype.kind == "f":
        found = np.full(shape, choose(rng, REALS)).astype(old.dtype)
    else:
        found = np.resize(old, shape)
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(found))
    node.attr["dtype"].type = tf.as_dtype(found.dtype).as_datatype_enum


# What TensorFlow raises for graphs that it cannot read.
REFUSED = (tf.errors.OpError, ValueError, TypeError, KeyError, AttributeError, IndexError)


def run_graph(data: bytes) -> list[Any]:
    """Imports and runs a graph.

    Raises:
      ValueError: the graph is refused, in whatever way.
    """
    try:
        with tf.Graph().as_default() as graph:
            tf.graph_util.import_graph_def(tf.compat.v1.GraphDef.FromString(data), name="")
            with tf.compat.v1.Session(graph=graph) as session:
                session.run("result")
    except REFUSED as error:
        raise ValueError(str(error)) from error
    return []


# --- SavedModels -----------------------------------------------------------------------------


@functools.cache
def _saved(name: str) -> tempfile.TemporaryDirectory[str]:
    """A folder with a SavedModel, which lives as long as the process."""
    folder = tempfile.TemporaryDirectory()
    module = tf.Module()
    module.run = _function(name)
    tf.saved_model.save(module, folder.name, signatures=module.run)
    return folder


@functools.cache
def saved_graph_of(name: str) -> bytes:
    return _saved_model(name).meta_graphs[0].graph_def.SerializeToString()


def _saved_model(name: str) -> Any:
    from tensorflow.core.protobuf import saved_model_pb2

    data = Path(_saved(name).name, "saved_model.pb").read_bytes()
    return saved_model_pb2.SavedModel.FromString(data)


def run_saved_model(name: str, data: bytes) -> list[Any]:
    """Loads and runs a SavedModel with this graph.

    Raises:
      ValueError: the model is refused, in whatever way.
    """
    model = _saved_model(name)
    model.meta_graphs[0].graph_def.ParseFromString(data)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(_saved(name).name, folder, dirs_exist_ok=True)
        Path(folder, "saved_model.pb").write_bytes(model.SerializeToString())
        try:
            loaded = tf.saved_model.load(folder)
            given = dict(zip("xwv", map(tf.constant, ARRAYS), strict=True))
            loaded.signatures["serving_default"](**given)
        except REFUSED as error:
            raise ValueError(str(error)) from error
    return []
