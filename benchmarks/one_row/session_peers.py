"""Sessions of this package, in Python and in C."""

from __future__ import annotations

import functools
import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import keras
import numpy as np

import tf_lstm_ops
from one_row.cases import Case
from one_row.keras_model import keras_model
from one_row.peers import Prepared
from one_row.timing import BATCH, CALLS, Percentiles
from tf_lstm_ops.inference import Session

SOURCE = Path(__file__).resolve().parents[1] / "latency_stream.c"
HEADERS = SOURCE.parents[1] / "include"
LIBRARY = "tf_lstm_ops_inference"
LARGE = 2**20  # weights of a model that takes so long that reading the clock does not matter


def session(case: Case, _model: keras.Model, _folder: Path, **options: Any) -> list[Prepared]:
    """A stream, or calls of the session with one and two threads; `options` are the session's."""
    model = keras_model(case, stateful=False)
    x = np.zeros((1, case.time, case.inputs), np.float32)
    out = np.zeros((1, case.time, case.layers[-1].size), np.float32)
    if case.keeps_states:
        step = Session(model, **options).stream()
        x, out = x[:, 0], out[:, 0]
        return [Prepared("", x, lambda: step(x, out=out))]
    found = []
    for threads in (1, 2):
        run = Session(model, threads=threads, **options)
        label = f"{threads} thread" + "s" * (threads > 1)
        found.append(Prepared(label, x, functools.partial(run, x, out=out)))
    return found


def c_program(case: Case, _model: keras.Model, folder: Path, **options: Any) -> list[Prepared]:
    """latency_stream.c on the file of the session, whose options are `options`."""
    model = keras_model(case, stateful=False)
    file = folder / f"{'-'.join(['model', *options.values()])}.session"
    Session(model, **options).save(file)
    program = build_program(folder)
    batch = 1 if model.count_params() > LARGE else BATCH

    def measure(calls: int, batch: int) -> dict[str, float]:
        line = [str(program), str(file), str(calls), str(batch)]
        return json.loads(subprocess.run(line, check=True, capture_output=True).stdout)

    def sample() -> Percentiles:
        singles = measure(CALLS, 1)
        batches = singles if batch == 1 else measure(CALLS * BATCH // 10, batch)
        return Percentiles(batches["p50"] * 1e-9, singles["p99"] * 1e-9, CALLS)

    # The outputs of the program are not read: tests compare those of the library.
    return [Prepared("", np.empty(0, np.float32), lambda: None, sample=sample)]


@functools.cache
def build_program(folder: Path) -> Path:
    """Compiles the program, once for a folder."""
    libraries = Path(tf_lstm_ops.__file__).parent / "_lib"
    program = folder / "latency_stream"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    options = ["-std=c11", "-O2", f"-I{HEADERS}", f"-L{libraries}", f"-Wl,-rpath,{libraries}"]
    line = [*compiler, *options, str(SOURCE), f"-l{LIBRARY}", "-o", str(program)]
    subprocess.run(line, check=True)
    return program
