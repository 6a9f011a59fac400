"""What PyTorch computes with the modules of a session."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tf_lstm_ops import _received
from tf_lstm_ops.inference import file, source_check
from tf_lstm_ops.inference.from_torch.entry import Entry
from tf_lstm_ops.inference.from_torch.kinds import KINDS
from tf_lstm_ops.inference.from_torch.plan import Step, axes
from tf_lstm_ops.inference.layers import Input
from tf_lstm_ops.weights.arrays import Array

_SHORT, _LONG = 2, 7  # steps of the output of convolutions for random inputs


class NotCompared(Exception):
    """Nothing here can compute the source; the message says why."""


class Reference:
    """A chain of modules as PyTorch computes it.

    Args:
      steps: the chain.
      graph: the graph of the session.
    """

    def __init__(self, steps: Sequence[Step], graph: file.Graph) -> None:
        self._steps, self._graph = steps, graph

    def compare(self, session: Any, check: Any) -> None:
        """Compares a session with PyTorch.

        Args:
          session: the session.
          check: True: with the modules; or what computes the whole model.

        Raises:
          ValueError: they differ, or PyTorch cannot compute the model.
        """
        run = self._run if check is True else _whole(check)
        name = "the modules in PyTorch" if check is True else f"check={_received.text(check)}"
        words = source_check.words_of(self._graph)
        try:
            for sizes in self._sizes(session):
                source_check.compare(session, run, name, sizes=[sizes], words=words)
        except NotCompared as error:
            warnings.warn(f"the session was not compared with PyTorch: {error}", stacklevel=3)

    def _sizes(self, session: Any) -> Iterator[list[int]]:
        """The shapes of random inputs: of two lengths, if any length is possible."""
        (given,) = session.inputs
        _, steps, *rest = given.shape if len(given.shape) > 1 else (None, 1)
        sizes = [source_check.STEPS if size is None else size for size in rest]
        lengths = [_steps(self._graph, n) for n in (_SHORT, _LONG)] if steps is None else [steps]
        for length in lengths:
            yield [source_check.ROWS, length, *sizes][: len(given.shape)]

    def _run(self, inputs: list[Array]) -> list[Array]:
        torch = _torch()
        (x,) = inputs
        y = torch.from_numpy(x).to(torch.int64 if x.dtype.kind == "i" else torch.float64)
        with torch.no_grad():
            for step in self._steps:
                y = _step(torch, step, y)
        return [y.numpy()]


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise NotCompared(f"torch cannot be imported ({error})") from None
    return torch


def _step(torch: Any, step: Step, x: Any) -> Any:
    """The output of an element, with the axes of the session."""
    if not isinstance(step.element, Entry):
        return torch.from_numpy(_of_layer(step.element, x.numpy())).to(torch.float64)
    swapped = axes(step.order) if x.ndim == 3 else None
    if swapped:
        x = x.transpose(*swapped)
    y = _module(torch, step.element)(x)
    if isinstance(y, tuple):
        y = _final(step.element, y) if not step.element.options["return_sequences"] else y[0]
    return y.transpose(*swapped) if swapped and y.ndim == 3 else y


def _of_layer(layer: Any, x: Array) -> Array:
    """The output of a layer of a session."""
    from tf_lstm_ops.inference.session import Session

    dtype = "int32" if x.dtype.kind == "i" else "float32"
    result: Array = Session.from_layers([Input(x.shape[1:], dtype), layer])(x.astype(dtype))
    return result


def _final(entry: Entry, y: Any) -> Any:
    """The final h of the last layer, of all directions."""
    states = y[1][0] if isinstance(y[1], tuple) else y[1]
    count = 2 if "weight_ih_l0_reverse" in entry.arrays else 1
    return states[-count:].transpose(0, 1).flatten(1)


def _module(torch: Any, entry: Entry) -> Any:
    """A copy of a module that computes in float64 on the CPU."""
    made = _made(torch, entry) if entry.module is None else copy.deepcopy(entry.module)
    return made.to("cpu", torch.float64).eval()


def _made(torch: Any, entry: Entry) -> Any:
    """A module of an entry of a state dict."""
    if "weight_peephole_l0" in entry.arrays:
        raise NotCompared(f"{entry.label} has peepholes, which PyTorch does not have")
    options = {name: v for name, v in entry.options.items() if name != "return_sequences"}
    known = KINDS[entry.kind].sizes(entry)
    state = {
        name: torch.from_numpy(array.astype("float64")) for name, array in entry.arrays.items()
    }
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        made = getattr(torch.nn, entry.kind)(**{**options, **known}).to(torch.float64)
        made.load_state_dict(state, strict=False)
    return made


def _steps(graph: file.Graph, count: int) -> int:
    """How many steps of the input are enough for some steps of the output."""
    for node in reversed(graph.nodes):
        ints = node.layer.ints
        if node.layer.kind in (file.CONVOLUTION, file.DEPTHWISE):
            size, stride, dilation, *_ = ints
            count = (count - 1) * stride + (size - 1) * dilation + 1
        elif node.layer.kind == file.POOLING:
            size, stride, *_ = ints
            count = (count - 1) * stride + size
        elif node.layer.kind == file.PADDING:
            count = max(count - sum(ints[:2]), count, *(abs(each) + 1 for each in ints[:2]))
    return count


def _whole(function: Callable[[Any], Any]) -> source_check.Run:
    """What computes the model by a function of a tensor."""

    def run(inputs: list[Array]) -> list[Array]:
        torch = _torch()
        owner: Any = getattr(function, "__self__", function)  # of a method
        is_module = _received.is_torch_module(owner)
        modules = [*owner.modules()] if is_module else []
        modes = [module.training for module in modules]
        x = torch.from_numpy(inputs[0])
        x = x.to(torch.int64) if inputs[0].dtype.kind == "i" else x
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                for module in modules:
                    module.training = False
                y = function(_placed(owner, x) if is_module else x)
        finally:
            for module, mode in zip(modules, modes, strict=True):
                module.training = mode
        y = y[0] if isinstance(y, list | tuple) else y
        if not isinstance(y, torch.Tensor):
            raise TypeError(f"it returned {_received.text(y)}, must return a tensor")
        if y.dtype.itemsize < 4:
            raise TypeError(
                f"it computes in {y.dtype}, which has too few digits to compare with. Pass a copy "
                "of the model in float32: copy.deepcopy(model).float()"
            )
        return [y.detach().to("cpu", torch.float64).numpy()]

    return run


def _placed(module: Any, x: Any) -> Any:
    """A tensor on the device and of the type of a module."""
    for tensor in module.parameters():
        if tensor.is_floating_point():
            return x.to(tensor.device, tensor.dtype if x.is_floating_point() else None)
    return x
