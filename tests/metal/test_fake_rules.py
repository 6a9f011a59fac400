"""What the fake frameworks refuse, and when they run work. They detect mistakes that fail only on a
Mac, or only sometimes."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest

from metal.objc import DATA_TYPES, Graph, ObjectiveCError, Runtime, values

pytestmark = pytest.mark.metal

FLOAT32 = DATA_TYPES["float32"]
ADD = "additionWithPrimaryTensor:secondaryTensor:name:"
MATMUL = "matrixMultiplicationWithPrimaryTensor:secondaryTensor:name:"
TANH = "tanhWithTensor:name:"
PLACEHOLDER = "placeholderWithShape:dataType:name:"


def f32(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def f16(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float16)


def lstm_descriptor(graph: Graph):
    return graph.runtime("MPSGraphLSTMDescriptor")("descriptor")


# --- building --------------------------------------------------------------------------------


REFUSED = {
    "addition: Float32[2,3] and Float32[2] do not broadcast": (ADD, f32(2, 3), f32(2)),
    "addition: types differ: Float32[2] and Float16[2]": (ADD, f32(2), f16(2)),
    "addition: takes Float32 but got Float16[2]": (ADD, f16(2), f16(2)),
    "a tensor is nil": (TANH, None),
    "matrixMultiplication: Float32[2,3] times Float32[2,3]": (MATMUL, f32(2, 3), f32(2, 3)),
    "matrixMultiplication: takes rank 2 but got Float32[3]": (MATMUL, f32(2, 3), f32(3)),
    "select: shapes differ: Bool[2,1], Float32[2,3] and Float32[2,3]": (
        *("selectWithPredicateTensor:truePredicateTensor:falsePredicateTensor:name:",),
        *(f32(2, 1) > 0, f32(2, 3), f32(2, 3)),
    ),
    "slice: Float32[4], start 3, length 2 along axis 0": (
        *("sliceTensor:dimension:start:length:name:", f32(4), 0, 3, 2),
    ),
    "reductionSum: axis 2 of Float32[4,5]": ("reductionSumWithTensor:axis:name:", f32(4, 5), 2),
    "reshape: Float32[4,5] to [21]": ("reshapeTensor:withShape:name:", f32(4, 5), (21,)),
    "broadcast: Float32[2] to [1,1]": ("broadcastTensor:toShape:name:", f32(2), (1, 1)),
    "concat: Float32[2,3] and Float32[2,4] along axis 0": (
        *("concatTensors:dimension:name:", (f32(2, 3), f32(2, 4)), 0),
    ),
    "gather: takes Int32 but got Float32[1]": (
        *("gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions:name:",),
        *(f32(2, 3), f32(1), 0, 0),
    ),
    "a tensor of shape [0,3]: every size must be positive": (PLACEHOLDER, (0, 3), FLOAT32),
    "MPSDataType 268435520 is not emulated": (PLACEHOLDER, (3,), 0x10000040),
    "no method tangentWithTensor:name:": ("tangentWithTensor:name:", f32(2)),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused_while_building(graph, reason):
    with pytest.raises(ObjectiveCError) as raised:
        graph(*REFUSED[reason])
    assert str(raised.value).startswith(reason)


def test_tensors_of_another_graph(graph):
    with pytest.raises(ObjectiveCError, match=r"a tensor of another graph: Float32\[2\]"):
        graph(ADD, f32(2), Graph(graph.runtime).placeholder(f32(2)))


@pytest.mark.parametrize("property_name", ["Reverse", "Bidirectional"])
def test_directions_are_not_emulated(graph, property_name):
    with pytest.raises(ObjectiveCError, match=f"no method set{property_name}:"):
        lstm_descriptor(graph)(f"set{property_name}:", 1)


def test_training_needs_the_cell(graph):
    descriptor = lstm_descriptor(graph)
    descriptor("setTraining:", 1)
    name = "LSTMWithSourceTensor:recurrentWeight:inputWeight:bias:initState:initCell:mask:peephole:"
    arguments = [f32(2, 3, 4), f32(8, 2), f32(8, 4), *[None] * 5]
    with pytest.raises(ObjectiveCError, match="training without produceCell"):
        graph(f"{name}descriptor:name:", *arguments, descriptor)


# --- encoding --------------------------------------------------------------------------------


def encoded(graph: Graph, tensor, like: np.ndarray):
    """The buffer of a result and the command buffer."""
    buffer = graph.buffer(like)
    return buffer, graph.encode({tensor: graph.data(buffer, like)})


def test_refused_while_encoding(graph):
    x = np.ones((2, 3), np.float32)
    y = graph(TANH, x)
    buffer = graph.buffer(x)
    with pytest.raises(ObjectiveCError, match=r"results: data Float32\[3,2\] for a tensor"):
        graph.encode({y: graph.data(buffer, x.T)})
    with pytest.raises(ObjectiveCError, match="results: a buffer is fed, or written twice"):
        data = graph.data(buffer, x)
        graph.encode({y: data, graph(TANH, x): data})
    with pytest.raises(ObjectiveCError, match=r"in a buffer of 24 bytes"):
        graph.data(buffer, np.ones((2, 4), np.float32))
    with pytest.raises(ObjectiveCError, match="the buffer is nil"):
        graph.data(None, x)
    unfed = graph(PLACEHOLDER, (2, 3), FLOAT32)
    with pytest.raises(ObjectiveCError, match="nothing for a placeholder"):
        graph.encode({graph(ADD, y, unfed): graph.data(buffer, x)})


@pytest.mark.parametrize("level", [None, 1])
def test_refused_at_another_optimisation_level(graph, level):
    x = np.ones(3, np.float32)
    results = graph.results({graph(TANH, x): graph.data(graph.buffer(x), x)})
    commands = graph.runtime("MPSCommandBuffer")("commandBufferFromCommandQueue:", graph.queue)
    with pytest.raises(ObjectiveCError, match="the optimisation level is not 0"):
        graph.encode_to(commands, results, level)


def test_no_empty_buffers(runtime):
    assert runtime.device()("newBufferWithLength:options:", 0, 0) is None


def test_runs_when_it_is_waited_for(graph):
    """Not when it is encoded, nor when it is committed."""
    x = np.ones(3, np.float32)
    y = graph(TANH, x)
    buffer, commands = encoded(graph, y, x)
    for _ in range(2):
        assert np.isnan(values(buffer, x)).all()
        if commands.integer("status") == 0:
            commands("commit")
    commands("waitUntilCompleted")
    np.testing.assert_array_equal(values(buffer, x), np.tanh(x))


def test_runs_with_a_later_one_of_its_queue(graph):
    x = np.ones(3, np.float32)
    y = graph(TANH, x)
    first, commands = encoded(graph, y, x)
    commands("commit")
    _, later = encoded(graph, y, x)
    later("commit")
    later("waitUntilCompleted")
    np.testing.assert_array_equal(values(first, x), np.tanh(x))


def test_reads_what_is_there_when_it_runs(graph):
    x = np.ones(3, np.float32)
    buffer, fed = graph.buffer(x), graph.placeholder(x)
    graph.feeds("setObject:forKey:", graph.data(buffer, x), fed)
    result, commands = encoded(graph, graph(TANH, fed), x)
    ctypes.memset(buffer.integer("contents"), 0, x.nbytes)
    commands("commit")
    commands("waitUntilCompleted")
    np.testing.assert_array_equal(values(result, x), np.zeros(3))


def test_views_are_not_written(graph):
    x = np.ones((2, 3), np.float32)
    view = graph("transposeTensor:dimension:withDimension:name:", graph(TANH, x), 0, 1)
    assert np.isnan(graph.run([view])[0]).all()
    np.testing.assert_array_equal(graph.value("identityWithTensor:name:", view), np.tanh(x.T))


def test_command_buffers_are_used_once(graph):
    x = np.ones(3, np.float32)
    _, commands = encoded(graph, graph(TANH, x), x)
    with pytest.raises(ObjectiveCError, match="never committed"):
        commands("waitUntilCompleted")
    commands("commit")
    with pytest.raises(ObjectiveCError, match="committed already"):
        commands("commit")
    commands("waitUntilCompleted")


def test_encoding_commits_now_and_then(graph):
    """As MPSGraph may: what was the root before is not the root after."""
    x = np.ones(3, np.float32)
    y = graph(TANH, x)
    changed = []
    for _ in range(6):
        own = graph.queue("commandBuffer")
        commands = graph.runtime("MPSCommandBuffer")("commandBufferWithCommandBuffer:", own)
        results = graph.results({y: graph.data(graph.buffer(x), x)})
        graph.encode_to(commands, results, level=0)
        changed.append(commands("rootCommandBuffer").pointer != own.pointer)
        commands("commit")
        commands("waitUntilCompleted")
    assert sum(changed) == 2


def test_failing_command_buffer(graph):
    x = np.ones(3, np.float32)
    buffer, commands = encoded(graph, graph(TANH, x), x)
    graph.runtime.fail_next_command_buffer()
    commands("commit")
    commands("waitUntilCompleted")
    assert commands.integer("status") == 5 and commands("error") is not None
    assert np.isnan(values(buffer, x)).all()


def test_everything_is_freed(fakes):
    runtime = Runtime(fakes)
    names = ("graphs", "tensor data", "buffers", "buffer bytes", "command buffers")
    before = [runtime.count(name) for name in names]
    for _ in range(3):
        with runtime.pool():
            graph, x = Graph(runtime), np.ones(3, np.float32)
            graph.run([graph(TANH, x)])
            assert runtime.count("graphs") == before[0] + 1
            graph.release()
    assert [runtime.count(name) for name in names] == before


# --- what ends the process -------------------------------------------------------------------


def test_a_command_buffer_must_not_be_lost(fakes):
    """Work that was encoded and never committed."""
    script = f"""
import sys
sys.path[:0] = {sys.path!r}
import numpy as np
from metal.objc import Graph, Runtime
runtime = Runtime({str(fakes)!r})
with runtime.pool():
    graph, x = Graph(runtime), np.ones(3, np.float32)
    y = graph("tanhWithTensor:name:", x)
    graph.encode({{y: graph.data(graph.buffer(x), x)}})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode != 0
    assert "fake: a command buffer with work was never committed" in done.stderr
