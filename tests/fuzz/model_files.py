"""Files of models and weights with changes, read by every importer.

A file is refused by a ValueError, an OSError or an ImportError, or read. Reading it takes little
time, and memory of the file's size. What is read computes what the file did before the changes, or
what the program that wrote such files computes of it now.
"""

import functools
import gc
import mmap
import os
import resource
import shutil
import signal
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from . import loop, model_kinds, own_programs
from .draw import choose
from .loop import Counts
from .model_kinds import KINDS, Kind
from .onnx_runtime import NotRun, Runtime

SECONDS = 10  # of the processor for a file
FREE = 1 << 28  # bytes for a file, and
TIMES = 4  # times its size
ADDRESSES = 1 << 30  # further bytes of address space: threads and libraries reserve some
ERRORS = (ValueError, OSError, ImportError)
LONGEST_TEXT = 10_000
# Two programs compute in float32. A change may make a weight large.
TOLERANCE = 1e-3


class Limited:
    """A context with the limits of a file. `kib` and `seconds` are what it took."""

    def __init__(self, size: int) -> None:
        self._most, self.kib, self.seconds = TIMES * size + FREE, 0, 0.0

    def __enter__(self) -> "Limited":
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
        self._begin, self._kib = time.process_time(), _status("VmRSS")
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # its signal ends the process
        _limit_addresses(_status("VmSize") * 1024 + self._most + ADDRESSES)
        return self

    def __exit__(self, *_: object) -> None:
        _limit_addresses(None)
        signal.setitimer(signal.ITIMER_PROF, 0)
        self.kib = _status("VmHWM") - self._kib
        self.seconds = time.process_time() - self._begin

    def check(self, text: str) -> None:
        assert self.kib * 1024 <= self._most, f"{text}: it took {self.kib} KiB"
        assert self.seconds < SECONDS, f"{text}: it took {self.seconds} s"


def _status(name: str) -> int:
    """Of this process, in KiB."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition(f"{name}:")[2].split()[0])


def _limit_addresses(most: int | None) -> None:
    """None: as many as the process may have."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = hard if most is None else most if hard < 0 else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@functools.cache
def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@functools.cache
def sources(kind: str) -> list[Path]:
    """The unchanged files of a kind, each with what it computes."""
    own = Path(folder().name) / kind.replace(" ", "_")
    own.mkdir()
    return KINDS[kind].write(own)


@functools.cache
def unchanged(kind: str, path: Path) -> list[np.ndarray]:
    return KINDS[kind].compute(KINDS[kind].read(path))


def _copy(path: Path) -> Path:
    """A file, or all files that begin with its name, in a folder of its own."""
    own = Path(folder().name) / "changed"
    own.mkdir(exist_ok=True)
    for old in own.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    if path.is_dir():
        shutil.copytree(path, own / path.name)
    for file in path.parent.glob(path.name + "*"):
        if file.is_file():
            shutil.copy(file, own)
    return own / path.name


def size_of(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else path.parent.glob(path.name + "*")
    return sum(file.stat().st_size for file in files if file.is_file())


def check(
    seed: int, number: int, counts: Counts, peer: Runtime, kinds: tuple[str, ...] = ()
) -> None:
    """Draws, reads and compares a file.

    Raises:
      AssertionError: a limit was not kept, the error is none in words, or the numbers are wrong.
    """
    rng = np.random.default_rng([seed, number])
    name = choose(rng, kinds or tuple(KINDS))
    kind, source = KINDS[name], choose(rng, sources(name))
    want = unchanged(name, source)
    path = _copy(source)
    text = f"{name}, {source.name}: {kind.change(rng, path)}"[:1500]
    counts[name] += 1
    limits = Limited(size_of(path))
    try:
        with limits:
            loaded = kind.read(path)
    except ERRORS as error:
        said = f"{type(error).__name__}: {error}"
        assert str(error).strip() and len(str(error)) <= LONGEST_TEXT, f"{text}: {said}"
        counts[f"{name}: refused"] += 1
        return
    except Exception as error:
        raise AssertionError(f"{text}: {type(error).__name__}: {error}") from error
    finally:
        for key, value in (("slowest, ms", 1000 * limits.seconds), ("largest, KiB", limits.kib)):
            counts[f"{name}: {key}"] = max(counts[f"{name}: {key}"], int(value))
        limits.check(text)
    counts[f"{name}: accepted"] += 1
    _limit_addresses(_status("VmSize") * 1024 + 2 * ADDRESSES)  # sizes of a call may be of any size
    try:
        way = _compared(kind, loaded, want, path, source, peer, rng, text)
    finally:
        _limit_addresses(None)
    counts[f"{name}: {way}"] += 1


def _compared(
    kind: Kind, loaded: Any, want: Any, path: Path, source: Path, peer: Runtime, rng: Any, text: str
) -> str:
    """Compares what was read. Returns with what it agrees."""
    try:
        with np.errstate(all="ignore"):
            got = kind.compute(loaded)
    except (*model_kinds.CALL_ERRORS, MemoryError):  # sizes that a call cannot have
        return "not run"
    if _is_same(got, want):
        return "as unchanged"
    try:
        if kind.verify is not None:
            kind.verify(loaded, path)
            return "as its arrays"
        # The peer reads files of Keras 2 only, whose hard_sigmoid is another function.
        is_of_other_version = "keras_version" in text
        if not kind.peer or is_of_other_version or rng.random() >= kind.asked:
            return "not compared"
        other = peer(kind.peer, str(path), str(kind.beside(source)))
    except (NotRun, MemoryError, *model_kinds.CALL_ERRORS):
        return "not compared"
    if not all(np.isfinite(y).all() and np.abs(y).max(initial=0) < 1e6 for y in other):
        return "not finite"
    shapes = [y.shape for y in got], [y.shape for y in other]
    assert shapes[0] == shapes[1], f"{text}: shapes {shapes[0]}, not {shapes[1]}"
    off = max(
        (float(np.abs(a - b).max(initial=0)) for a, b in zip(got, other, strict=True)), default=0
    )
    assert _is_same(got, other), f"{text}: differs by {off}"
    return "as its program"


def _is_same(got: list[np.ndarray], want: list[np.ndarray]) -> bool:
    return len(got) == len(want) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE)
        for a, b in zip(got, want, strict=True)
    )


def run(
    seed: int, numbers: range, record: mmap.mmap, failures: int = 1, each: int | None = None
) -> Counts:
    """Runs the calls of these numbers, as loop.run says."""
    kinds = tuple(filter(None, os.environ.get("FUZZ_KINDS", "").split(",")))
    peer = Runtime(own_programs.run)
    command = f"FUZZ_KINDS={','.join(kinds)} python -m tests.fuzz.models --seed {seed}"
    warnings.simplefilter("ignore")
    for kind in kinds or KINDS:
        for source in sources(kind):
            unchanged(kind, source)
    gc.freeze()

    def one(number: int, counts: Counts) -> None:
        if number % 200 == 0:
            model_kinds.forget()  # and collects garbage
        check(seed, number, counts, peer, kinds)

    try:
        return loop.run(one, numbers, record, command, failures)
    finally:
        peer.close()
