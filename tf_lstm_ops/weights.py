"""Weights of LSTM and GRU models, carried from one form to another.

`LSTMWeights` and `GRUWeights` are the canonical form; class methods ``from_*`` read other forms,
methods ``to_*`` write them. All are NumPy arrays of the given dtype, copied. What one form can say
and another cannot raises ValueError; docs/weights.md has the rules and examples.

Notation: I input size, H cell size, P hidden size (that of h: H, or that of the projection), D
directions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tf_lstm_ops.cudnn_layout import Model

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["BlockCell", "CellWeights", "GRUWeights", "LSTMWeights"]

Array = npt.NDArray[Any]


def _array(value: Any) -> Array:
    """A copy of an array, tensor or variable of any framework."""
    if hasattr(value, "detach"):  # PyTorch: out of the graph, off the device
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":  # which it cannot give to NumPy
            import ml_dtypes

            return value.float().numpy().astype(ml_dtypes.bfloat16)
    return np.array(value.numpy() if hasattr(value, "numpy") else value)


def _reordered(array: Array, source: str, target: str) -> Array:
    """The blocks of the last axis, one a gate, moved from one order of the gates to another."""
    blocks = dict(zip(source, np.split(array, len(source), axis=-1), strict=True))
    return np.concatenate([blocks[gate] for gate in target], axis=-1)


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise ValueError(message)


@dataclasses.dataclass(frozen=True, eq=False)
class CellWeights:
    """One direction of one layer. G gates: 4 of an LSTM, 3 of a GRU.

    Attributes:
      kernel: [in, G*H], where in is I in the first layer and D*P in the others.
      recurrent_kernel: [P, G*H].
      bias: [G*H], of the input's side.
      recurrent_bias: [G*H], of the side of h.
      peephole: [3, H], rows i, f, o; LSTM only, None without.
      projection: [H, P]; LSTM only, None without.
    """

    kernel: Array
    recurrent_kernel: Array
    bias: Array
    recurrent_bias: Array
    peephole: Array | None = None
    projection: Array | None = None

    def arrays(self) -> dict[str, Array]:
        """Those that are there, by name."""
        return {k: v for k, v in vars(self).items() if v is not None}

    def _check(self, gates: int, inputs: int, hidden: int, cell: int) -> None:
        hidden_or_cell = cell if self.projection is None else hidden
        expected = {
            "kernel": (inputs, gates * cell),
            "recurrent_kernel": (hidden_or_cell, gates * cell),
            "bias": (gates * cell,),
            "recurrent_bias": (gates * cell,),
            "peephole": (3, cell),
            "projection": (cell, hidden),
        }
        dtype = self.kernel.dtype
        for name, array in self.arrays().items():
            shape = expected[name]
            _require(array.shape == shape, f"{name} must be {shape} but is {array.shape}")
            _require(array.dtype == dtype, f"{name} must be {dtype} but is {array.dtype}")
        if self.projection is not None:
            _require(hidden < cell, f"a projection must make h smaller than {cell}, not {hidden}")


def _keras_cells(source: Any) -> list[list[Array]]:
    """The arrays of each direction of a Keras layer, or of its `get_weights()`."""
    if hasattr(source, "forward_layer"):
        layers = [source.forward_layer, source.backward_layer]
        return [cell for layer in layers for cell in _keras_cells(layer)]
    if hasattr(source, "cell"):
        _require(source.weights, f"{source.name} has no weights yet; build it first")
        _require(
            getattr(source.cell, "reset_after", True),
            f"{source.name} has reset_after=False, another equation; make it with reset_after=True",
        )
        return [[_array(w) for w in source.get_weights()]]
    _require(
        isinstance(source, list | tuple) and len(source) >= 2,
        f"{source!r} is neither a recurrent layer nor the list of its weights",
    )
    arrays = [_array(a) for a in source]
    # One direction of 4 arrays is kernel, recurrent_kernel, bias [4H] and peephole_kernel.
    two = len(arrays) > 4 or (len(arrays) == 4 and arrays[2].ndim == 2)
    half = len(arrays) // 2
    return [arrays[:half], arrays[half:]] if two else [arrays]


@dataclasses.dataclass(frozen=True, eq=False)
class _Weights:
    """What LSTMWeights and GRUWeights share."""

    layers: tuple[CellWeights, ...]
    directions: int = 1

    _GATES: ClassVar[str]  # the order here and in Keras
    _LEFT_GATES: ClassVar[str]  # the order in cuDNN and PyTorch
    _MODE: ClassVar[str]  # cuDNN's name

    def __post_init__(self) -> None:
        cells, directions = len(self.layers), self.directions
        _require(directions in (1, 2), f"directions must be 1 or 2 but is {directions}")
        _require(
            cells and cells % directions == 0,
            f"layers must hold a multiple of {directions} cells but holds {cells}",
        )
        _require(self.cell_size > 0, "the cell size must be positive but is 0")
        given = self.layers[0].arrays().keys()
        for k, cell in enumerate(self.layers):
            _require(cell.arrays().keys() == given, f"layers[{k}] has not the arrays of layers[0]")
            inputs = self.input_size if k < directions else directions * self.hidden_size
            try:
                cell._check(len(self._GATES), inputs, self.hidden_size, self.cell_size)
            except ValueError as error:
                raise ValueError(f"layers[{k}]: {error}") from None

    @property
    def input_size(self) -> int:
        return self.layers[0].kernel.shape[0]

    @property
    def cell_size(self) -> int:
        return self.layers[0].bias.size // len(self._GATES)

    @property
    def hidden_size(self) -> int:
        """The size of h: that of the projection, if there is one."""
        return self.layers[0].recurrent_kernel.shape[0]

    @property
    def layer_count(self) -> int:
        return len(self.layers) // self.directions

    # --- Keras -------------------------------------------------------------------------------

    @classmethod
    def from_keras(cls, source: Any) -> Self:
        """From a Keras layer.

        Args:
          source: a recurrent layer, a Bidirectional around one, what their `get_weights()` returns
            (arrays, tensors or variables), or a list of any of these: layers one upon another.

        Raises:
          ValueError: the weights have other shapes than this kind of layer, one does not fit upon
            the other, a layer is not built yet, or it is a GRU with reset_after=False.
        """
        nested = isinstance(source, list | tuple) and source
        is_stack = nested and (isinstance(source[0], list | tuple) or hasattr(source[0], "weights"))
        stack = [_keras_cells(layer) for layer in (source if is_stack else [source])]
        directions = {len(cells) for cells in stack}
        _require(len(directions) == 1, "some of the layers are bidirectional and some are not")
        cells = tuple(cls._cell_from_keras(arrays) for layer in stack for arrays in layer)
        return cls(cells, directions.pop())

    def to_keras(self, *, use_bias: bool = True) -> list[Any]:
        """The arrays for `set_weights` of a Keras layer, or of a Bidirectional around one.

        Args:
          use_bias: False for a layer made with use_bias=False.

        Returns:
          List of arrays; for several layers a list of such lists.

        Raises:
          ValueError: there is a projection, or use_bias is False and a bias is not zero.
        """
        self._require_zero_biases(use_bias)
        _require(
            self.layers[0].projection is None, "Keras' layers have no projection; use to_cudnn"
        )
        layers: list[list[Array]] = [[] for _ in range(self.layer_count)]
        for k, cell in enumerate(self.layers):
            layers[k // self.directions] += map(np.array, self._cell_to_keras(cell, use_bias))
        return layers[0] if len(layers) == 1 else layers

    @classmethod
    def _cell_from_keras(cls, arrays: list[Array]) -> CellWeights:
        raise NotImplementedError

    @staticmethod
    def _cell_to_keras(cell: CellWeights, use_bias: bool) -> list[Array]:
        raise NotImplementedError

    # --- matrices that multiply from the left: cuDNN and PyTorch -----------------------------

    def _left(self, cell: CellWeights) -> dict[str, Array]:
        """The arrays of a cell by the kinds of cudnn_layout.Region."""
        _require(cell.peephole is None, "cuDNN and PyTorch have no peepholes; use to_keras")

        def left(array: Array) -> Array:
            return np.ascontiguousarray(_reordered(array, self._GATES, self._LEFT_GATES).T)

        found = {
            "input": left(cell.kernel),
            "recurrent": left(cell.recurrent_kernel),
            "input_bias": left(cell.bias),
            "recurrent_bias": left(cell.recurrent_bias),
        }
        if cell.projection is not None:
            found["projection"] = np.array(cell.projection.T, order="C")
        return found

    @classmethod
    def _from_left(cls, arrays: Mapping[str, Array]) -> CellWeights:
        def right(array: Array) -> Array:
            _require(
                array.shape[0] % len(cls._GATES) == 0,
                f"{array.shape[0]} rows are not {len(cls._GATES)} gates",
            )
            return _reordered(array.T, cls._LEFT_GATES, cls._GATES)

        projection = arrays.get("projection")
        return CellWeights(
            kernel=right(arrays["input"]),
            recurrent_kernel=right(arrays["recurrent"]),
            bias=right(arrays["input_bias"]),
            recurrent_bias=right(arrays["recurrent_bias"]),
            projection=None if projection is None else np.array(projection.T, order="C"),
        )

    def _require_zero_biases(self, bias: bool) -> None:
        if not bias and any(c.bias.any() or c.recurrent_bias.any() for c in self.layers):
            raise ValueError("there are biases other than zero; make the target with biases")

    @classmethod
    def from_cudnn(
        cls,
        params: Any,
        *,
        input_size: int,
        cell_size: int,
        layers: int = 1,
        directions: int = 1,
        num_proj: int = 0,
        input_mode: str = "linear_input",
    ) -> Self:
        """From the `params` of the CudnnRNN ops.

        Args:
          params: rank 1.
          cell_size: num_units of the ops.
          num_proj, input_mode: as the ops take them. A first layer that skips its input gets the
            kernel that does the same: the identity for each gate.

        Raises:
          ValueError: params has not the size of such a model, or an argument is out of range.
        """
        model = Model(cls._MODE, input_size, cell_size, layers, directions, num_proj, input_mode)
        buffer, size = _array(params), model.size()
        _require(buffer.shape == (size,), f"params must be ({size},) but is {buffer.shape}")
        skipped = {"input": _identity(model).astype(buffer.dtype)} if model.skip_input else {}
        cells = [dict(skipped) for _ in range(model.pseudo_layers)]
        start = 0
        for region in model.regions():
            part = buffer[start : start + region.size]
            cells[region.pseudo_layer][region.kind] = part.reshape(region.matrix_shape)
            start += region.size
        return cls(tuple(map(cls._from_left, cells)), directions)

    def to_cudnn(self, *, input_mode: str = "linear_input") -> Array:
        """The `params` of the CudnnRNN ops.

        Their num_proj is `hidden_size` where there is a projection, and else 0.

        Raises:
          ValueError: there are peepholes; or the first layer shall skip its input and has a kernel
            other than the identity for each gate.
        """
        num_proj = 0 if self.layers[0].projection is None else self.hidden_size
        sizes = (self.input_size, self.cell_size, self.layer_count, self.directions, num_proj)
        model = Model(self._MODE, *sizes, input_mode)
        cells = [self._left(cell) for cell in self.layers]
        if model.skip_input:
            identity = _identity(model)
            _require(
                all(np.array_equal(c["input"], identity) for c in cells[: self.directions]),
                "skip_input has no kernel in the first layer, and this one is not the identity; "
                "use input_mode='linear_input'",
            )
        return np.concatenate([cells[r.pseudo_layer][r.kind].ravel() for r in model.regions()])

    @classmethod
    def from_torch(cls, state_dict: Mapping[str, Any]) -> Self:
        """From the state dict of `torch.nn.LSTM` or `torch.nn.GRU`.

        Args:
          state_dict: `module.state_dict()` of that module itself; tensors or arrays. Without
            biases (bias=False) they are zero here.

        Raises:
          ValueError: a key is missing or unknown, or shapes are not those of this kind of module.
        """
        directions = 2 if "weight_ih_l0_reverse" in state_dict else 1
        _require(
            "weight_ih_l0" in state_dict,
            "state_dict has no weight_ih_l0; give that of the nn.LSTM or nn.GRU module itself",
        )
        cells: list[CellWeights] = []
        left = dict(state_dict)
        while f"weight_ih_l{len(cells) // directions}" in state_dict:
            names = _torch_names(len(cells), directions)
            found = {k: _array(left.pop(n)) for k, n in names.items() if n in left}
            _require(
                {"input", "recurrent"} <= found.keys(), f"state_dict has no {names['recurrent']}"
            )
            none = np.zeros(found["input"].shape[0], found["input"].dtype)
            cells.append(cls._from_left({"input_bias": none, "recurrent_bias": none, **found}))
        _require(not left, f"state_dict has {', '.join(left)}, which belongs to no layer")
        return cls(tuple(cells), directions)

    def to_torch(self, *, bias: bool = True) -> dict[str, Array]:
        """The state dict of `torch.nn.LSTM` or `torch.nn.GRU`, of arrays (`torch.from_numpy`).

        Args:
          bias: False for a module made with bias=False.

        Raises:
          ValueError: there are peepholes, or bias is False and a bias is not zero.
        """
        self._require_zero_biases(bias)
        return {
            _torch_names(k, self.directions)[kind]: array
            for k, cell in enumerate(self.layers)
            for kind, array in self._left(cell).items()
            if bias or not kind.endswith("bias")
        }


def _identity(model: Model) -> Array:
    """[G*H, H]: the input matrices that do what skipping the input does."""
    return np.tile(np.eye(model.cell_size), (model.gates, 1))


def _torch_names(pseudo_layer: int, directions: int) -> dict[str, str]:
    """PyTorch's names of a cell's arrays by the kinds of cudnn_layout.Region."""
    layer, direction = divmod(pseudo_layer, directions)
    end = f"_l{layer}" + "_reverse" * direction
    return {
        "input": "weight_ih" + end,
        "recurrent": "weight_hh" + end,
        "input_bias": "bias_ih" + end,
        "recurrent_bias": "bias_hh" + end,
        "projection": "weight_hr" + end,
    }


class BlockCell(NamedTuple):
    """The weights of the block-cell ops, named as their arguments.

    Attributes:
      w: [I+H, 4H], rows of x, then of h.
      b: [4H].
      wci, wcf, wco: [H]; zero without peepholes, for the ops want them always.
    """

    w: Array
    b: Array
    wci: Array
    wcf: Array
    wco: Array


class LSTMWeights(_Weights):
    """The weights of LSTM layers, one upon another. Gate order i, f, c, o.

    Attributes:
      layers: one CellWeights for each direction of each layer, in the order
        layer * directions + direction.
      directions: 1 or 2; direction 1 runs backwards in time.

    Raises:
      ValueError: the shapes or dtypes of the arrays do not go together.
    """

    _GATES = "ifco"
    _LEFT_GATES = "ifco"
    _MODE = "lstm"

    @classmethod
    def _cell_from_keras(cls, arrays: list[Array]) -> CellWeights:
        kernel, recurrent_kernel, *rest = arrays
        zero = np.zeros(kernel.shape[-1], kernel.dtype)
        # As in Keras' own way to cuDNN: its bias is that of the recurrent side.
        bias = rest.pop(0) if rest and rest[0].ndim == 1 else zero
        peephole = rest.pop(0) if rest else None
        _require(not rest, f"{len(arrays)} arrays are more than those of an LSTM layer")
        return CellWeights(kernel, recurrent_kernel, zero, bias, peephole)

    @staticmethod
    def _cell_to_keras(cell: CellWeights, use_bias: bool) -> list[Array]:
        bias = [cell.bias + cell.recurrent_bias] if use_bias else []
        peephole = [] if cell.peephole is None else [cell.peephole]
        return [cell.kernel, cell.recurrent_kernel, *bias, *peephole]

    @classmethod
    def from_block_cell(
        cls,
        w: Any,
        b: Any,
        wci: Any = None,
        wcf: Any = None,
        wco: Any = None,
        *,
        gate_order: str,
        forget_bias: float,
    ) -> Self:
        """From the arguments of LSTMBlockCell, BlockLSTM or BlockLSTMV2.

        Args:
          w, b: [I+H, 4H] and [4H].
          wci, wcf, wco: [H] each where the op was used with use_peephole, else None.
          gate_order: "ICFO"; of BlockLSTMV2 "IFCO".
          forget_bias: the op's attribute, which goes into the bias; of BlockLSTMV2 0.

        Raises:
          ValueError: shapes that do not go together, some of the peepholes only, another order.
        """
        _check_gate_order(gate_order)
        matrix, vector = _array(w), _array(b)
        cell = vector.size // 4
        rows = max(len(matrix), cell)
        _require(
            matrix.shape == (rows, 4 * cell),
            f"w must be (I+{cell}, {4 * cell}) but is {matrix.shape}",
        )
        matrix, recurrent_bias = (
            _reordered(a, gate_order.lower(), "ifco") for a in (matrix, vector)
        )
        given = [p is not None for p in (wci, wcf, wco)]
        _require(all(given) or not any(given), "give all of wci, wcf and wco, or none")
        peephole = np.stack([_array(p) for p in (wci, wcf, wco)]) if all(given) else None
        bias = _forget_bias(recurrent_bias, forget_bias)
        kernels = matrix[:-cell], matrix[-cell:]
        return cls((CellWeights(*kernels, bias, recurrent_bias, peephole),))

    def to_block_cell(self, *, gate_order: str, forget_bias: float) -> BlockCell:
        """The arguments of LSTMBlockCell, BlockLSTM or BlockLSTMV2.

        Args:
          gate_order: "ICFO"; of BlockLSTMV2 "IFCO".
          forget_bias: the op's attribute, which is taken off the bias; of BlockLSTMV2 0.

        Raises:
          ValueError: there is more than one layer or direction, or a projection; another order.
        """
        _check_gate_order(gate_order)
        _require(
            len(self.layers) == 1,
            f"the block cell has one layer of one direction, not {len(self.layers)}; convert each "
            "one, LSTMWeights((layer,)), by itself",
        )
        (cell,) = self.layers
        _require(cell.projection is None, "the block cell has no projection; use to_cudnn")
        bias = cell.bias - _forget_bias(cell.bias, forget_bias) + cell.recurrent_bias
        w = np.concatenate([cell.kernel, cell.recurrent_kernel])
        peephole = (
            np.zeros((3, self.cell_size), w.dtype) if cell.peephole is None else cell.peephole
        )
        w, b = (_reordered(a, "ifco", gate_order.lower()) for a in (w, bias))
        return BlockCell(w, b, *map(np.array, peephole))


def _check_gate_order(gate_order: str) -> None:
    _require(
        gate_order in ("ICFO", "IFCO"), f"gate_order must be 'ICFO' or 'IFCO' but is {gate_order!r}"
    )


def _forget_bias(bias: Array, value: float) -> Array:
    """[4H], zero but for the forget gate. TensorFlow holds the attribute in float32."""
    found = np.zeros_like(bias)
    np.split(found, 4)[1][:] = np.float32(value)
    return found


class GRUWeights(_Weights):
    """The weights of GRU layers, one upon another, with reset_after=True. Gate order z, r, h.

    The attributes and errors are those of LSTMWeights.
    """

    _GATES = "zrh"
    _LEFT_GATES = "rzh"
    _MODE = "gru"

    def __post_init__(self) -> None:
        for name in ("peephole", "projection"):
            _require(all(getattr(c, name) is None for c in self.layers), f"a GRU has no {name}")
        super().__post_init__()

    @classmethod
    def _cell_from_keras(cls, arrays: list[Array]) -> CellWeights:
        kernel, recurrent_kernel, *rest = arrays
        _require(len(rest) <= 1, f"{len(arrays)} arrays are more than those of a GRU layer")
        bias = rest[0] if rest else np.zeros((2, kernel.shape[-1]), kernel.dtype)
        _require(
            bias.ndim == 2 and len(bias) == 2,
            f"bias must be (2, 3H) but is {bias.shape}: a layer with reset_after=False has another "
            "equation; make it with reset_after=True",
        )
        return CellWeights(kernel, recurrent_kernel, *bias)

    @staticmethod
    def _cell_to_keras(cell: CellWeights, use_bias: bool) -> list[Array]:
        bias = [np.stack([cell.bias, cell.recurrent_bias])] if use_bias else []
        return [cell.kernel, cell.recurrent_kernel, *bias]
