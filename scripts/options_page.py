"""Prints the page of the options of recurrent layers and of what computes them.

python scripts/options_page.py > docs/reference/targets.md
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tf_lstm_ops import _targets
from tf_lstm_ops._activations import OF_CELLS
from tf_lstm_ops._targets import OPTIONS, TARGETS, Effect, Target

HEAD = """\
# Options and what computes them

An *option* is an argument of a recurrent layer. A *target* computes layers: a kernel, a session, a
node of a file. "yes" means that the target computes the layer with the option, while all other
options have their defaults. Otherwise the package uses another implementation, or raises an error
that names the option. `python scripts/options_page.py` prints this page from the tables in
`tf_lstm_ops/_targets.py`; a test computes each layer with each option.

| Target | What it is |
|---|---|
| CPU | the fused op on a CPU |
| session | [a session](inference.md) |
| CUDA, Metal | the kernels of this package on [GPUs](gpu.md), which are off by default |
| cuDNN | TensorFlow's own op on an NVIDIA GPU |
| ONNX node | a node `LSTM`, `GRU` or `RNN` of [a file](export.md); others become a `Loop` |
| Lite op | the fused op of [LiteRT](export.md) (TensorFlow Lite); other layers become plain ops |
| keras.layers | a stock layer, by `convert_model(to="stock")` |
| weights | [formats of weights](weights.md), which have neither functions nor clips |
"""
# A stack in place of several cells is another model.
COLUMNS = {name: target for name, target in TARGETS.items() if name != "stack"}
# The ops of the rows, and the layers that run them.
LAYERS = {
    "KerasLSTM": "LSTM",
    "KerasLayerNormLSTM": "LSTM",
    "KerasGRU": "GRU",
    "KerasResetBeforeGRU": "GRU",
    "KerasLayerNormGRU": "GRU",
    "KerasSimpleRNN": "SimpleRNN",
    "StackedLSTM": "StackedLSTM",
    "ClippedStackedLSTM": "StackedLSTM",
    "StackedGRU": "StackedGRU",
}
# Arguments that say which op a layer runs.
SELECTS = {"KerasResetBeforeGRU": "reset_after", "KerasLayerNormLSTM": "layer_normalization"}
SELECTS |= {"KerasLayerNormGRU": "layer_normalization"}
SHOWN = {"reset_after": "reset_after=False", "use_cudnn": "use_cudnn=True"}


def options_of(op: str) -> list[str]:
    """The options of an op that some target computes; "" stands for the defaults."""
    if op in SELECTS:
        return [SELECTS[op]]
    known = {name for target in TARGETS.values() for name in target.ops.get(op, {})}
    steps = [name for name in OPTIONS if name in known and OPTIONS[name].effect is Effect.STEP]
    return ["", *steps] if op != "ClippedStackedLSTM" else [n for n in steps if n.endswith("clip")]


def cell(target: Target, op: str, option: str) -> str:
    """What a target computes of an option."""
    values = target.ops.get(op)
    if values is None or (option and option not in values):
        return "no"
    if not option or values[option] is _targets.ANY or option == "reset_after":
        return "yes"
    found = values[option]
    return ", ".join(found) if len(found) < 3 else f"{len(found)} functions"


def rows() -> Iterator[list[str]]:
    """The rows of the table."""
    for op, layer in LAYERS.items():
        for option in options_of(op):
            shown = f"`{SHOWN.get(option, option)}`" if option else "the defaults"
            yield [layer, shown, *(cell(target, op, option) for target in COLUMNS.values())]


def lacks() -> Iterator[str]:
    """The options of other effects that targets do not compute."""
    for name, target in COLUMNS.items():
        if target.lacks:
            shown = (f"`{SHOWN.get(option, option)}`" for option in sorted(target.lacks))
            yield f"* {name}: {', '.join(shown)}"


def page() -> str:
    """The page."""
    table = [["Layer", "Option", *COLUMNS], ["---"] * (2 + len(COLUMNS)), *rows()]
    lines = [f"| {' | '.join(row)} |" for row in table]
    functions = ", ".join(f"`{name}`" for name in OF_CELLS)
    nodes = ", ".join(f"`{n}`" for n in TARGETS["ONNX node"].ops["KerasLSTM"]["activation"])
    return "\n".join(
        [
            HEAD,
            "## Options that change the equations of a step",
            "",
            *lines,
            "",
            textwrap.fill(
                f"The {len(OF_CELLS)} functions are {functions}. Nodes of ONNX have {nodes}. "
                "`keras.layers` has every function.",
                width=100,
            ),
            "",
            "## Other options",
            "",
            "A target computes all other options, such as `return_sequences`, except these:",
            "",
            *lacks(),
            "",
            "On GPUs this concerns `recurrent_dropout` in training, and `dropout` in training with",
            "`implementation=1`. `keras.layers.SimpleRNN` has no `activity_regularizer`. Stacks",
            "run another op than LSTM and GRU. It has other kernels.",
            "",
        ]
    )


if __name__ == "__main__":
    print(page(), end="")
