"""int8 has the same bits on every instruction set with a fused multiply-add, for any number of
threads, and beside any rows. So has bfloat16 with products of bfloat16 on one instruction set.
bfloat16 with products of float32 has the bits of float32 of the rounded weights.
"""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from session import c_library as c
from session import graph_oracle, graphs
from session import session_file as f
from session import weight_cases as cases

FIRST, *OTHERS = cases.SIZES
SIZES = [FIRST, *(pytest.param(each, marks=pytest.mark.full) for each in OTHERS)]
every_case = pytest.mark.parametrize("name", cases.CASES)
every_size = pytest.mark.parametrize("sizes", SIZES, ids=str)
TYPES = {"int8": f.INT8, "bfloat16": f.BFLOAT16_PRODUCTS}
every_type = pytest.mark.parametrize("weights", TYPES.values(), ids=TYPES)


@pytest.fixture(scope="module")
def library() -> Any:
    return c.load(c.path())


def opened(
    library: Any, name: str, sizes: tuple[int, int], weights: int, threads: int = 1
) -> c.Session:
    return c.Session(library, f.write_graph(cases.graph(name, sizes, weights)), threads)


@pytest.mark.full
@pytest.mark.parametrize("simd", ["x86-64-v3", pytest.param("x86-64-v4", marks=pytest.mark.full)])
def test_instruction_sets(library: Any, tmp_path: Path, simd: str) -> None:
    """But for layer normalisation, which sums rows in an order of the instruction set."""
    if library.tf_lstm_ops_selected_instruction_set() == b"x86-64-v2":
        pytest.skip("x86-64-v2 has no fused multiply-add")
    path = tmp_path / "found.npz"
    done = subprocess.run(
        [sys.executable, "-m", "session.weight_cases", path],
        env={**os.environ, "TF_LSTM_OPS_SIMD": simd},
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode == 0 and done.stdout.split() != [simd]:
        pytest.skip(f"the processor does not have {simd}")
    assert done.returncode == 0, done.stderr
    with np.load(path) as found:
        for key, want in cases.all_results(library).items():
            if not key.startswith("layer norm"):
                cases.assert_same([found[key]], [want], key)


@every_type
@every_size
@every_case
def test_threads(library: Any, name: str, sizes: tuple[int, int], weights: int) -> None:
    one = opened(library, name, sizes, weights)
    inputs, masks = cases.rows(cases.graph(name, sizes, weights))
    for count in (27, 3, 1):
        x, valid = [x[:count] for x in inputs], [mask[:count] for mask in masks]
        wanted, unmasked = one.run(x, valid), one.run(x)
        for threads in (2, 3, 5):
            other = opened(library, name, sizes, weights, threads)
            # A full batch before a short one.
            other.run(inputs, masks)
            cases.assert_same(other.run(x, valid), wanted, f"{count} {threads}")
            cases.assert_same(other.run(x), unmasked, f"{count} {threads}")


@every_type
@every_size
@every_case
def test_rows_beside_others(library: Any, name: str, sizes: tuple[int, int], weights: int) -> None:
    """Beside rows of other magnitudes, in batches of all schedules."""
    inputs, masks = cases.rows(cases.graph(name, sizes, weights))
    session = opened(library, name, sizes, weights)
    whole = session.run(inputs, masks)
    order = np.random.default_rng(1).permutation(cases.ROWS)
    for batch in (1, 2, 3, 5, 8, 16):
        for begin in range(0, cases.ROWS, max(batch, 4)):
            part = order[begin : begin + batch]
            found = session.run([x[part] for x in inputs], [mask[part] for mask in masks])
            cases.assert_same(found, [y[part] for y in whole], f"rows {part}")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", [name for name in cases.CASES if name != "embedding"])
def test_rows_that_are_not_finite(library: Any, name: str, threads: int, value: float) -> None:
    """They are NaN from then on, and change no other row."""
    session = opened(library, name, FIRST, f.INT8, threads)
    inputs, _ = cases.rows(cases.graph(name, FIRST, f.INT8))
    wanted = session.run(inputs)
    bad, at = [1, 4, 20], 2
    for x in inputs:
        x[bad, at, 3] = value
    good = np.setdiff1d(range(cases.ROWS), bad)
    for got, want in zip(session.run(inputs), wanted, strict=True):
        cases.assert_same([got[good]], [want[good]])
        if got.ndim == 3 and name in cases.STREAMS:
            cases.assert_same([got[bad, :at]], [want[bad, :at]])
            last = at + 1 if "dense" in name or "convolution" in name else cases.STEPS
            # A group of a convolution has its own products.
            groups = 2 if name == "causal convolution, dilated" else 1
            assert np.isnan(np.split(got[bad, at:last], groups, axis=-1)[0]).all()


@every_type
@every_size
@pytest.mark.parametrize("name", cases.STREAMS)
@pytest.mark.parametrize("batch", [1, 3, 12])
def test_streams(library: Any, name: str, sizes: tuple[int, int], batch: int, weights: int) -> None:
    """By steps and by blocks."""
    session = opened(library, name, sizes, weights, 2 if batch == 12 else 1)
    inputs, _ = cases.rows(cases.graph(name, sizes, weights), batch, 10)
    wanted = session.run(inputs)
    for blocks in ([1] * 10, [4, 1, 5]):
        stream, end = c.Stream(session, batch), 0
        for steps in blocks:
            begin, end = end, end + steps
            shapes = [y[:, begin:end].shape if y.ndim == 3 else y.shape for y in wanted]
            found = stream.run([np.ascontiguousarray(x[:, begin:end]) for x in inputs], shapes)
            for got, want in zip(found, wanted, strict=True):
                if want.ndim == 3:
                    cases.assert_same([got], [want[:, begin:end]], f"{blocks} {begin}")
                elif end == 10:
                    cases.assert_same([got], [want])


def as_float32(made: f.Graph) -> f.Graph:
    """The graph with float32 weights of the values in the file."""
    nodes = [dataclasses.replace(node, layer=f.stored(node.layer)) for node in made.nodes]
    return dataclasses.replace(made, nodes=nodes)


LARGE = (48, 512)  # weights of float32 that exceed the L2 cache


@pytest.mark.parametrize("sizes", [*SIZES, pytest.param(LARGE, marks=pytest.mark.full)], ids=str)
@every_case
def test_bfloat16(library: Any, name: str, sizes: tuple[int, int]) -> None:
    check_bfloat16(library, name, sizes)


def test_bfloat16_of_a_large_layer(library: Any) -> None:
    check_bfloat16(library, "lstm", LARGE)


def check_bfloat16(library: Any, name: str, sizes: tuple[int, int]) -> None:
    made = cases.graph(name, sizes, f.BFLOAT16)
    inputs, masks = cases.rows(made)
    for threads in (1, 2):
        rounded = c.Session(library, f.write_graph(made), threads)
        wide = c.Session(library, f.write_graph(as_float32(made)), threads)
        for count in (1, 2, 4, 27):
            x, valid = [x[:count] for x in inputs], [mask[:count] for mask in masks]
            cases.assert_same(rounded.run(x, valid), wide.run(x, valid), f"{threads} {count}")
            cases.assert_same(rounded.run(x), wide.run(x), f"{threads} {count}")


@pytest.mark.parametrize("name", cases.CASES)
def test_products_of_bfloat16(library: Any, name: str) -> None:
    """Of rows that are rounded, or, on a processor without instructions for them, of float32.

    With AMX too, as Linux allows it in tests.
    """
    sizes = (64, 256)
    errors = []
    for weights in f.BFLOAT16S:  # which say what the oracle rounds
        made = cases.graph(name, sizes, weights)
        inputs, masks = graphs.draw(made, np.random.default_rng(3), 4, 5)
        found = opened(library, name, sizes, f.BFLOAT16_PRODUCTS).run(inputs, masks)
        wanted = graph_oracle.run(made, inputs, masks)
        errors.append(
            max(
                np.linalg.norm(got - want) / np.linalg.norm(want)
                for got, want in zip(found, wanted, strict=True)
            )
        )
    # Where an element of h is near the middle between two bfloat16, float32 and float64 round it to
    # different ones. The rounding of all rows changes the results by 1e-3 and more.
    rounds = library.tf_lstm_ops_selected_instruction_set().endswith((b"bf16", b"amx"))
    assert errors[f.BFLOAT16S.index(f.BFLOAT16_PRODUCTS if rounds else f.BFLOAT16)] < 1e-4
