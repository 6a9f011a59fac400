"""Models of PyTorch's tests of the export of recurrent layers, as cases.

The combinations are those of `setup_rnn_tests` in PyTorch's test_pytorch_onnx_onnxruntime.py, 192
in number: four kinds of layers, 1 or 3 layers, directions, initial states, packed sequences with
the time or the batch first, and dropout, which does nothing in inference. The models are written
here, exported by the installed PyTorch, and computed by it in float64. Each is called in three
sizes, which are not those of the example of the export. The exporter with dynamo=True fixes the
number of steps, so that the three have its number; it does not take packed sequences.
"""

import dataclasses
import io
import itertools
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from judges.cases import Case

INPUTS, UNITS = 5, 6
EXAMPLE = (4, 8)  # rows, steps
SIZES = [(1, 3), (3, 11), (6, 5)]
KINDS = {
    "elman_relu": (nn.RNN, {"nonlinearity": "relu"}),
    "elman_tanh": (nn.RNN, {"nonlinearity": "tanh"}),
    "lstm": (nn.LSTM, {}),
    "gru": (nn.GRU, {}),
}
LENGTHS = ["without_lengths", "lengths", "batch_first_lengths"]


@dataclasses.dataclass(frozen=True)
class Options:
    """One combination."""

    kind: str
    layers: int
    bidirectional: bool
    has_initial: bool
    lengths: str
    dropout: float

    @property
    def name(self) -> str:
        parts = [self.kind, f"{self.layers}_layers"]
        parts += ["bidirectional"] if self.bidirectional else []
        parts += ["initial"] if self.has_initial else []
        parts += [self.lengths] if self.is_packed else []
        return "-".join(parts + (["dropout"] if self.dropout else []))

    @property
    def is_packed(self) -> bool:
        return self.lengths != LENGTHS[0]

    @property
    def batch_first(self) -> bool:
        return self.lengths == LENGTHS[2]


def combinations() -> dict[str, Options]:
    """All 192 by their names."""
    values = [KINDS, (1, 3), (False, True), (True, False), LENGTHS, (0.2, 0.0)]
    return {each.name: each for each in itertools.starmap(Options, itertools.product(*values))}


class Net(nn.Module):
    """A recurrent layer: its arguments are x, the initial states and the lengths."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        kind, more = KINDS[options.kind]
        # PyTorch warns of dropout in one layer, which its tests have.
        self.layer = kind(
            INPUTS,
            UNITS,
            options.layers,
            bidirectional=options.bidirectional,
            dropout=options.dropout,
            batch_first=options.batch_first,
            **more,
        )
        self.options = options
        self.is_sorted = True  # what the exporter wants

    def forward(self, x: torch.Tensor, *rest: torch.Tensor) -> tuple[torch.Tensor, ...]:
        options = self.options
        *states, lengths = rest if options.is_packed else (*rest, None)
        initial = (tuple(states) if len(states) > 1 else states[0]) if states else None
        if lengths is not None:
            x = pack_padded_sequence(x, lengths, options.batch_first, self.is_sorted)
        y, final = self.layer(x, initial)
        if lengths is not None:
            y, _ = pad_packed_sequence(y, options.batch_first)
        return (y, *final) if isinstance(final, tuple) else (y, final)


def inputs_of(options: Options, batch: int, steps: int, rng: np.random.Generator) -> dict[str, Any]:
    """Random inputs by name. One row has all steps, as pad_packed_sequence returns no more."""

    def draw(*shape: int) -> torch.Tensor:
        return torch.tensor(rng.standard_normal(shape).astype(np.float32))

    found = {"x": draw(*((batch, steps) if options.batch_first else (steps, batch)), INPUTS)}
    if options.has_initial:
        directions = options.layers * (1 + options.bidirectional)
        for name in ("h0", "c0")[: 1 + (options.kind == "lstm")]:
            found[name] = draw(directions, batch, UNITS)
    if options.is_packed:
        lengths = rng.integers(1, steps + 1, batch)
        lengths[rng.integers(batch)] = steps
        found["lengths"] = torch.tensor(lengths)
    return found


def axes_of(options: Options, names: list[str]) -> dict[str, int]:
    """The axis of the batch of each input."""
    return {
        name: 0 if name == "lengths" or (name == "x" and options.batch_first) else 1
        for name in names
    }


def exported(net: Net, inputs: dict[str, Any], dynamo: bool) -> onnx.ModelProto:
    """The file of an exporter, with free sizes of batch and time."""
    names = [*inputs]
    axes = axes_of(net.options, names)
    free = {name: {axis: "batch"} for name, axis in axes.items()}
    free["x"][1 - axes["x"]] = "time"
    if "lengths" in inputs:  # pack_padded_sequence wants them in this order
        inputs = inputs | {"lengths": torch.sort(inputs["lengths"], descending=True).values}
    file = io.BytesIO()
    if dynamo:
        sizes = {name: torch.export.Dim(name, min=1, max=1000) for name in ("batch", "time")}
        shapes = [{k: sizes[name] for k, name in own.items()} for own in free.values()]
        rest = (tuple(shapes[1:]),) if shapes[1:] else ()  # of the argument *rest
        options: dict[str, Any] = {"dynamic_shapes": (shapes[0], *rest), "verbose": False}
    else:
        options = {"dynamic_axes": free, "dynamo": False}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(net, tuple(inputs.values()), file, input_names=names, **options)
    return onnx.load_from_string(file.getvalue())


def case(options: Options, dynamo: bool = False, other_steps: bool = False) -> Case:
    """The file and the results of a combination.

    Args:
      options: the combination.
      dynamo: which exporter writes it.
      other_steps: whether files that fix the number of steps are called with others, too.

    Returns:
      The case.

    Raises:
      Exception: PyTorch does not export it.
    """
    rng = np.random.default_rng(zlib.crc32(options.name.encode()))
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = Net(options).eval()
    example = inputs_of(options, *EXAMPLE, rng)
    model = exported(net, example, dynamo)
    if dynamo and has_free_steps(options, model):
        # The first file of a process has the example's steps in its nodes, but not in its input.
        model = exported(net, example, dynamo)
    net.double()
    net.is_sorted = False
    sizes = [(batch, EXAMPLE[1] if dynamo and not other_steps else steps) for batch, steps in SIZES]
    calls = [call(net, inputs_of(options, *size, rng)) for size in sizes]
    inputs, outputs = calls[0]
    output_axes = [0 if options.batch_first and k == 0 else 1 for k in range(len(outputs))]
    return Case(options.name, model, calls, axes_of(options, [*inputs]), output_axes)


def has_free_steps(options: Options, model: onnx.ModelProto) -> bool:
    axes = model.graph.input[0].type.tensor_type.shape.dim
    return bool(axes[1 if options.batch_first else 0].dim_param)


def call(net: Net, inputs: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """Inputs and outputs as arrays."""
    wide = [x.double() if x.is_floating_point() else x for x in inputs.values()]
    with torch.no_grad():
        outputs = net(*wide)
    return {name: x.numpy() for name, x in inputs.items()}, [y.numpy() for y in outputs]


def cases(dynamo: bool = False) -> Iterator[Case]:
    """All that the exporter takes. The newer one takes no packed sequences."""
    for options in combinations().values():
        if not (dynamo and options.is_packed):
            yield case(options, dynamo)
