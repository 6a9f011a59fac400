"""Multi-layer and bidirectional RNNs for peers with one layer of one direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def run_layers(
    run: Callable[[Any, Any], Any], reverse: Callable[[Any], Any], join: Callable[[list[Any]], Any]
) -> Callable[[Any, Sequence[Any], int], Any]:
    """Composes a multi-layer RNN.

    Args:
      run: computes the output of one cell over x.
      reverse: reverses x in time.
      join: concatenates the outputs of both directions.

    Returns:
      A function of x, the cells in the order layer * directions + direction, and the number of
      directions, that returns the output of the last layer.
    """

    def run_all(x: Any, cells: Sequence[Any], directions: int) -> Any:
        for first in range(0, len(cells), directions):
            outputs = [run(x, cells[first])]
            if directions == 2:
                outputs.append(reverse(run(reverse(x), cells[first + 1])))
            x = join(outputs) if directions == 2 else outputs[0]
        return x

    return run_all
