"""The weights of ONNX's LSTM, GRU and RNN nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tf_lstm_ops.weights.arrays import Array, as_numbers, reordered, require_shape
from tf_lstm_ops.weights.canonical import Weights
from tf_lstm_ops.weights.output_major import from_output_major, to_output_major

if TYPE_CHECKING:
    from typing_extensions import Self


class Onnx(NamedTuple):
    """The weights of an ONNX node, named as its inputs. `to_onnx` returns it.

    There are G gates: 4 in an LSTM, 3 in a GRU, 1 in an RNN.

    >>> import keras
    >>> from tf_lstm_ops.weights import GRUWeights
    >>> layer = keras.layers.GRU(4)
    >>> layer.build((None, None, 8))
    >>> node = GRUWeights.from_keras(layer).to_onnx()
    >>> node.W.shape, node.R.shape, node.B.shape
    ((1, 12, 8), (1, 12, 4), (1, 24))

    Attributes:
      W: [D, G*H, I].
      R: [D, G*H, H].
      B: [D, 2*G*H], the bias of the input side, then that of the recurrent side.
      P: [D, 3H], peepholes i, o, f; None without peepholes.
    """

    W: Array
    R: Array
    B: Array
    P: Array | None = None


class OnnxFormat(Weights):
    """The base class of the formats of the nodes LSTM and GRU; that of the node RNN."""

    @classmethod
    def _from_onnx(
        cls, W: ArrayLike, R: ArrayLike, B: ArrayLike | None, P: ArrayLike | None, **options: Any
    ) -> Self:
        recurrent, gates = as_numbers("R", R), len(cls._GATES)
        require_shape("R", recurrent, "D", f"{gates}H".removeprefix("1"), "H")
        directions, _, size = recurrent.shape
        rows = gates * size
        require_shape("R", recurrent, directions, rows, size)
        kernel = as_numbers("W", W)
        bias = np.zeros((directions, 2 * rows), recurrent.dtype)
        bias = bias if B is None else as_numbers("B", B)
        peephole = None if P is None else as_numbers("P", P)
        require_shape("W", kernel, directions, rows, "I")
        require_shape("B", bias, directions, 2 * rows)
        if peephole is not None:
            require_shape("P", peephole, directions, 3 * size)
        cells = [
            from_output_major(
                {
                    "input": kernel[d],
                    "recurrent": recurrent[d],
                    "input_bias": bias[d, :rows],
                    "recurrent_bias": bias[d, rows:],
                },
                cls._ONNX_GATES,
                cls._GATES,
                None if peephole is None else reordered(peephole[d], "iof", "ifo").reshape(3, size),
            )
            for d in range(directions)
        ]
        return cls(tuple(cells), directions, **options)

    def to_onnx(self) -> Onnx:
        """The inputs of a node LSTM, GRU or RNN.

        A GRU needs linear_before_reset=int(reset_after), an RNN activations of `activation`.

        With two directions the node's `direction` is "bidirectional". With one direction it is
        "forward" or "reverse"; choose the direction in which the layer runs.

        Returns:
          The arrays W, R, B and P.

        Raises:
          ValueError: there is more than one layer, or a projection.
        """
        self._require_one_layer("an ONNX node")
        cells = [to_output_major(cell, self._GATES, self._ONNX_GATES) for cell in self.cells]
        peepholes = [
            reordered(cell.peephole.ravel(), "ifo", "iof")
            for cell in self.cells
            if cell.peephole is not None
        ]
        return Onnx(
            W=np.stack([cell["input"] for cell in cells]),
            R=np.stack([cell["recurrent"] for cell in cells]),
            B=np.stack([np.append(cell["input_bias"], cell["recurrent_bias"]) for cell in cells]),
            P=np.stack(peepholes) if peepholes else None,
        )


class LSTMOnnxFormat(OnnxFormat):
    """Reads and writes the inputs of a node LSTM."""

    @classmethod
    def from_onnx(
        cls, W: ArrayLike, R: ArrayLike, B: ArrayLike | None = None, P: ArrayLike | None = None
    ) -> Self:
        """From the inputs of an ONNX node LSTM, of any `direction`.

        A node is one layer. The weights do not depend on whether `direction` is "forward" or
        "reverse". The target layer has this setting, such as Keras' go_backwards.

        Args:
          W, R: [D, 4H, I] and [D, 4H, H], gates i, o, f, c.
          B: [D, 8H], or None for zero.
          P: [D, 3H], peepholes i, o, f; None without peepholes.

        Returns:
          The weights of one layer.

        Raises:
          ValueError: the shapes are inconsistent.
        """
        return cls._from_onnx(W, R, B, P)


class GRUOnnxFormat(OnnxFormat):
    """Reads and writes the inputs of a node GRU."""

    @classmethod
    def from_onnx(
        cls, W: ArrayLike, R: ArrayLike, B: ArrayLike | None = None, *, linear_before_reset: int = 0
    ) -> Self:
        """From the inputs of an ONNX node GRU, of any `direction`; see LSTMWeights.from_onnx.

        Args:
          W, R: [D, 3H, I] and [D, 3H, H], gates z, r, h.
          B: [D, 6H], or None for zero.
          linear_before_reset: the node's attribute, with its default. 0 is Keras'
            reset_after=False.

        Returns:
          The weights of one layer.

        Raises:
          ValueError: the shapes are inconsistent.
        """
        return cls._from_onnx(W, R, B, None, reset_after=bool(linear_before_reset))
