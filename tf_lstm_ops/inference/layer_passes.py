"""The forward and backward pass of one recurrent layer, by the layers of the C library.

`tf_lstm_ops.keras` on PyTorch runs them. Arrays are given by their addresses.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

from tf_lstm_ops import _library
from tf_lstm_ops.inference import native

# The numbers of cells and types in the C header, by the names of ops and dtypes.
_CELLS = {
    "KerasLSTM": 0,
    "KerasGRU": 1,
    "KerasResetBeforeGRU": 2,
    "KerasSimpleRNN": 3,
    "KerasLayerNormLSTM": 4,
    "KerasLayerNormGRU": 5,
}
TYPES = {"float32": 0, "float64": 2, "bfloat16": 3}


class Arguments(enum.IntEnum):
    """The lists of arguments of a layer."""

    FORWARD_INPUTS = 0
    FORWARD_OUTPUTS = 1
    BACKWARD_INPUTS = 2
    BACKWARD_OUTPUTS = 3


class Options(native.Struct):
    """tf_lstm_ops_layer_options."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("cell", ctypes.c_int32),
        ("type", ctypes.c_int32),
        ("bidirectional", ctypes.c_int32),
        ("go_backwards", ctypes.c_int32),
        ("returns_last_step", ctypes.c_int32),
        ("zero_output_for_mask", ctypes.c_int32),
        ("saves_nothing", ctypes.c_int32),
        ("activation", ctypes.c_char_p),
        ("recurrent_activation", ctypes.c_char_p),
        ("cell_clip", ctypes.c_float),
        ("proj_clip", ctypes.c_float),
        ("epsilon", ctypes.c_float),
        ("carries_normalized_state", ctypes.c_int32),
    )


class View(NamedTuple):
    """A contiguous array.

    Attributes:
      shape: its shape.
      address: of its first element; 0: the array is absent.
      mask: of x only: the address of the mask [B, T], of bytes, or of lengths [B], int32; 0: all
        steps are valid.
      has_lengths: whether the mask is one of lengths.
    """

    shape: Sequence[int]
    address: int
    mask: int = 0
    has_lengths: bool = False


ABSENT = View((), 0)


def require_built() -> None:
    """Checks that the library of this installation has layers.

    Raises:
      RuntimeError: it was built for sessions only.
    """
    if not native.has_layers(native.library()):
        raise RuntimeError(f"this installation has {_library.SESSIONS_ONLY}. {_library.REBUILD}")


class Layer:
    """A layer of the C library. Any number of threads may use it at once.

    Args:
      op: the op's name without its namespace, such as "KerasLSTM".
      dtype: of all arrays: one of TYPES.
      **options: other members of `Options`.

    Attributes:
      names: of the arguments in each list, in the order of the calls.

    Raises:
      RuntimeError: the library was built for sessions only.
      ValueError: the cell does not have an option or its value.
    """

    def __init__(self, op: str, dtype: str, **options: Any) -> None:
        require_built()
        self._type = TYPES[dtype]
        given = Options(cell=_CELLS[op], type=self._type, **options)
        self._handle = native.owned(self, "layer", None)
        native.call("layer_open", ctypes.addressof(given), ctypes.addressof(self._handle))
        self.names = {each: tuple(self._names(each)) for each in Arguments}

    def _names(self, arguments: Arguments) -> list[str]:
        found: list[str] = []
        name_of = native.library().tf_lstm_ops_layer_argument
        while name := name_of(self._handle, arguments, len(found)):
            found.append(name.decode())
        return found

    def infer(self, inputs: Sequence[View]) -> list[tuple[int, ...]]:
        """The shapes of the outputs of a forward pass.

        Args:
          inputs: all FORWARD_INPUTS.

        Returns:
          Those of FORWARD_OUTPUTS.

        Raises:
          ValueError: the inputs do not fit together.
        """
        count = len(self.names[Arguments.FORWARD_OUTPUTS])
        outputs = native.writable([native.EMPTY] * count)
        given = self._packed(inputs)
        address = ctypes.addressof(outputs)
        native.call("layer_infer_shapes", self._handle, given, len(inputs), address, count)
        return [shape for _, shape in native.unpacked(outputs.raw)]

    def forward(self, threads: int, inputs: Sequence[View], outputs: Sequence[View]) -> None:
        """Computes the forward pass.

        Args:
          threads: at most this many compute, from 1 to 256.
          inputs: all FORWARD_INPUTS.
          outputs: all FORWARD_OUTPUTS, of the shapes that `infer` returns.

        Raises:
          ValueError: the arrays do not fit together.
          MemoryError: there is no memory.
        """
        self._run("layer_forward", threads, inputs, outputs)

    def backward(self, threads: int, inputs: Sequence[View], outputs: Sequence[View]) -> None:
        """Computes the backward pass.

        Args:
          threads: as of `forward`.
          inputs: all BACKWARD_INPUTS.
          outputs: all BACKWARD_OUTPUTS. Absent ones are not computed.

        Raises:
          ValueError, MemoryError: as of `forward`.
        """
        self._run("layer_backward", threads, inputs, outputs)

    def _run(
        self, name: str, threads: int, inputs: Sequence[View], outputs: Sequence[View]
    ) -> None:
        written = native.writable([self._packed(outputs)])
        address = ctypes.addressof(written)
        given = self._packed(inputs)
        native.call(name, self._handle, threads, given, len(inputs), address, len(outputs))

    def _packed(self, views: Sequence[View]) -> bytes:
        def content(view: View) -> bytes:
            found = native.packed(self._type, view.shape)
            found = native.with_lengths(found) if view.has_lengths else found
            return found + native.addresses(view.address, view.mask)

        return b"".join(map(content, views))
