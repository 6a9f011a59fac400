"""How much memory the constants of a file may take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tf_lstm_ops.files.limits import MADE_BYTES, MADE_MORE, MADE_TIMES

if TYPE_CHECKING:
    import onnx


class Budget:
    """Bytes that the nodes of a file, with all its graphs, may make together.

    Args:
      total: the number of bytes.
    """

    def __init__(self, total: int = MADE_BYTES) -> None:
        self.left = self._total = total

    def require(self, size: int, what: str) -> None:
        """Checks that an array may be made.

        Args:
          size: its bytes.
          what: names it in the message.

        Raises:
          ValueError: it is too large, beside those made before.
        """
        if size > self.left:
            raise ValueError(
                f"{what} of {size} bytes is larger than the limit of {self.left}: what nodes make "
                f"of constants may have {self._total} bytes together"
            )

    def take(self, size: int) -> None:
        """Counts an array that is made.

        Args:
          size: its bytes.

        Raises:
          ValueError: it is too large, beside those made before.
        """
        self.require(size, "the result")
        self.left -= size


def budget_of(model: onnx.ModelProto) -> Budget:
    """The budget of a file, so that a small one does not fill the memory.

    Args:
      model: the model with all its tensors.

    Returns:
      The budget.
    """
    return Budget(min(MADE_BYTES, MADE_TIMES * model.ByteSize() + MADE_MORE))
