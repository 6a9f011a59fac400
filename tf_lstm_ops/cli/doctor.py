"""``tf-lstm-ops doctor``: tells which path each layer of a model takes and what to change."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from tf_lstm_ops.cli import (
    doctor_environment,
    doctor_model,
    doctor_text,
    doctor_whole,
    info,
    messages,
    output,
)
from tf_lstm_ops.cli import doctor_exports as exports
from tf_lstm_ops.cli import doctor_layers as layers
from tf_lstm_ops.cli import doctor_timing as timing
from tf_lstm_ops.keras import class_names


def run(arguments: argparse.Namespace) -> int:
    """Examines a model and the environment.

    Args:
      arguments: those of the command line.

    Returns:
      0, or 1 if there is something to change.

    Raises:
      CommandError: Keras cannot load the model, or a module cannot be imported.
    """
    with output.json_only(arguments.json):
        doctor_model.import_modules(arguments.modules)
        report = _examine(arguments)
        output.progress("")
    if arguments.json:
        output.print_json(report)
    else:
        print("\n".join(map(output.coloured, doctor_text.lines(report, arguments.all))))
    return 1 if report["to_change"] else 0


def _examine(arguments: argparse.Namespace) -> dict[str, Any]:
    """The document of ``tf-lstm-ops doctor --json``."""
    report: dict[str, Any] = {
        "model": {
            "path": str(arguments.model),
            "format": arguments.kind,
            "name": None,
            "keras_version": None,
        },
        "sizes": {name: getattr(arguments, name) for name in ("batch", "steps", "lengths")},
        "imports": arguments.modules,
        "capacity": None,
        "whole_model": None,
        "layers": [],
        "exports": [],
        "saved_model": None,
    }
    if arguments.kind == "saved_model":
        output.progress(f"loads and runs {arguments.model} in another process")
        report["saved_model"] = doctor_model.saved_model(arguments.model)
    else:
        output.progress(f"loads {arguments.model}")
        model = doctor_model.load(arguments.model)
        report["model"]["keras_version"] = doctor_model.old_version(arguments.model)
        report["model"]["name"] = model.name
        report["layers"] = list(_layers(model, arguments))
        output.progress("measures the whole model")
        sizes = timing.Sizes(arguments.batch, arguments.steps, tuple(arguments.lengths))
        is_old = report["model"]["keras_version"] is not None
        report["whole_model"] = doctor_whole.examine(
            model, sizes, not arguments.no_timing, is_old=is_old
        )
        if any(each["gain"] for each in (report["whole_model"], *report["layers"])):
            output.progress("measures the capacity of the processors")
            found = timing.capacity()
            report["capacity"] = {**found._asdict(), "note": messages.busy(found)}
        for name in () if arguments.no_exports else exports.EXPORTS:
            output.progress(f"tries the export {name}")
            report["exports"].append(exports.attempt(name, model)._asdict())
    problems = [problem._asdict() for problem in doctor_environment.problems()]
    report["environment"] = {**info.facts(), "problems": problems}
    report["to_change"] = _count_changes(report["layers"]) + len(problems)
    report["to_change"] += report["model"]["keras_version"] is not None
    report["to_change"] += len({each["change"] for each in report["exports"]} - {None})
    if arguments.kind == "saved_model":
        report["to_change"] += len(report["saved_model"]["changes"])
    return report


def _layers(model: Any, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The part "layers" of the document."""
    found, halves = layers.findings(model), layers.halves(model)
    sizes = timing.Sizes(arguments.batch, arguments.steps)
    calls, why = {}, "the model does not call it"
    try:
        with output.silence():
            calls = timing.calls(model, [finding.layer for finding in found], sizes)
    except Exception as error:  # a layer of the user's may raise anything
        why = f"the model cannot be traced: {messages.one_line(error)}"
    for finding in found:
        call = calls.get(id(finding.layer))
        document = {
            "name": finding.name,
            "part_of": halves.get(finding.name),
            "class": class_names.public(type(finding.layer)),
            "dtype": finding.layer.compute_dtype,
            "input_shape": call and call.input_shape,
            "output_shape": call and call.output_shape,
            "path": finding.path,
            "reason": finding.reason,
            "change": finding.change and finding.change.sentence,
            "same_results": finding.change and finding.change.same_results,
            "gain": None,
            "not_measured": None,
        }
        if finding.change and arguments.no_timing:
            document["not_measured"] = "--no-timing"
        elif finding.change and call is None:
            document["not_measured"] = why
        elif finding.change:
            output.progress(f"measures {finding.name}")
            document |= _measured(finding.layer, finding.change.replacement, call)
        yield document


def _measured(layer: Any, replacement: Any, call: Any) -> dict[str, Any]:
    """The measurement of a layer: its "gain", or why it is "not_measured"."""
    try:
        with output.silence():
            gains = timing.measure(layer, replacement, call)
    except Exception as error:  # a layer of the user's may raise anything
        return {"not_measured": messages.one_line(error)}
    return {"gain": {mode: gain.document() for mode, gain in gains.items()}}


def _count_changes(found: list[dict[str, Any]]) -> int:
    """The number of changes; the halves of a Bidirectional have one if it is the same."""
    wanted = [layer for layer in found if _is_to_change(layer)]
    single = [layer for layer in wanted if layer["part_of"] is None]
    halves = {(layer["part_of"], layer["change"]) for layer in wanted if layer["part_of"]}
    return len(single) + len(halves)


def _is_to_change(layer: dict[str, Any]) -> bool:
    """Whether a layer has a change that was not measured to be slower in both modes."""
    gains = (layer["gain"] or {}).values()
    return layer["change"] is not None and not (gains and all(g["ratio"] <= 1 for g in gains))
