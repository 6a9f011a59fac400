"""The weights of ONNX's LSTM, GRU and RNN nodes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tf_lstm_ops import _cells
from tf_lstm_ops._arrays import Array, as_numbers, reordered, require_shape
from tf_lstm_ops._refusal import require
from tf_lstm_ops.weights import onnx_file
from tf_lstm_ops.weights.canonical import Weights
from tf_lstm_ops.weights.output_major import from_output_major, to_output_major

if TYPE_CHECKING:
    import onnx
    from typing_extensions import Self

    from tf_lstm_ops.onnx_graph.recurrent import RecurrentNode


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


def _from_peephole(peephole: Array) -> Array:
    """From [3H] in ONNX' order to [3, H]."""
    return reordered(peephole, _cells.ONNX_PEEPHOLES, _cells.PEEPHOLES).reshape(3, -1)


class OnnxFormat(Weights):
    """The base class of the formats of the nodes LSTM and GRU; that of the node RNN."""

    @classmethod
    def _from_onnx(
        cls,
        W: Any,
        R: ArrayLike | None,
        B: ArrayLike | None,
        P: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        recurrent, gates = as_numbers("R", R), len(cls._CELL.gates)
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
                cls._CELL.onnx,
                cls._CELL.gates,
                None if peephole is None else _from_peephole(peephole[d]),
            )
            for d in range(directions)
        ]
        return cls(tuple(cells), directions, **options)

    @classmethod
    def _from_onnx_file(cls, source: Any, node: str | None, arrays: dict[str, Any]) -> Self:
        """From a file or model; arrays are the other arguments, which must be None."""
        given = [name for name, array in arrays.items() if array is not None]
        require(
            not given,
            f"W is a file or a model, which has {', '.join(given)}; leave this argument out, or "
            "pass W as an array",
        )
        layers = onnx_file.read(source, cls.__name__, node)
        onnx_file.warn(layers)
        options = cls._options_from_onnx(layers)
        found = [cls._from_onnx(x.W, x.R, x.B, x.P, **options) for x in layers]
        cells = tuple(cell for weights in found for cell in weights.cells)
        return cls(cells, found[0].directions, **options)

    @classmethod
    def _options_from_onnx(cls, layers: list[RecurrentNode]) -> dict[str, Any]:
        """The attributes of the weights beside the arrays."""
        return {}

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
        cells = [to_output_major(cell, self._CELL.gates, self._CELL.onnx) for cell in self.cells]
        peepholes = [
            reordered(cell.peephole.ravel(), _cells.PEEPHOLES, _cells.ONNX_PEEPHOLES)
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
        cls,
        W: ArrayLike | os.PathLike[str] | onnx.ModelProto,
        R: ArrayLike | None = None,
        B: ArrayLike | None = None,
        P: ArrayLike | None = None,
        *,
        node: str | None = None,
    ) -> Self:
        """From an ONNX file, or from the inputs of a node LSTM, of any `direction`.

        `from_onnx(path)` reads a node of the file, also in a sub-graph such as a branch of If. A
        node is one layer. If all such nodes of a file are a stack, they are the layers: each one
        reads the output of the one before, with no other than Squeeze, Transpose, Reshape, Identity
        and Dropout between them, and has the same size, direction and options. Nodes
        DynamicQuantizeLSTM of ONNX Runtime are dequantized.

        `from_onnx(W, R, B, P)` takes the arrays of a node.

        The weights do not depend on whether `direction` is "forward" or "reverse", and on `layout`.
        The target layer has this setting, such as Keras' go_backwards. `activations` other than the
        default and `clip` are not part of the weights; for a file a UserWarning names them.

        Args:
          W: the path of an ONNX file, or an `onnx.ModelProto`; or [D, 4H, I], gates i, o, f, c.
          R: [D, 4H, H], gates i, o, f, c; None for a file.
          B: [D, 8H], or None for zero, and for a file.
          P: [D, 3H], peepholes i, o, f; None without peepholes, and for a file.
          node: of a file with several nodes, the name of the one to read, or of an output of it.
            The error that comes without it lists the names. None for arrays.

        Returns:
          The weights of one layer, or of the layers of a stack.

        Raises:
          ImportError: the package onnx is not installed, and W is a file.
          OSError: the file cannot be read, or one beside it that has its tensors.
          ValueError: the shapes are inconsistent; or the file is damaged; it has no such node, or
            several, and `node` names none; the weights are computed at run time; or input_forget
            is 1.
        """
        if onnx_file.is_file(W):
            return cls._from_onnx_file(W, node, {"R": R, "B": B, "P": P})
        onnx_file.require_no_node(node)
        return cls._from_onnx(W, R, B, P)


class GRUOnnxFormat(OnnxFormat):
    """Reads and writes the inputs of a node GRU."""

    @classmethod
    def from_onnx(
        cls,
        W: ArrayLike | os.PathLike[str] | onnx.ModelProto,
        R: ArrayLike | None = None,
        B: ArrayLike | None = None,
        *,
        linear_before_reset: int | None = None,
        node: str | None = None,
    ) -> Self:
        """From an ONNX file, or from the inputs of a node GRU; see LSTMWeights.from_onnx.

        Args:
          W: the path of an ONNX file, or an `onnx.ModelProto`; or [D, 3H, I], gates z, r, h.
          R: [D, 3H, H], gates z, r, h; None for a file.
          B: [D, 6H], or None for zero, and for a file.
          linear_before_reset: the node's attribute; None: that of the file's node, and 0 for
            arrays. 0 is Keras' reset_after=False.
          node: as of LSTMWeights.from_onnx.

        Returns:
          The weights of one layer, or of the layers of a stack.

        Raises:
          ImportError, OSError: as of LSTMWeights.from_onnx.
          ValueError: as of LSTMWeights.from_onnx; or linear_before_reset is not that of the file.
        """
        if not onnx_file.is_file(W):
            onnx_file.require_no_node(node)
            return cls._from_onnx(W, R, B, reset_after=bool(linear_before_reset))
        weights = cls._from_onnx_file(W, node, {"R": R, "B": B})
        said: bool = weights.reset_after  # type: ignore[attr-defined]
        require(
            linear_before_reset is None or bool(linear_before_reset) == said,
            f"linear_before_reset must be {int(said)}, that of the node, but is "
            f"{linear_before_reset}",
        )
        return weights

    @classmethod
    def _options_from_onnx(cls, layers: list[RecurrentNode]) -> dict[str, Any]:
        return {"reset_after": layers[0].linear_before_reset}
