"""What graphs of TensorFlow 1 add to the forget gate."""

import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops.checkpoints import candidates
from tf_lstm_ops.weights import LSTMWeights

from . import cells

v1 = tf.compat.v1
NOT_FOUND = "was not found in the graph"


def cell(arrays, forget_bias, variables):
    """The operations of BasicLSTMCell of TensorFlow 1.15, in a loop of one step."""
    x, c, h = (tf.zeros((1, n)) for n in (cells.INPUTS, cells.UNITS, cells.UNITS))
    with v1.variable_scope("rnn/basic_lstm_cell", use_resource=variables == "resource"):
        if variables:
            kernel, bias = (v1.get_variable(k, initializer=arrays[k]) for k in ("kernel", "bias"))
        else:
            kernel, bias = (tf.constant(arrays[k], name=k) for k in ("kernel", "bias"))

        def step(k, c, h):
            z = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), kernel), bias)
            i, j, f, o = tf.split(z, 4, 1)
            added = f if forget_bias is None else f + forget_bias
            c = c * tf.sigmoid(added) + tf.sigmoid(i) * tf.tanh(j)
            return k + 1, c, tf.tanh(c) * tf.sigmoid(o)

        return v1.while_loop(lambda k, *_: k < 1, step, (tf.constant(0), c, h))


def graph_file(path, arrays, forget_bias, variables):
    """A frozen graph, or a checkpoint with its graph beside it."""
    with tf.Graph().as_default() as graph, v1.Session() as session:
        loop = cell(arrays, tf.constant(forget_bias) if forget_bias else forget_bias, variables)
        if variables:
            tf.gradients(loop[1], v1.trainable_variables())  # further uses of the kernel
            session.run(v1.global_variables_initializer())
            v1.train.Saver().save(session, str(path))
        else:
            path.write_bytes(graph.as_graph_def().SerializeToString())
    return path


@pytest.fixture
def old_control_flow():
    yield v1.disable_control_flow_v2()
    v1.enable_control_flow_v2()


@pytest.mark.usefixtures("old_control_flow")
@pytest.mark.parametrize("variables", ["", "reference", "resource"])
@pytest.mark.parametrize("forget_bias", [0.0, 0.25, None])
def test_the_constant_of_the_graph(forget_bias, variables, rng, tmp_path):
    arrays = {k: a.astype("f") for k, a in cells.joined(rng).items()}
    path = graph_file(tmp_path / "m.pb", arrays, forget_bias, variables)
    (found,) = candidates(path)
    assert found.forget_bias == (forget_bias or 0.0) and found.note == ""
    got = LSTMWeights.from_checkpoint(path).cells[0]
    f = np.split(got.bias + got.recurrent_bias, 4)[1]
    np.testing.assert_array_equal(f, np.split(arrays["bias"], 4)[2] + np.float32(found.forget_bias))


@pytest.mark.parametrize("op", ["LSTMBlockCell", "BlockLSTM"])
def test_the_attribute_of_a_fused_op(op, rng, tmp_path):
    graph = v1.GraphDef()
    tensors = {k: a.astype("f") for k, a in cells.joined(rng).items()}
    for name, array in tensors.items():
        node = graph.node.add(name=f"lstm_cell/{name}", op="Const")
        node.attr["dtype"].type = tf.float32.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array))
    node = graph.node.add(name="lstm_cell/lstm_cell", op=op, input=["x", "lstm_cell/kernel"])
    node.attr["forget_bias"].f = 0.5
    (tmp_path / "m.pb").write_bytes(graph.SerializeToString())
    assert candidates(tmp_path / "m.pb")[0].forget_bias == 0.5


def test_a_constant_that_is_not_found(rng, tmp_path):
    """The default of the program, and a note."""
    with tf.Graph().as_default() as graph:
        for name, array in cells.joined(rng).items():
            tf.constant(array, name=f"lstm_cell/{name}")
    (tmp_path / "m.pb").write_bytes(graph.as_graph_def().SerializeToString())
    (found,) = candidates(tmp_path / "m.pb")
    assert found.forget_bias == 1.0 and NOT_FOUND in found.note


def test_a_constant_of_no_dtype(rng, tmp_path):
    """It is not read, and the weights are there without it."""
    path = graph_file(
        tmp_path / "m.pb", {k: a.astype("f") for k, a in cells.joined(rng).items()}, 0.25, ""
    )
    graph = v1.GraphDef.FromString(path.read_bytes())
    for node in (*graph.node, *(n for each in graph.library.function for n in each.node_def)):
        if node.op == "Const" and not node.attr["value"].tensor.tensor_shape.dim:
            node.attr["value"].tensor.dtype = 120
    path.write_bytes(graph.SerializeToString())
    (found,) = candidates(path)
    assert NOT_FOUND in found.note
