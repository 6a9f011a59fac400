"""Another computation of the sequences of recurrent layers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any


@contextlib.contextmanager
def replaced(functions: Iterable[tuple[Any, Callable[..., Any]]]) -> Iterator[None]:
    """A context in which layers compute their sequences by other functions.

    Args:
      functions: layers of ``keras.layers.RNN``, each with a function of the arguments and results
        of ``inner_loop``.

    Yields:
      None.
    """
    with contextlib.ExitStack() as stack:
        for layer, function in functions:
            layer.inner_loop = function
            stack.callback(vars(layer).pop, "inner_loop", None)
        yield
