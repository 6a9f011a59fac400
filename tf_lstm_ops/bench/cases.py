"""The rows of the tables. For each row every peer gets the same inputs and weights.

B batch, T time, I input size, H cell size, D directions.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tf_lstm_ops.weights import CellWeights, GRUWeights, LSTMWeights
from tf_lstm_ops.weights.arrays import Array

GATES = {"lstm": 4, "gru": 3}
WEIGHTS: dict[str, type[LSTMWeights] | type[GRUWeights]] = {"lstm": LSTMWeights, "gru": GRUWeights}


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the tables.

    Attributes:
      name: unique.
      group: its table: "inference", "training" or "other".
      task: what a call computes. "inference": the output of a sequence; "training": also the
        gradients of all weights and of x; "step" and "step gradient": LSTMBlockCell and
        LSTMBlockCellGrad; "fit": a training step in Keras' model.fit.
      batch, time, units, inputs: the sizes B, T, H and I.
      peers: their names in peers.PEERS. The first one is ours; the others are compared with it.
      cell: "lstm" or "gru".
      layers, directions: of the multi-layer RNN.
      steps: which steps of [B, T] are valid; see `valid_steps`.
      dtype: the type of all tensors.
      measure: "time", or "memory": the growth of a process' peak memory.
      quick: whether it belongs to the run without --full.
    """

    name: str
    group: str
    task: str
    batch: int
    time: int
    units: int
    inputs: int
    peers: tuple[str, ...]
    cell: str = "lstm"
    layers: int = 1
    directions: int = 1
    steps: str = "all"
    dtype: str = "float32"
    measure: str = "time"
    quick: bool = False

    @property
    def unit(self) -> str:
        """The unit of the measurements."""
        return "MB" if self.measure == "memory" else "ms"


class Problem(NamedTuple):
    """The data of a row, the same in every process.

    Attributes:
      x: float32 [B, T, I].
      weights: LSTMWeights or GRUWeights.
      output_grad: float32 [B, T, D*H], the gradient of the output, zero at steps that are not
        valid.
      valid: bool [B, T], the valid steps; None if all are valid.
    """

    x: npt.NDArray[np.float32]
    weights: LSTMWeights | GRUWeights
    output_grad: npt.NDArray[np.float32]
    valid: npt.NDArray[np.bool_] | None

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """[B], the number of valid steps of each sequence, for rows where these come first."""
        full = np.ones(self.x.shape[:2], bool)
        return (full if self.valid is None else self.valid).sum(axis=1).astype(np.int32)


def make_problem(row: Row) -> Problem:
    """Draws the data of a row.

    Args:
      row: the row.

    Returns:
      The data, the same in every call.
    """
    rng = np.random.default_rng(0)
    bound = row.units**-0.5  # as in PyTorch, so that the gates do not saturate
    columns = GATES[row.cell] * row.units

    def draw(*shape: int) -> npt.NDArray[np.float32]:
        return rng.uniform(-bound, bound, shape).astype(np.float32)

    def cell(inputs: int) -> CellWeights:
        return CellWeights(
            draw(inputs, columns), draw(row.units, columns), draw(columns), draw(columns)
        )

    width = row.directions * row.units
    sizes = [row.inputs] + [width] * (row.layers - 1)
    weights = WEIGHTS[row.cell](
        tuple(cell(size) for size in sizes for _ in range(row.directions)), row.directions
    )
    valid = valid_steps(row)
    x = rng.standard_normal((row.batch, row.time, row.inputs), np.float32)
    output_grad = rng.standard_normal((row.batch, row.time, width), np.float32)
    return Problem(
        x, weights, output_grad * valid[..., None], None if row.steps == "all" else valid
    )


def valid_steps(row: Row) -> npt.NDArray[np.bool_]:
    """The valid steps of a row.

    Args:
      row: the row. Its `steps` is one of: "all"; "1..T", lengths from 1 to T in even steps;
        "quarter", all lengths T/4; "one long", one sequence of length T and the others of T/10;
        "left", the lengths of "1..T" after left padding; "holes", every third step missing, a
        different third in each sequence.

    Returns:
      bool [B, T].
    """
    batch, time = row.batch, row.time
    step, number = np.arange(time), np.arange(batch)[:, None]
    lengths = np.linspace(1, time, batch).round().astype(int)[:, None]
    masks = {
        "all": np.ones((batch, time), bool),
        "1..T": step < lengths,
        "quarter": np.broadcast_to(step < time // 4, (batch, time)),
        "one long": step < np.where(number, time // 10, time),
        "left": step >= time - lengths,
        "holes": (step + number) % 3 != 0,
    }
    return masks[row.steps]


def compared_output(output: Array, problem: Problem) -> dict[str, Array]:
    """The output in the form in which the results of peers are compared.

    Args:
      output: [B, T, D*H].
      problem: the data of the row.

    Returns:
      The output by name, zero at steps that are not valid.
    """
    if problem.valid is not None:
        output = np.where(problem.valid[..., None], output, 0)
    return {"output": output}


def compared_grads(x: Array, weights: LSTMWeights | GRUWeights) -> dict[str, Array]:
    """The gradients in the form in which the results of peers are compared.

    Args:
      x: the gradient of x, [B, T, I].
      weights: the gradients of the weights, in the arrays of the weights. The two biases of an LSTM
        have the same gradient. The one of recurrent_bias is compared, because every format has it.

    Returns:
      The gradients by name.
    """
    names = ["kernel", "recurrent_kernel", "recurrent_bias"]
    if isinstance(weights, GRUWeights):
        names.append("bias")
    found = {
        f"gradient of {n} {k}": getattr(c, n) for k, c in enumerate(weights.layers) for n in names
    }
    return {"gradient of x": x, **found}


_CROSS_FRAMEWORK = ("torch", "onnxruntime", "openvino", "jax")
_SEQUENCE = ("ours", "ours-cudnn", "keras", "keras-jit", "block-lstm-v2", "block-cell")
_TRAINED = ("torch", "jax")  # the other frameworks that support training


def _inference(batch: int, units: int, time: int, quick: bool = False) -> Row:
    return Row(
        f"inference N{batch} H{units} T{time}",
        *("inference", "inference", batch, time, units, units),
        peers=("ours", "ours-eager", *_SEQUENCE[1:], *_CROSS_FRAMEWORK),
        quick=quick,
    )


def _training(batch: int, units: int, time: int, quick: bool = False) -> Row:
    return Row(
        f"training N{batch} H{units} T{time}",
        *("training", "training", batch, time, units, units),
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
        peers=("ours", "ours-eager", "ours-cudnn", "keras", "keras-jit", *_CROSS_FRAMEWORK),
    )
    return [*found, inference]


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
    """Ours against ours: bfloat16 and float32, two threads and one, lengths and all steps."""
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
    *_SIMPLE_TRAINING,
    _TWO_LAYERS,
    _LENGTHS,
    *_masked(),
    *_gru(),
    *_cells(),
    *_against_ourselves(),
    *_in_keras(),
)
