"""A module with its forward method, by PyTorch's own exporter to ONNX.

Nothing is written to a file. The nodes of the ONNX model get the names of the modules, so that
messages have them.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import io
import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tf_lstm_ops import _optional, _received
from tf_lstm_ops._arrays import Array
from tf_lstm_ops._refusal import refused
from tf_lstm_ops.inference import file, from_onnx
from tf_lstm_ops.inference.from_onnx.source import Source

_SCOPES = "pkg.torch.onnx.name_scopes"  # where the exporter says which module made a node
_OPEN_AXES = 2  # those that may be the batch and the time


def read(module: Any, example: Any) -> tuple[file.Graph, Source]:
    """The graph of a module, and the module for a comparison.

    Args:
      module: see `Session.from_torch`.
      example: likewise.

    Returns:
      The graph and the source.

    Raises:
      ImportError: a package that the exporter needs is not installed.
      TypeError: module is no module, or example has other things than tensors.
      ValueError: PyTorch cannot export the module, or a session does not compute it.
    """
    if not _received.is_torch_module(module):
        raise TypeError(
            f"example is for a module of PyTorch. Received: source={_received.text(module)}"
        )
    _optional.require("onnx", "the exporter of PyTorch", "onnx", "onnxscript")
    _optional.require("onnxscript", "the exporter of PyTorch", "onnx", "onnxscript")
    torch = _optional.require("torch", "a module", "torch")
    given = _arguments(torch, example)
    with _evaluating(module), torch.no_grad():
        proto = _exported(torch, module, example, given)
    model, source = from_onnx.read(proto)
    program = _Program(torch, module, example, given)
    return model, dataclasses.replace(source, program=program, name="the module in PyTorch")


def _arguments(torch: Any, example: Any) -> dict[str | int, Any]:
    """The tensors of an example by their names or positions."""
    if isinstance(example, Mapping):
        found = dict(example)
    elif isinstance(example, list | tuple):
        found = dict(enumerate(example))
    else:
        found = {0: example}
    for key, value in found.items():
        if not isinstance(value, torch.Tensor):
            raise TypeError(
                "example must be a tensor, a tuple of tensors, or a dictionary of them by the "
                f"names of the arguments of forward. Argument {key} is {_received.text(value)}"
            )
    if not found:
        raise ValueError("example must have a tensor. Received: none")
    return found


@contextlib.contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """A context in which a module is in the mode of evaluation."""
    modes = [(each, each.training) for each in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for each, mode in modes:
            each.training = mode


def _exported(torch: Any, module: Any, example: Any, given: Mapping[str | int, Any]) -> Any:
    """The ONNX model of a module."""
    axes = {
        key: {
            axis: torch.export.Dim.AUTO
            for axis, size in enumerate(tensor.shape[:_OPEN_AXES])
            if size > 1  # the exporter fixes others
        }
        for key, tensor in given.items()
    }
    is_named = isinstance(example, Mapping)
    try:
        with warnings.catch_warnings(), _silent():
            warnings.simplefilter("ignore")
            count = len(_flat(_called(module, given, is_named)))
            exported = torch.onnx.export(
                module,
                () if is_named else tuple(given.values()),
                kwargs=dict(given) if is_named else None,
                dynamic_shapes=axes if is_named else tuple(axes.values()),
                output_names=["output", *(f"output_{k}" for k in range(1, count))],
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # code of the user, and any of the exporter
        raise refused(
            _said(error),
            f"PyTorch cannot export {type(module).__name__} with this example",
            "Pass a list of its modules, in the order in which forward calls them",
        ) from error
    proto = exported.model_proto
    for node in proto.graph.node:
        node.name = f"{_module_of(node) or type(module).__name__}/{node.name}"
    return proto


def _said(error: BaseException) -> str:
    """The first line of the error from which an error of the exporter comes."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = re.sub(r"\x1b\[[\d;]*m", "", str(error)).strip().splitlines()  # without colours
    return f"{type(error).__name__}: {''.join(lines[:1])[:300]}"


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """A context without what the exporter logs and prints."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    nowhere = io.StringIO()
    try:
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield
    finally:
        logging.disable(before)


def _module_of(node: Any) -> str:
    """The name of the module that made a node; empty for the whole one."""
    scopes = next((each.value for each in node.metadata_props if each.key == _SCOPES), "[]")
    found: Sequence[str] = ast.literal_eval(scopes)
    return found[-2] if len(found) > 1 else ""  # the last one is the operation


def _called(module: Any, given: Mapping[Any, Any], is_named: bool) -> Any:
    return module(**given) if is_named else module(*given.values())


def _flat(results: Any) -> list[Any]:
    """The tensors in a structure."""
    if isinstance(results, Mapping):
        results = [*results.values()]
    if isinstance(results, list | tuple):
        return [tensor for part in results for tensor in _flat(part)]
    return [results]


class _Program:
    """The module as what computes the inputs of an ONNX model.

    Args:
      torch: the package.
      module: the module.
      example: as of `read`.
      given: its tensors.
    """

    def __init__(self, torch: Any, module: Any, example: Any, given: Mapping[Any, Any]) -> None:
        self._torch, self._module, self._given = torch, module, given
        self._is_named = isinstance(example, Mapping)

    def __call__(self, feeds: Sequence[Array]) -> list[Array]:
        """The outputs of the module."""
        tensors = {
            key: self._torch.from_numpy(np.array(array)).to(like)
            for (key, like), array in zip(self._given.items(), feeds, strict=True)
        }
        with _evaluating(self._module), self._torch.no_grad():
            found = _flat(_called(self._module, tensors, self._is_named))
        return [each.detach().to("cpu", self._torch.float64).numpy() for each in found]
