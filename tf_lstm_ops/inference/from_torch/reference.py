"""What PyTorch computes with the modules of a session."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from tf_lstm_ops import _received
from tf_lstm_ops._arrays import Array
from tf_lstm_ops.inference import file, layers, source_check
from tf_lstm_ops.inference.from_torch.entry import TBC, Entry
from tf_lstm_ops.inference.from_torch.plan import Step, axes

_SHORT, _LONG = 2, 7  # steps of the output for random inputs
_OF_WHOLE = (
    "The elements of the list, or what stands between them, are not what it computes. It gets "
    "{axes}, and its output must have the axes of that of the session. Before a function is "
    "passed, call eval() of its modules"
)
_BATCH_FIRST, _TIME_FIRST = "[B, T, features]", "[T, B, features]"
_OF_MODULES = "Please report this with the modules"


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

        If PyTorch cannot compute the same here, a warning says that nothing was compared.

        Args:
          session: the session.
          check: True: with the modules; or what computes the whole model.

        Raises:
          ValueError: they differ, or PyTorch raised an error.
        """
        try:
            is_either = check is not True and self._is_time_first()
            axes = f"{_BATCH_FIRST}, then {_TIME_FIRST}" if is_either else _BATCH_FIRST
            try:
                self._compare(session, check, _OF_WHOLE.format(axes=axes))
            except ValueError as error:
                if not is_either or not self._is_equal(session, check):
                    raise error
        except NotCompared as error:
            warnings.warn(f"the session was not compared with PyTorch: {error}", stacklevel=3)

    def _is_time_first(self) -> bool:
        """Whether a module reads [T, B, features]."""
        return any(step.order == TBC for step in self._steps)

    def _is_equal(self, session: Any, check: Any) -> bool:
        """Whether what computes the whole model does it with the time as the first axis."""
        try:
            self._compare(session, check, "", is_time_first=True)
        except ValueError:
            return False
        return True

    def _compare(self, session: Any, check: Any, advice: str, is_time_first: bool = False) -> None:
        """Compares. The error of a difference has the advice."""
        is_whole = check is not True
        name = f"check={_received.text(check)}" if is_whole else "the modules in PyTorch"
        words = source_check.words_of(self._graph)

        def run(inputs: list[Array]) -> list[Array]:
            torch = _torch()
            (x,) = inputs
            tensor = torch.from_numpy(x)
            tensor = tensor.to(torch.int64) if x.dtype.kind == "i" else tensor
            try:
                if is_whole:
                    y = _whole(torch, check, tensor, is_time_first)
                else:
                    y = self._of_modules(torch, tensor, type(session))
                _require_comparable(torch, y)
                return [y.detach().to("cpu", torch.float64).numpy()]
            except (NotCompared, MemoryError):
                raise
            except Exception as error:  # code of the user
                raise ValueError(f"{type(error).__name__}: {error}") from error

        for shape in self._shapes(session):
            source_check.compare(
                *(session, run, name),
                sizes=[shape],
                words=words,
                advice=advice if is_whole else _OF_MODULES,
            )

    def _shapes(self, session: Any) -> Iterator[list[int]]:
        """The shapes of random inputs: of two lengths, if any length is possible."""
        (given,) = session.inputs
        _, steps, *rest = given.shape
        sizes = [source_check.STEPS if size is None else size for size in rest]
        lengths = [_steps(self._graph, n) for n in (_SHORT, _LONG)] if steps is None else [steps]
        for length in lengths:
            yield [source_check.ROWS, length, *sizes]

    def _of_modules(self, torch: Any, x: Any, sessions: Any) -> Any:
        """The output of the chain, module by module."""
        y = x.to(torch.float64) if x.is_floating_point() else x
        with torch.no_grad():
            for step in self._steps:
                y = _step(torch, step, y, sessions)
        return y


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise NotCompared(f"torch cannot be imported ({error})") from None
    return torch


def _step(torch: Any, step: Step, x: Any, sessions: Any) -> Any:
    """The output of an element, with the axes of the session. `sessions` is their class."""
    if not isinstance(step.element, Entry):
        return torch.from_numpy(_of_layer(step.element, x.numpy(), sessions)).to(torch.float64)
    swapped = axes(step.order) if x.ndim == 3 else None
    if swapped:
        x = x.transpose(*swapped)
    # Its call would run what module.compile() made of the original, with the weights of that.
    y = _module(torch, step.element).forward(x)
    if isinstance(y, tuple):
        returns_sequences = step.element.options.take("return_sequences", True)
        y = y[0] if returns_sequences else _final(step.element, y[1])
    return y.transpose(*swapped) if swapped and y.ndim == 3 else y


def _of_layer(layer: Any, x: Array, sessions: Any) -> Array:
    """The output of a layer of a session."""
    if isinstance(layer, layers.Masking) or getattr(layer, "_mask_zero", False):
        raise NotCompared(f"the layer {layer.name} makes a mask, which modules do not have")
    dtype = "int32" if x.dtype.kind == "i" else "float32"
    session = sessions.from_layers([layers.Input(x.shape[1:], dtype), layer])
    result: Array = session(x.astype(dtype))
    return result


def _final(entry: Entry, states: Any) -> Any:
    """The final h of the last layer, of all directions."""
    h = states[0] if isinstance(states, tuple) else states
    count = 2 if "weight_ih_l0_reverse" in entry.arrays else 1
    return h[-count:].transpose(0, 1).flatten(1)


def _module(torch: Any, entry: Entry) -> Any:
    """A copy of a module that computes in float64 on the CPU. The module itself stays as it is."""
    made = _made(torch, entry) if entry.module is None else copy.deepcopy(entry.module)
    if getattr(made, "eps", 0) is None:  # PyTorch takes that of the type
        made.eps = torch.finfo(torch.float32).eps
    return made.to("cpu", torch.float64).eval()


def _made(torch: Any, entry: Entry) -> Any:
    """A module of an entry of a state dict."""
    if "weight_peephole_l0" in entry.arrays:
        raise NotCompared(f"{entry.label} has peepholes, which PyTorch does not have")
    given = entry.options.values
    options = {name: given[name] for name in entry.options.taken if name in given}
    options.pop("return_sequences", None)
    arrays = {name: torch.from_numpy(a.astype("float64")) for name, a in entry.arrays.items()}
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        made = getattr(torch.nn, entry.name)(**{**options, **entry.sizes}).to(torch.float64)
    made.load_state_dict(arrays, strict=False)
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
            count = max(count - min(sum(ints[:2]), 0), *(abs(each) + 1 for each in ints[:2]))
    return count


def _whole(torch: Any, function: Any, x: Any, is_time_first: bool) -> Any:
    """The output of what computes the whole model, as batch and time."""
    x = x.transpose(0, 1) if is_time_first else x
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        owner = getattr(function, "__self__", function)  # of a method
        if not _received.is_torch_module(owner):
            y = function(x)
        else:
            with _in_inference(torch, owner):
                y = function(_placed(owner, x))
    y = y[0] if isinstance(y, list | tuple) else y
    is_sequence = is_time_first and isinstance(y, torch.Tensor) and y.ndim == 3
    return y.transpose(0, 1) if is_sequence else y


@contextlib.contextmanager
def _in_inference(torch: Any, module: Any) -> Iterator[None]:
    """Restores modes and buffers at the end."""
    parts = [*module.modules()]
    modes = [part.training for part in parts]
    buffers = [
        (part, name, buffer, buffer.clone())
        for part in parts
        for name, buffer in part.named_buffers(recurse=False)
    ]
    try:
        for part in parts:
            part.training = False
        yield
    finally:
        for part, mode in zip(parts, modes, strict=True):
            part.training = mode
        for part, name, buffer, before in buffers:
            if not torch.equal(buffer, before):
                buffer.copy_(before)
            if getattr(part, name) is not buffer:
                setattr(part, name, buffer)


def _require_comparable(torch: Any, y: Any) -> None:
    """Refuses what a program returned if it is no tensor, or has few digits."""
    if not isinstance(y, torch.Tensor):
        raise TypeError(f"it returned {_received.text(y)}, must return a tensor")
    if y.dtype.itemsize < 4:
        raise TypeError(
            f"it computes in {y.dtype}, which has too few digits to compare with. Pass a copy of "
            "the model in float32: copy.deepcopy(model).float()"
        )


def _placed(module: Any, x: Any) -> Any:
    """A tensor on the device and, if it has floats, of the type of a module."""
    for tensor in module.parameters():
        if tensor.is_floating_point():
            return x.to(tensor.device, tensor.dtype if x.is_floating_point() else x.dtype)
    return x
