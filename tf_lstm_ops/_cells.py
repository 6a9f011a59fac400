"""The recurrent cells: their names and the order of their gates in each format.

A gate is a letter. An LSTM has i (input), f (forget), c (candidate) and o (output); a GRU z
(update), r (reset) and h (candidate); a plain RNN h. This module imports nothing of the package.
"""
# The orders of the kernels are in cc/core/gate_order.h.

from __future__ import annotations

import dataclasses

# Other orders of the gates of an LSTM. Those of cells of Keras, cuDNN and ONNX are below.
BLOCK = "icfo"  # LSTMBlockCell, BlockLSTM, Keras 1, MPSGraph with the forget gate last
BLOCK_V2 = "ifco"  # BlockLSTMV2
LINGVO = "cifo"
# The gates that have peepholes.
PEEPHOLES = "ifo"
ONNX_PEEPHOLES = "iof"
_CANDIDATES = "ch"


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
    """A recurrent cell.

    Attributes:
      op: the op of a Keras layer with this cell, without its namespace.
      number: of the cell in the file of a session.
      keras: the class of the layer in ``keras.layers`` and in `inference.layers`.
      common: the class in ``torch.nn``, and the operator of ONNX.
      words: the cell in messages.
      gates: their order in Keras and in `weights`.
      output_major: their order in cuDNN and PyTorch, whose matrices have a row for each output.
      onnx: their order in ONNX.
      modes: the values of cuDNN's rnn_mode.
      states: the letters of the states.
      activations: the arguments of the layer that are functions: of the gates, of the candidate
        and of the cell state. The order is that of ONNX.
      reset_after: of a GRU; None for other cells.
    """

    op: str
    number: int
    keras: str
    common: str
    words: str
    gates: str
    output_major: str
    onnx: str
    modes: tuple[str, ...]
    states: str = "h"
    activations: tuple[str, ...] = ("recurrent_activation", "activation")
    reset_after: bool | None = None

    @property
    def weights(self) -> str:
        """The class in `tf_lstm_ops.weights`."""
        return f"{self.common}Weights"

    @property
    def keras_1(self) -> str:
        """The order of the gates in files of Keras 1."""
        return BLOCK if self.common == "LSTM" else self.gates

    @property
    def recurrent(self) -> tuple[bool, ...]:
        """Of each gate, in the order of Keras, whether recurrent_activation is its function."""
        return tuple(gate not in _CANDIDATES for gate in self.gates)


LSTM = Cell(
    *("KerasLSTM", 1, "LSTM", "LSTM", "an LSTM"),
    *("ifco", "ifco", "iofc", ("lstm",)),
    states="hc",
    activations=("recurrent_activation", "activation", "activation"),
)
GRU = Cell(
    *("KerasGRU", 2, "GRU", "GRU", "a GRU"),
    *("zrh", "rzh", "zrh", ("gru",)),
    reset_after=True,
)
RESET_BEFORE_GRU = dataclasses.replace(GRU, op="KerasResetBeforeGRU", number=3, reset_after=False)
LAYER_NORM_LSTM = dataclasses.replace(LSTM, op="KerasLayerNormLSTM", number=4)
LAYER_NORM_GRU = dataclasses.replace(GRU, op="KerasLayerNormGRU", number=5)
SIMPLE_RNN = Cell(
    *("KerasSimpleRNN", 6, "SimpleRNN", "RNN", "a plain RNN"),
    *("h", "h", "h", ("rnn_tanh", "rnn_relu")),
    activations=("activation",),
)

CELLS = (LSTM, GRU, RESET_BEFORE_GRU, LAYER_NORM_LSTM, LAYER_NORM_GRU, SIMPLE_RNN)
# One for each class of layers and of weights.
FAMILIES = (LSTM, GRU, SIMPLE_RNN)
BY_OP = {cell.op: cell for cell in CELLS}
BY_NUMBER = {cell.number: cell for cell in CELLS}
BY_COMMON = {cell.common: cell for cell in FAMILIES}
BY_GATES = {len(cell.gates): cell for cell in FAMILIES}
BY_MODE = {mode: cell for cell in FAMILIES for mode in cell.modes}
