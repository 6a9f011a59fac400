"""A recurrent layer in a file."""

from __future__ import annotations

import dataclasses

from tf_lstm_ops._refusal import require, within
from tf_lstm_ops.checkpoints.layouts import Arguments, Layout, Roles, Sizes


@dataclasses.dataclass(frozen=True)
class Cell:
    """A recurrent layer of a file.

    Attributes:
      name: its name in the file.
      kind: "lstm" or "gru".
      family: what wrote it, in words.
      roles: its arrays by role.
      layout: how they are to be read.
      sizes: its sizes; None if the shapes are not those of such a layer.
      forget_bias: what its program adds to the forget gate at run time.
      note: what a reader must know, in words.
      problem: why it cannot be converted; empty if it can.
    """

    name: str
    kind: str
    family: str
    roles: Roles
    layout: Layout
    sizes: Sizes | None
    forget_bias: float = 0.0
    note: str = ""
    problem: str = ""

    def read(self) -> Arguments:
        """Reads the arrays.

        Returns:
          The arrays in a format of `tf_lstm_ops.weights`.

        Raises:
          OSError, ValueError: an array cannot be read, or the arrays are not those of such a layer.
        """
        with within(self.name):
            require(not self.problem, self.problem)
        arrays = {role: variable.read() for role, variable in self.roles.items()}
        with within(self.name):
            return self.layout.convert(arrays)
