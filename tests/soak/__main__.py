"""Trains, predicts, exports and reloads for a while, then serves one model from 64 new threads a
round, with this package's layers and, in another process at the same time, with Keras' own. Each of
the two phases has new processes, so that it does not measure what the other one left.

    python -m tests.soak --minutes 60

Shapes, masks and numbers of threads change all the time. A result that a call has given before must
come again bit for bit, also in a forked process. At the end the growth of memory per round is
fitted, with its error. Building, exporting and reloading of models makes TensorFlow and Keras grow
by themselves, so ours must not grow by more than stock layers do, within three errors.
"""

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras as keras_
import numpy as np
import tensorflow as tf

TESTS = Path(__file__).resolve().parents[1]
SHARE_OF_WARM_UP = 0.3  # before memory is measured: caches fill, arenas grow
ERRORS = 3  # by how many standard errors ours may grow more than stock layers


def resident() -> int:
    """Bytes of memory in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def slope(sizes: list[int]) -> tuple[float, float]:
    """Of a line through the points: bytes per round, and the standard error. Neighbouring points
    are not independent, so the error is that of the means of twelve parts."""
    points = np.array([np.arange(len(sizes)), sizes], float)
    parts = np.array_split(points, 12, axis=1)
    x, y = np.array([part.mean(axis=1) for part in parts]).T
    fitted, covariance = np.polyfit(x, y, 1, cov=True)
    return float(fitted[0]), float(np.sqrt(covariance[0, 0]))


class Model:
    """A model of this package's layers, or of Keras' own."""

    stock = False

    def __init__(self, rng: np.random.Generator) -> None:
        from tf_lstm_ops import keras

        module = keras_.layers if self.stock else keras
        layer = [module.LSTM, module.GRU][rng.integers(2)]
        units = int(rng.choice([3, 16, 64]))
        inputs = keras_.Input([None, 8])
        x = keras_.layers.Masking()(inputs)
        x = layer(units, return_sequences=True)(x)
        x = keras_.layers.Dense(1)(layer(units, dropout=0.2)(x))
        self.model = keras_.Model(inputs, x)
        self.model.compile("sgd", "mse")


def batch(rng: np.random.Generator) -> np.ndarray:
    """Sequences of any lengths: zeros at the end are masked."""
    rows, steps = int(rng.integers(1, 33)), int(rng.choice([1, 5, 20, 60]))
    x = rng.normal(size=(rows, steps, 8)).astype(np.float32)
    for row, length in enumerate(rng.integers(0, steps + 1, rows)):
        x[row, length:] = 0
    return x


def cycle(rng: np.random.Generator) -> None:
    """One model: training, prediction, both files, and the same bits after each."""
    keras_.backend.clear_session()
    model = Model(rng).model
    for _ in range(3):
        x = batch(rng)
        model.train_on_batch(x, x.mean(axis=(1, 2)))
    x = batch(rng)
    want = model(x).numpy()
    assert np.isfinite(want).all()
    if not Model.stock:
        fork(model, x)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        again = keras_.models.load_model(f"{folder}/model.keras")
        np.testing.assert_array_equal(again(x).numpy(), want)
        model.export(f"{folder}/exported", verbose=False)
        loaded = tf.saved_model.load(f"{folder}/exported")
        served = loaded.serve(tf.constant(x)).numpy()
        np.testing.assert_allclose(served, want, rtol=0, atol=1e-6)
        one, *others = (serve_on_threads(f"{folder}/exported", x, n) for n in (1, 2, 3))
        for other in others:
            np.testing.assert_array_equal(other, one)


def serve_on_threads(folder: str, x: np.ndarray, threads: int) -> np.ndarray:
    """In a session, which has a number of threads of its own."""
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads)
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph, config=config) as s:
        loaded = tf.compat.v1.saved_model.load(s, ["serve"], folder)
        signature = loaded.signature_def["serve"]
        (given,), (output,) = signature.inputs.values(), signature.outputs.values()
        return s.run(output.name, {given.name: x})


def fork(model: keras_.Model, x: np.ndarray) -> None:
    """The first recurrent layer in a forked process, in which TensorFlow's own threads are gone."""
    layer = next(layer for layer in model.layers if isinstance(layer, keras_.layers.RNN))
    x = tf.constant(x)
    want = layer(x).numpy()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)  # ends a child that waits for threads it does not have
            status = 0 if np.array_equal(layer(x).numpy(), want) else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0, "a forked process got other bits"


def serving(rng: np.random.Generator) -> Callable[[], None]:
    """A function by which 64 threads call one model a few times each."""
    model = Model(rng).model
    function = tf.function(
        lambda x: model(x), input_signature=[tf.TensorSpec([None, None, 8], tf.float32)]
    )
    batches = [tf.constant(batch(rng)) for _ in range(8)]
    wants = [function(x).numpy() for x in batches]

    def serve() -> None:
        wrong: list[int] = []

        def work(first: int) -> None:
            for k in range(first, first + 8):
                if not np.array_equal(function(batches[k % 8]).numpy(), wants[k % 8]):
                    wrong.append(k)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, "64 threads got other bits"

    return serve


class Growth(NamedTuple):
    """Of a phase: bytes per round, the standard error, the rounds, and the bytes at its end."""

    per_round: float
    error: float
    rounds: int
    size: int


def measure(step: Callable[[], None], seconds: float) -> Growth:
    """Repeats a step for some time."""
    sizes: list[int] = []
    begin, count = time.monotonic(), 0
    while (now := time.monotonic() - begin) < seconds or len(sizes) < 36:
        step()
        count += 1
        if now > SHARE_OF_WARM_UP * seconds:
            sizes.append(resident())
    return Growth(*slope(sizes), count, sizes[-1])


PHASES: dict[str, Callable[[np.random.Generator], Callable[[], None]]] = {
    "training, prediction, files": lambda rng: lambda: cycle(rng),
    "64 new threads": serving,
}


def run(phase: str, seed: int, minutes: float) -> bool:
    """One phase with both kinds of layers, at the same time. Whether ours did not grow more."""
    command = [sys.executable, "-m", "tests.soak", "--phase", phase, "--seed", str(seed)]
    command += ["--minutes", str(minutes), "--layers"]
    processes = {
        layers: subprocess.Popen(
            [*command, layers], stdout=subprocess.PIPE, text=True, cwd=TESTS.parent
        )
        for layers in ("ours", "stock")
    }
    printed = {layers: process.communicate()[0] for layers, process in processes.items()}
    if any(process.returncode for process in processes.values()):
        return False
    growth = {layers: Growth(*json.loads(text)) for layers, text in printed.items()}
    for layers, found in growth.items():
        print(
            f"{phase}, {layers}: {found.rounds} rounds, {found.size / 1e6:.0f} MB at the end, "
            f"growth {found.per_round / 1e3:.0f} ± {found.error / 1e3:.0f} kB a round",
            flush=True,
        )
    ours, stock = growth["ours"], growth["stock"]
    return ours.per_round - stock.per_round <= ERRORS * math.hypot(ours.error, stock.error)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--phase", choices=PHASES, help="only this one, for all the minutes")
    parser.add_argument("--layers", choices=["ours", "stock"], help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if parsed.layers:
        Model.stock = parsed.layers == "stock"
        step = PHASES[parsed.phase](np.random.default_rng(parsed.seed))
        print(json.dumps(measure(step, 60 * parsed.minutes)))
        return 0
    phases = [parsed.phase] if parsed.phase else list(PHASES)
    passed = [run(phase, parsed.seed, parsed.minutes / len(phases)) for phase in phases]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    # Where Python looks for modules as pytest does.
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != TESTS.parent]
    sys.path += [str(TESTS), str(TESTS.parent)]
    sys.exit(main())
