"""The sets of rows to select from: tables, examples, models, sweep, shapes, int8, benchdnn."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from peers import benchdnn, models
from peers.cases import Row, with_steps
from peers.examples import EXAMPLES, Example
from peers.rows import ROWS

_LAYERS = ("ours", "keras", "keras-jit")
_PEERS = {
    "inference": (
        *("ours", "ours-eager", "session", "keras", "keras-jit"),
        *("torch", "onnxruntime", "openvino", "tract", "jax"),
    ),
    "training": (*_LAYERS, "torch", "jax"),
    "fit": _LAYERS,
}
_SWEEP_STEPS = 50


def _example_row(example: Example, task: str) -> Row:
    words = [task, "GRU" if example.cell == "gru" else "", example.name]
    direction = "bidirectional " if example.directions == 2 else ""
    sizes = f"N{example.batch} H{example.units} T{example.time} I{example.inputs}"
    return Row(
        f"{' '.join(filter(None, words))}, {direction}{sizes}",
        *("other" if task == "fit" else task, task),
        *(example.batch, example.time, example.units, example.inputs),
        peers=with_steps(_PEERS[task], example.steps),
        cell=example.cell,
        directions=example.directions,
        steps=example.steps,
    )


def _sweep_row(task: str, cell: str, sizes: tuple[int, int, int]) -> Row:
    batch, units, inputs = sizes
    kind = f"{task} GRU" if cell == "gru" else task
    return Row(
        f"{kind} N{batch} H{units} T{_SWEEP_STEPS} I{inputs}",
        *(task, task, batch, _SWEEP_STEPS, units, inputs),
        peers=_PEERS[task],
        cell=cell,
    )


def _sweep() -> tuple[Row, ...]:
    """All batch sizes and units with 7 features; a part of them with 1 and 64, and for GRU."""
    batches, units = (1, 16, 64, 256, 1024, 4096), (16, 32, 64, 128)
    part = (1, 64, 1024), (32, 128)
    lstm = sorted({*itertools.product(batches, units, [7]), *itertools.product(*part, [1, 64])})
    cells = {"lstm": lstm, "gru": list(itertools.product(*part, [7]))}
    return tuple(
        _sweep_row(task, cell, sizes)
        for task in ("inference", "training")
        for cell, grid in cells.items()
        for sizes in grid
    )


_WEIGHTS = (
    *("session", "session-bfloat16", "session-int8"),
    *("onnxruntime", "openvino", "openvino-default", "tract"),
)
_NO_GRU = ("onnxruntime-int8", "openvino-int8")


def _typed_row(name: str, cell: str, batch: int, units: int, time: int, inputs: int = 0) -> Row:
    """A session with weights of each type. `inputs` 0: as many as units."""
    sizes = f"N{batch} H{units} T{time}" + (f" I{inputs}" if inputs else "")
    return Row(
        f"{name} {cell.upper()} {sizes}",
        *("int8", "inference", batch, time, units, inputs or units),
        peers=_WEIGHTS if cell == "gru" else (*_WEIGHTS, *_NO_GRU),
        cell=cell,
    )


def _int8() -> tuple[Row, ...]:
    """Sessions by the type of their weights: of one step, and of sequences."""
    steps = [(1, units, 1) for units in (128, 256, 512, 640, 1024, 2048)]
    sequences = [(n, 256, 50) for n in (1, 4, 16, 64)] + [(n, 512, 25) for n in (1, 16, 64)]
    return tuple(
        _typed_row(f"int8 {'step' if sizes[2] == 1 else 'sequence'}", cell, *sizes)
        for sizes in (*steps, *sequences)
        for cell in ("lstm", "gru")
    )


def _shapes() -> tuple[Row, ...]:
    """Sessions, from one step of a row to layers whose weights leave the caches; training."""
    lstm: list[tuple[int, ...]] = [
        *((n, 256, 50) for n in (1, 4, 16, 64)),
        *((n, 512, 25) for n in (1, 4, 16)),
        *((n, 1024, 25) for n in (1, 4, 16)),
        *((n, 2048, 25) for n in (1, 4)),
        *((1, 128, 100), (64, 128, 50), (1, 512, 1), (1, 48, 300, 24), (128, 40, 10, 5)),
        *((33, 100, 64, 40), (7, 320, 200, 80), (3, 610, 77, 190)),
    ]
    gru = [(16, 256, 50), (64, 128, 50), (1, 512, 25)]
    sessions = [
        _typed_row("session", cell, *sizes)
        for cell, found in (("lstm", lstm), ("gru", gru))
        for sizes in found
    ]
    return (*sessions, *_training_shapes())


def _trained_row(cell: str, directions: int, sizes: tuple[int, ...]) -> Row:
    batch, units, time, inputs = (*sizes, sizes[1])[:4]
    kind = "bidirectional " * (directions - 1) + cell.upper()
    return Row(
        f"trained {kind} N{batch} H{units} T{time} I{inputs}",
        *("training", "training", batch, time, units, inputs),
        peers=("ours", "keras", "torch"),
        cell=cell,
        directions=directions,
    )


def _training_shapes() -> Iterator[Row]:
    """Batches of 1 to 1664 rows, 8 to 1024 units, also such as fill no vector, 2 to 2048 inputs."""
    lstm: list[tuple[int, ...]] = [
        *((1, 128, 100), (4, 256, 50), (16, 256, 50), (32, 256, 50), (64, 256, 50)),
        *((32, 128, 100), (64, 128, 50), (32, 512, 25), (128, 512, 25), (64, 1024, 25)),
        *((17, 200, 33, 70), (128, 128, 40, 56), (32, 64, 200, 128), (50, 670, 20, 96)),
        *((64, 8, 50, 8), (1000, 24, 7, 2), (256, 32, 120, 7), (1664, 64, 12, 20)),
    ]
    yield from (_trained_row("lstm", 1, sizes) for sizes in lstm)
    yield from (_trained_row("lstm", 2, sizes) for sizes in ((32, 256, 50), (64, 64, 100, 128)))
    gru: list[tuple[int, ...]] = [(32, 128, 100), (64, 256, 50)]
    gru += [(128, 128, 40, 56), (32, 16, 20, 2048)]
    yield from (_trained_row("gru", 1, sizes) for sizes in gru)


_LONGEST = 50e9  # multiply-adds of a gate; all gates take a second or so
_ONE_LAYER = ("onnxruntime", "openvino", "tract")  # the models that these peers get have one layer
_OF_GPUS = "option_set_fwks_key_gpu"  # benchdnn's only list of shapes for GPUs alone


def _benchdnn_row(shape: benchdnn.Shape, cell: str) -> Row:
    is_stack = shape.layers > 1
    kind = f"benchdnn {cell.upper()}" + (f", {shape.layers} layers," if is_stack else "")
    peers = [name for name in _PEERS["inference"] if not (is_stack and name in _ONE_LAYER)]
    batch, time, units, inputs = shape.batch, shape.time, shape.hidden, shape.src_layer
    return Row(
        f"{kind} N{batch} H{units} T{time} I{inputs}",
        *("inference", "inference", batch, time, units, inputs),
        peers=tuple(peers),
        cell=cell,
        layers=shape.layers,
    )


def _benchdnn() -> tuple[Row, ...]:
    """Those of oneDNN's lists for CPUs whose h has as many units as the cell."""
    shapes = [
        shape
        for shape, names in benchdnn.read().items()
        if shape.has_one_state_size and names != (_OF_GPUS,) and shape.work_per_gate <= _LONGEST
    ]
    return tuple(_benchdnn_row(shape, cell) for shape in shapes for cell in ("lstm", "gru"))


CASES: dict[str, tuple[Row, ...]] = {
    "tables": ROWS,
    "examples": tuple(
        _example_row(example, task)
        for task in ("inference", "training", "fit")
        for example in EXAMPLES
    ),
    "models": models.ROWS,
    "sweep": _sweep(),
    "shapes": _shapes(),
    "int8": _int8(),
    "benchdnn": _benchdnn(),
}
