"""The rows of the tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from peers.cases import Row, with_steps


def _sizes(batch: int, units: int, time: int, inputs: int | None) -> str:
    return f"N{batch} H{units} T{time}" + (f" I{inputs}" if inputs else "")


_CROSS_FRAMEWORK = ("torch", "onnxruntime", "openvino", "tract", "jax")
_SEQUENCE = ("ours", "ours-cudnn", "keras", "keras-jit", "block-lstm-v2", "block-cell")
_TRAINED = ("torch", "jax")  # the other frameworks that support training
_PROJECTED = ("ours", "ours-eager", "session", "ours-cudnn", "torch", "jax")


def _inference(
    batch: int, units: int, time: int, inputs: int | None = None, quick: bool = False
) -> Row:
    return Row(
        f"inference {_sizes(batch, units, time, inputs)}",
        *("inference", "inference", batch, time, units, inputs or units),
        peers=("ours", "ours-eager", "session", *_SEQUENCE[1:], *_CROSS_FRAMEWORK),
        quick=quick,
    )


def _training(
    batch: int, units: int, time: int, inputs: int | None = None, quick: bool = False
) -> Row:
    return Row(
        f"training {_sizes(batch, units, time, inputs)}",
        *("training", "training", batch, time, units, inputs or units),
        peers=(*_SEQUENCE[:-1], *_TRAINED),
        quick=quick,
    )


_SIMPLE_TRAINING = (
    _training(32, 128, 100, quick=True),
    _training(64, 256, 50),
    _training(32, 512, 25, quick=True),
    _training(64, 1024, 25),
    _training(128, 512, 25),
)
_TRAINING_OF_USERS = (
    _training(64, 1024, 50),
    _training(128, 256, 128, 40),
    _training(32, 64, 200, 128),
    _training(256, 128, 365, 5),
    _training(50, 670, 20, 96),
    _training(1000, 24, 7, 2),
    _training(256, 32, 120, 7),
)
_TWO_LAYERS = dataclasses.replace(
    _training(32, 256, 50),
    name="training bidirectional, 2 layers, N32 H256 T50",
    layers=2,
    directions=2,
)
_LENGTHS = dataclasses.replace(
    _training(64, 128, 100, quick=True),
    name="training lengths 1..100, N64 H128 T100",
    steps="1..T",
    peers=("ours", "ours-cudnn", "keras", "keras-jit", *_TRAINED),
)


def _masked() -> list[Row]:
    """Masks that sequence lengths cannot express, and sequence lengths in inference."""
    stock = ("ours", "keras", "keras-jit", "jax")
    names = {"left": "left padding of 0..99", "holes": "every third step missing"}
    found = [
        dataclasses.replace(_LENGTHS, name=f"training {name}, N64 H128 T100", steps=steps)
        for steps, name in names.items()
    ]
    found = [dataclasses.replace(row, peers=stock, quick=False) for row in found]
    inference = dataclasses.replace(
        _inference(64, 128, 100),
        name="inference lengths 1..100, N64 H128 T100",
        steps="1..T",
        peers=with_steps(
            (
                *("ours", "ours-eager", "session", "ours-cudnn", "keras", "keras-jit"),
                *_CROSS_FRAMEWORK,
            ),
            "1..T",
        ),
    )
    return [*found, inference]


def _of_users(make: Callable[..., Row]) -> list[Row]:
    """Sizes as people run them, in inference or training."""
    both, projected = make(32, 256, 200, 512), make(16, 1024, 200, 80)
    return [
        make(128, 256, 128, 64),
        make(64, 512, 80),
        make(32, 128, 365, 27),
        make(1, 40, 1000, 1),
        make(256, 40, 60),
        dataclasses.replace(
            both,
            name=both.name.replace(" ", " bidirectional, ", 1),
            directions=2,
            peers=tuple(peer for peer in both.peers if peer != "block-cell"),
        ),
        dataclasses.replace(
            projected,
            name=projected.name.replace(" ", " projection to 320, ", 1),
            projection=320,
            peers=tuple(peer for peer in projected.peers if peer in _PROJECTED),
        ),
    ]


def _gru() -> list[Row]:
    without = ("block-lstm-v2", "block-cell")
    lstm = [
        _inference(1, 128, 100),
        _inference(16, 512, 25),
        _training(32, 128, 100),
        _training(64, 256, 50),
    ]
    return [
        dataclasses.replace(
            row,
            name=row.name.replace(" ", " GRU ", 1),
            cell="gru",
            peers=tuple(peer for peer in row.peers if peer not in without),
        )
        for row in lstm
    ]


def _cells() -> list[Row]:
    return [
        Row(
            f"{op} N{batch} H{units}",
            *("other", task, batch, 1, units, units),
            peers=("ours-block-cell", "block-cell"),
            quick=(batch, units) == (4, 128),
        )
        for task, op in {"step": "LSTMBlockCell", "step gradient": "LSTMBlockCellGrad"}.items()
        for units in (128, 512)
        for batch in (1, 4, 16, 64)
    ]


def _against_ourselves() -> list[Row]:
    """Ours against ours: types, threads, calls and lengths."""
    found = [
        dataclasses.replace(
            _inference(batch, units, 25),
            name=f"bfloat16 N{batch} H{units} T25",
            group="other",
            dtype="bfloat16",
            peers=("ours", "ours-float32"),
            quick=batch == 16 and units == 512,
        )
        for batch, units in ((16, 512), (16, 1024), (1, 1024), (1, 2048))
    ]
    found += [
        dataclasses.replace(
            row, name=f"threads, {row.name}", group="other", peers=("ours", "ours-one-thread")
        )
        for row in (*_SIMPLE_TRAINING, _TWO_LAYERS, _LENGTHS)
    ]
    found += [
        dataclasses.replace(
            row, name=f"custom loop, {row.name}", group="other", peers=("ours", "ours-custom-loop")
        )
        for row in _SIMPLE_TRAINING[:2]
    ]
    lengths = {"1..T": "1..100", "quarter": "all 25", "one long": "one 100, others 10"}
    found += [
        Row(
            f"lengths {name}, 2 layers, N32 H256 T100",
            *("other", "inference", 32, 100, 256, 128),
            layers=2,
            steps=steps,
            peers=("ours-cudnn", "ours-all-steps"),
        )
        for steps, name in lengths.items()
    ]
    return [dataclasses.replace(r, quick=r.quick and r.dtype != "float32") for r in found]


def _in_keras() -> list[Row]:
    fit = Row(
        "fit N32 H128 T100",
        *("other", "fit", 32, 100, 128, 128),
        peers=("ours", "keras", "keras-jit"),
        quick=True,
    )
    memory = dataclasses.replace(
        _training(64, 1024, 25),
        name="memory of training N64 H1024 T25",
        group="other",
        measure="memory",
        peers=("ours", "keras", "torch"),
    )
    return [fit, memory]


ROWS: tuple[Row, ...] = (
    _inference(1, 128, 100, quick=True),
    _inference(1, 256, 50),
    _inference(4, 256, 50, quick=True),
    _inference(16, 256, 50),
    _inference(1, 512, 25),
    _inference(4, 512, 25),
    _inference(16, 512, 25, quick=True),
    _inference(1, 1024, 25),
    _inference(4, 1024, 25),
    _inference(16, 1024, 25),
    _inference(1, 2048, 25),
    _inference(4, 2048, 25),
    _inference(16, 2048, 25),
    _inference(1, 48, 300, 24),
    *_of_users(_inference),
    *_SIMPLE_TRAINING,
    *_TRAINING_OF_USERS,
    *_of_users(_training),
    _TWO_LAYERS,
    _LENGTHS,
    *_masked(),
    *_gru(),
    *_cells(),
    *_against_ourselves(),
    *_in_keras(),
)
