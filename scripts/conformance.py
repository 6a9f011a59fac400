"""Prints the page of how many cases of other projects' tests each program computes.

python scripts/conformance.py > docs/reference/conformance.md

It takes minutes, of which PyTorch's newer exporter takes most. It needs the packages onnx and
torch. A program that is not installed has no column: onnxruntime, openvino,
tract.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from judges import cases, node_tests, nodes
from judges.cases import REFUSED, RIGHT, WRONG, Case, Verdict

Program = Callable[[Case], list[list[cases.Array]]]
PROGRAMS: dict[str, tuple[str, Program]] = {
    "tf_lstm_ops": ("", cases.ours),
    "ONNX Runtime": ("onnxruntime", cases.onnx_runtime),
    "OpenVINO": ("openvino", cases.openvino),
    "tract": ("tract", cases.tract),
}
HEAD = """\
# Conformance

This page has the results of [`Session.from_onnx`](session_sources.md) and of other programs in
several suites of cases. A case is a model with inputs and the outputs that are expected of it. The
suites are tests of other projects, or have the same kinds of cases. Each suite is a file in
`tests/judges`. The file says where its cases come from.

* A result is right if no element of an output differs from the expected one by more than 2e-6 times
  the largest absolute value that is expected in that output.
* A case is refused if the program reports that it does not support it.
* All other results are wrong.

`python scripts/conformance.py` prints this page. Tests check the column tf_lstm_ops.
"""
OPEN = """\
ONNX's specification does not say what the outputs behind the length of a sequence are. The expected
ones are zeros, as in ONNX Runtime. In nodes with `layout=0` and without `clip`, the expected
outputs are those of ONNX Runtime. No case has a sequence of length 0 together with initial states:
ONNX Runtime returns zeros as its final states, a session returns the initial states.
"""
OPTIONS_HEAD = """\
## Nodes by their option

The second row of the table above, split by option. Each node has one option that is not the
default.
"""
OTHERS = """\
ONNX Runtime refuses `layout=1`. Its wrong results are those of LSTM nodes with `clip`: it does not
clip the cell state before the function that makes h
([onnxruntime#27224](https://github.com/microsoft/onnxruntime/issues/27224)).
"""
OTHERS_OPENVINO = """\
OpenVINO has these wrong results on the CPU:

* It reads the axes of `layout=1` in another order
  ([openvino#37820](https://github.com/openvinotoolkit/openvino/issues/37820)).
* It computes the steps behind the length of a sequence.
* It does not apply peepholes (P), `input_forget`, and `clip` before the function that makes h.
* It applies the functions of the first direction to the second direction.

It refuses most `activations` that are not the default.
"""
OTHERS_TRACT = """\
tract is given models with fixed sizes. With a symbolic batch size it aborts. It has these wrong
results:

* It does not apply `clip`, `input_forget`, and `activations` that are not the default
  ([tract#2751](https://github.com/sonos/tract/issues/2751)).
* It computes `direction="reverse"` from the first step on.

It refuses `sequence_lens`, and `layout=1` in two directions. It refuses most LSTM nodes with all
of: more than one row, one direction, no initial states, and Y_c beside another output.
"""
OTHER_SUITES = """\
## Suites of layers and ops

These have weights instead of ONNX models. The ops, the Keras layers and sessions compute them. No
other program was tried.

* [Expected numbers of TensorFlow's own tests](../../tests/judges/test_tensorflow_cases.py) of LSTM
  cells, GRU cells and CudnnRNN: 13 cases, 13 right.
* [The shapes of oneDNN's benchdnn](../../tests/judges/test_benchdnn_shapes.py): 203 shapes, 184
  right, 12 refused (a projection to more units than the cell has), 7 left out (an initial state
  with more units than the cell).
* [A Keras model with 35 recurrent layers of every option](../../tests/judges/test_conversions.py):
  `convert_model` in both directions, a session, a SavedModel and an ONNX file are right. A session
  of the stock model refuses `keras.layers.RNN`.
"""
TITLES = {
    "": "none",
    "functions": "`activations`, with alpha and beta",
    "other": "other `activations` in the second direction",
    "lengths": "`sequence_lens`",
    "states": "initial states: inputs, constants, expanded parameters",
    "bias": "no bias (input B)",
    "peepholes": "peepholes (input P)",
    "outputs": "subsets of the outputs",
    "size": "sizes of the axes",
}


def one_option() -> list[Case]:
    """Of each option."""
    return [case for option in nodes.singles() for case in of_option(option)]


def of_option(option: str) -> list[Case]:
    return [nodes.case(*chosen) for chosen in nodes.singles()[option].values()]


def many_options() -> list[Case]:
    return [nodes.case(*chosen) for chosen in nodes.table().values()]


def torch_script() -> Iterable[Case]:
    from judges import torch_exporter

    return torch_exporter.cases()


def dynamo() -> Iterator[Case]:
    """Without those with dropout, which are the same."""
    from judges import torch_exporter

    for options in torch_exporter.combinations().values():
        if not options.is_packed and not options.dropout:
            yield torch_exporter.case(options, dynamo=True)


SUITES: dict[str, Callable[[], Iterable[Case]]] = {
    "ONNX's node tests of LSTM, GRU and RNN": node_tests.cases,
    "Nodes with one option": one_option,
    "Nodes with many options": many_options,
    "Models of PyTorch's tests, exported with `dynamo=False`": torch_script,
    "The same, exported with `dynamo=True`, without packed sequences and dropout": dynamo,
}


def installed() -> dict[str, Program]:
    """The programs by their names with versions."""
    found = {}
    for name, (package, program) in PROGRAMS.items():
        if not package:
            found[name] = program
        elif importlib.util.find_spec(package):
            found[f"{name} {importlib.metadata.version(package).partition('-')[0]}"] = program
    return found


def cell(verdicts: Iterable[Verdict]) -> str:
    """The number of each kind that occurs."""
    count = Counter(each.kind for each in verdicts)
    kinds = [f"{count[kind]} {kind}" for kind in (RIGHT, REFUSED, WRONG) if count[kind]]
    return ", ".join(kinds)


def row(title: str, own: Iterable[Case], programs: Iterable[Program]) -> tuple[str, list[Verdict]]:
    """A row of the table, and the verdicts of the first program."""
    known = [*own]
    verdicts = [[cases.verdict(case, program) for case in known] for program in programs]
    cells = [title, str(len(known)), *map(cell, verdicts)]
    return f"| {' | '.join(cells)} |", verdicts[0]


def refusals(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """A line for each kind of refusals of sessions."""
    count: Counter[str] = Counter()
    for each in verdicts:
        if each.kind == REFUSED:
            reasons = [reason for part, reason in nodes.REFUSED.items() if part in each.text]
            own = each.text.partition("\n")[0].rpartition("): ")[2]
            count[reasons[0] if reasons else f"{own}."] += 1
    for reason, number in count.most_common():
        yield textwrap.fill(f"* {number}: {reason}", 100, subsequent_indent="  ")


def page() -> str:
    """The text of the page."""
    programs = installed()
    head = [f"| {' | '.join([first, 'Cases', *programs])} |" for first in ("Suite", "Option")]
    line = "|---" * (2 + len(programs)) + "|"
    found = [row(title, suite(), programs.values()) for title, suite in SUITES.items()]
    options = [
        row(TITLES.get(option, f"`{option}`"), of_option(option), programs.values())[0]
        for option in nodes.singles()
    ]
    said = [*refusals(verdict for _, verdicts in found for verdict in verdicts)]
    others = [OTHERS] if any("Runtime" in name for name in programs) else []
    others += [OTHERS_OPENVINO] if any("OpenVINO" in name for name in programs) else []
    others += [OTHERS_TRACT] if any("tract" in name for name in programs) else []
    parts = [
        HEAD,
        "\n".join([head[0], line, *(text for text, _ in found)]) + "\n",
        OPEN,
        *others,
        OPTIONS_HEAD,
        "\n".join([head[1], line, *options]) + "\n",
        "## What sessions refuse\n",
        "\n".join(said) + "\n" if said else "Nothing of these.\n",
        OTHER_SUITES,
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # PyTorch prints
        text = page()
    print(text, end="")
