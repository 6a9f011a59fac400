"""What calls of the C library allocate, lock and ask of the system, as real_time.cc counts it."""

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from session import graphs, layers, native_program
from session import session_file as f

pytestmark = [native_program.glibc, pytest.mark.full]  # which compile a program

LARGE = [*native_program.LARGE_CHAINS]
STREAMS = [*layers.FORWARD_CHAINS, *(name for name in LARGE if not name.startswith("both"))]
SESSIONS = [*layers.CHAINS, *LARGE]
INSTRUCTION_SETS = ["x86-64-v2", "x86-64-v3"]  # that of the processor is the default


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return native_program.build("real_time.cc", tmp_path_factory)


def run(
    program: Path, path: Path, threads: int, batch: int, calls: str, mode: str, simd: str = ""
) -> subprocess.CompletedProcess[str]:
    command = [program, path, str(threads), str(batch), calls, mode]
    environment = {**os.environ, "TF_LSTM_OPS_SIMD": simd}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


def counts(program: Path, path: Path, threads: int, batch: int, calls: str) -> dict[str, int]:
    """The numbers of allocations, of frees and of locks."""
    done = run(program, path, threads, batch, calls, "count")
    assert done.returncode == 0, done.stderr
    numbers = map(int, done.stdout.split())
    return dict(zip(("allocations", "frees", "locks"), numbers, strict=True))


def check_strict(program: Path, path: Path, batch: int, calls: str, simd: str = "") -> None:
    """No system call, with one thread."""
    done = run(program, path, 1, batch, calls, "strict", simd)
    if done.returncode == 3:
        pytest.skip(f"no seccomp: {done.stderr}")
    assert (done.returncode, done.stdout) == (0, "no system call\n"), done.stderr


def test_the_program_notices(program: Path, tmp_path: Path) -> None:
    path = native_program.write(tmp_path, "lstm")
    assert counts(program, path, 1, 1, "malloc")["allocations"] > 0
    assert counts(program, path, 1, 1, "mutex")["locks"] > 0
    done = run(program, path, 1, 1, "getppid", "strict")
    if done.returncode != 3:
        assert done.returncode == -signal.SIGKILL


@pytest.mark.sampled
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", STREAMS)
def test_streams(program: Path, tmp_path: Path, name: str, batch: int) -> None:
    check_streams(program, native_program.write(tmp_path, name), batch)


def check_streams(program: Path, path: Path, batch: int) -> None:
    """From the first call on. With one thread neither a lock nor a system call."""
    for calls in ("stream", "states"):
        found = counts(program, path, 1, batch, calls)
        assert found == {"allocations": 0, "frees": 0, "locks": 0}
        found = counts(program, path, 2, batch, calls)
        assert (found["allocations"], found["frees"]) == (0, 0)
        check_strict(program, path, batch, calls)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", graphs.STREAMS)
@pytest.mark.parametrize("weights", f.WEIGHTS)
def test_streams_of_graphs(
    program: Path, tmp_path: Path, name: str, batch: int, weights: int
) -> None:
    """Every layer that streams: see `test_every_layer_is_tested`."""
    check_streams(program, native_program.write_graph(tmp_path, name, weights), batch)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", graphs.GRAPHS)
@pytest.mark.parametrize("weights", f.WEIGHTS)
def test_whole_sequences_of_graphs(
    program: Path, tmp_path: Path, name: str, batch: int, weights: int
) -> None:
    check_sequences(program, native_program.write_graph(tmp_path, name, weights), batch)


def test_every_layer_is_tested() -> None:
    """By its kind; some need the whole sequence and are within each step of a stream."""
    kinds = {node.layer.kind for name in graphs.GRAPHS for node in graphs.make(name).nodes}
    assert kinds == {*range(1, 22)}
    streams = {node.layer.kind for name in graphs.STREAMS for node in graphs.make(name).nodes}
    assert streams == kinds


@pytest.mark.parametrize("simd", INSTRUCTION_SETS)
@pytest.mark.parametrize("name", ["stack with dense", *LARGE[:-1]])
@pytest.mark.parametrize("weights", f.WEIGHTS)
def test_streams_of_other_instruction_sets(
    program: Path, tmp_path: Path, name: str, simd: str, weights: int
) -> None:
    path = native_program.write(tmp_path, name, weights)
    for batch in (1, 3):
        check_strict(program, path, batch, "stream", simd)


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("weights", f.WEIGHTS[1:])
def test_large_layers_of_other_weights(
    program: Path, tmp_path: Path, name: str, weights: int
) -> None:
    path = native_program.write(tmp_path, name, weights)
    check_sequences(program, path, 4)
    if name in STREAMS:
        check_streams(program, path, 1)


@pytest.mark.full
@pytest.mark.parametrize("name", ["lstm of 256", "both of 300"])
@pytest.mark.parametrize("weights", f.WEIGHTS[1:])
def test_smaller_calls_of_other_weights(
    program: Path, tmp_path: Path, name: str, weights: int
) -> None:
    check_smaller(program, native_program.write(tmp_path, name, weights), 40)


@pytest.mark.sampled
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", SESSIONS)
def test_whole_sequences(program: Path, tmp_path: Path, name: str, batch: int) -> None:
    check_sequences(program, native_program.write(tmp_path, name), batch)


def check_sequences(program: Path, path: Path, batch: int) -> None:
    """After a first call of each size."""
    for calls in ("sequence", "masked"):
        for threads in (1, 2):
            found = counts(program, path, threads, batch, calls)
            assert (found["allocations"], found["frees"]) == (0, 0)
        check_strict(program, path, batch, calls)


@pytest.mark.sampled(2, strength=0)
@pytest.mark.parametrize("batch", [4, 40, 130])
@pytest.mark.parametrize("name", SESSIONS)
def test_smaller_calls(program: Path, tmp_path: Path, name: str, batch: int) -> None:
    check_smaller(program, native_program.write(tmp_path, name), batch)


@pytest.mark.sampled(2, strength=1)
@pytest.mark.parametrize("batch", [4, 40])
@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_smaller_calls_of_graphs(program: Path, tmp_path: Path, name: str, batch: int) -> None:
    check_smaller(program, native_program.write_graph(tmp_path, name), batch)


def check_smaller(program: Path, path: Path, batch: int) -> None:
    """After the largest one, also where their work is divided in another way."""
    for threads in (1, 2, 5):
        found = counts(program, path, threads, batch, "smaller")
        assert (found["allocations"], found["frees"]) == (0, 0)


def test_python_stream(program: Path, tmp_path: Path) -> None:
    """`Stream.__call__` with `out` keeps no new object of Python and makes no array."""
    import tracemalloc

    from tf_lstm_ops.inference import Session

    stream = Session.load(native_program.write(tmp_path, "stack with dense")).stream()
    x, out = np.ones((1, layers.INPUTS), np.float32), np.empty((1, 3), np.float32)
    for _ in range(3):
        stream(x, out=out)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(100):
            stream(x, out=out)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # NumPy reports its arrays to tracemalloc. An iterator of a copy is no array.
    assert after - before < 1024 and peak - before < 4096
