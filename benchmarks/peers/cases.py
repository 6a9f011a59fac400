"""What a row is, and its data. For each row every peer gets the same inputs and weights.

B batch, T time, I input size, H cell size, P size of h: H without a projection, D directions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tf_lstm_ops._arrays import Array
from tf_lstm_ops.weights import CellWeights, GRUWeights, LSTMWeights

_NO_LENGTHS = ("tract",)  # the peers that refuse lengths
GATES = {"lstm": 4, "gru": 3}
WEIGHTS: dict[str, type[LSTMWeights] | type[GRUWeights]] = {"lstm": LSTMWeights, "gru": GRUWeights}


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the tables.

    Attributes:
      name: unique.
      group: its table: "inference", "models", "int8", "training" or "other".
      task: what a call computes. "inference": the output of a sequence; "training": also the
        gradients of all weights and of x; "step" and "step gradient": LSTMBlockCell and
        LSTMBlockCellGrad; "fit": a training step in Keras' model.fit; "model": the output of a
        whole model.
      batch, time, units, inputs: the sizes B, T, H and I.
      peers: their names in peers.PEERS. The first one is ours; the others are compared with it.
      cell: "lstm" or "gru".
      layers, directions: of the multi-layer RNN.
      projection: the size P to which an LSTM projects h; 0 without a projection.
      steps: which steps of [B, T] are valid; see `valid_steps`.
      dtype: the type of all tensors.
      measure: "time", or "memory": the growth of a process' peak memory.
      quick: whether it belongs to the run without --full.
      model: the name of a model in models.MODELS; empty in other tasks.
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
    projection: int = 0
    steps: str = "all"
    dtype: str = "float32"
    measure: str = "time"
    quick: bool = False
    model: str = ""

    @property
    def hidden(self) -> int:
        """The size P of h."""
        return self.projection or self.units

    @property
    def width(self) -> int:
        """The size of a layer's output, D*P."""
        return self.directions * self.hidden

    @property
    def unit(self) -> str:
        """The unit of the measurements."""
        return "MB" if self.measure == "memory" else "ms"


def with_steps(peers: Iterable[str], steps: str) -> tuple[str, ...]:
    """Selects the peers that know which steps are valid.

    Args:
      peers: their names.
      steps: that of the row.

    Returns:
      Their names, without those that have no lengths unless all steps are valid.
    """
    return tuple(name for name in peers if steps == "all" or name not in _NO_LENGTHS)


class Problem(NamedTuple):
    """The data of a row, the same in every process.

    Attributes:
      x: float32 [B, T, I].
      weights: LSTMWeights or GRUWeights.
      output_grad: float32 [B, T, D*P], the gradient of the output, zero at steps that are not
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
        kernels = draw(inputs, columns), draw(row.hidden, columns)
        projection = draw(row.units, row.projection) if row.projection else None
        return CellWeights(*kernels, draw(columns), draw(columns), projection=projection)

    sizes = [row.inputs] + [row.width] * (row.layers - 1)
    weights = WEIGHTS[row.cell](
        tuple(cell(size) for size in sizes for _ in range(row.directions)), row.directions
    )
    valid = valid_steps(row)
    x = rng.standard_normal((row.batch, row.time, row.inputs), np.float32)
    output_grad = rng.standard_normal((row.batch, row.time, row.width), np.float32)
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
      output: [B, T, D*P].
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
    if weights.cells[0].projection is not None:
        names.append("projection")
    found = {
        f"gradient of {n} {k}": getattr(c, n) for k, c in enumerate(weights.cells) for n in names
    }
    return {"gradient of x": x, **found}
