"""Graphs of every kind of layer, from files of version 2, against the oracle in float64."""

import numpy as np
import pytest

from session import c_library as c
from session import graph_oracle, graphs
from session import session_file as f


@pytest.fixture(scope="module")
def library():
    return c.load(c.path())


def check(found: list[np.ndarray], wanted: list[np.ndarray], weights: int) -> None:
    for got, want in zip(found, wanted, strict=True):
        assert got.shape == want.shape
        if weights == f.INT8:
            # Where x is near the middle between two of its 255 values, float32 may round it to the
            # other one. Without the rounding of x most outputs have an error of 0.001 to 0.016.
            assert np.linalg.norm(got - want) <= 1e-3 * np.linalg.norm(want)
            continue
        # Elements of the order of 10 behind sums of up to 50 products of float32.
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("weights", f.WEIGHTS)
@pytest.mark.parametrize("name", graphs.GRAPHS)
@pytest.mark.parametrize(("batch", "time"), [(1, 4), (3, 9)])
def test_session(library, name, batch, time, weights):
    """With and without masks, and with the same bits for any number of threads."""
    graph = graphs.make(name, weights)
    content = f.write_graph(graph)
    inputs, masks = graphs.draw(graph, np.random.default_rng(time), batch, time)
    session, two = c.Session(library, content), c.Session(library, content, threads=2)
    for given in (masks, [None] * len(masks)):
        y = session.run(inputs, given)
        check(y, graph_oracle.run(graph, inputs, given), weights)
        for one, other in zip(y, two.run(inputs, given), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("weights", f.WEIGHTS)
@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_rows_do_not_depend_on_others(library, name, weights):
    graph = graphs.make(name, weights)
    inputs, masks = graphs.draw(graph, np.random.default_rng(0), 3, 6)
    session = c.Session(library, f.write_graph(graph))
    y = session.run(inputs, masks)
    for row in range(3):
        one = [x[row : row + 1] for x in inputs], [mask[row : row + 1] for mask in masks]
        for got, want in zip(session.run(*map(list, one)), y, strict=True):
            np.testing.assert_array_equal(got[0], want[row])


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_can_stream(library, name):
    info = c.Session(library, f.write_graph(graphs.make(name))).info
    assert bool(info.can_stream) == (name in graphs.STREAMS)


@pytest.mark.parametrize("weights", f.WEIGHTS)
@pytest.mark.parametrize("name", graphs.STREAMS)
@pytest.mark.parametrize("batch", [1, 3])
def test_stream(library, name, batch, weights):
    """Blocks of any lengths give the bits of the whole sequence."""
    graph = graphs.make(name, weights)
    inputs, _ = graphs.draw(graph, np.random.default_rng(1), batch, 13)
    session = c.Session(library, f.write_graph(graph))
    wanted = session.run(inputs)
    stream, begin = c.Stream(session, batch), 0
    for steps in (1, 2, 7, 3):
        part = slice(begin, begin + steps)
        begin += steps
        outputs = [
            y.shape if session_has_last_step(session, k) else y[:, part].shape
            for k, y in enumerate(wanted)
        ]
        found = stream.run([np.ascontiguousarray(x[:, part]) for x in inputs], outputs)
        for k, (got, want) in enumerate(zip(found, wanted, strict=True)):
            if not session_has_last_step(session, k):
                np.testing.assert_array_equal(got, want[:, part])
            elif begin == 13:
                np.testing.assert_array_equal(got, want)


def session_has_last_step(session: c.Session, k: int) -> bool:
    """Whether an output is that of the last step of a call."""
    [array] = c.empty_structs(1)
    c.call(session.library, "session_get_output", session.handle, k, array, None)
    return array.sizes[1] != -1
