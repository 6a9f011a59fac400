"""``tf-lstm-ops doctor``: tells which path each layer of a model takes and what to change."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from tf_lstm_ops.cli import doctor_environment, doctor_model, info, messages, output
from tf_lstm_ops.cli import doctor_exports as exports
from tf_lstm_ops.cli import doctor_layers as layers
from tf_lstm_ops.cli import doctor_timing as timing


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
        print("\n".join(_lines(report)))
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
        "sizes": {"batch": arguments.batch, "steps": arguments.steps},
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
            "class": layers.class_name(finding.layer),
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
    return {
        "gain": {
            mode: {
                "now_ms": gain.now,
                "after_ms": gain.after,
                "ratio": gain.ratio,
                "rounds": gain.rounds,
            }
            for mode, gain in gains.items()
        }
    }


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


def _lines(report: dict[str, Any]) -> Iterator[str]:
    """The report as text."""
    model, sizes = report["model"], report["sizes"]
    yield f"{model['path']}" + (f": {model['name']}" if model["name"] else ": a SavedModel")
    if version := model["keras_version"]:
        yield f"  Keras {version} wrote the file. Keras 3 does not load it, or computes otherwise."
        yield f"    change  load it with tf_lstm_ops.keras.load_h5({model['path']!r})"
    if report["saved_model"]:
        yield from _lines_of_saved_model(report["saved_model"])
    else:
        yield (
            f"\nRecurrent layers (where the model leaves sizes open: batch {sizes['batch']}, "
            f"{sizes['steps']} steps)"
        )
        for layer in report["layers"]:
            yield from _lines_of_layer(layer)
        if not report["layers"]:
            yield "  none"
    if report["exports"]:
        yield from _lines_of_exports(report["exports"])
    yield from _lines_of_environment(report["environment"])
    yield f"\n{_summary(report)}"


def _summary(report: dict[str, Any]) -> str:
    """How many things are to change; if none, how many exports do not work nevertheless."""
    if count := report["to_change"]:
        return "1 thing to change." if count == 1 else f"{count} things to change."
    failed = sum(not each["works"] for each in report["exports"])
    if not failed:
        return "Nothing to change."
    words = "1 export does" if failed == 1 else f"{failed} exports do"
    return f"Nothing to change in the layers. {words} not work."


def _lines_of_layer(layer: dict[str, Any]) -> Iterator[str]:
    shapes = "shapes unknown"
    if layer["input_shape"]:
        shapes = f"{layer['input_shape']} to {layer['output_shape']}"
    yield f"  {layer['name']}: {layer['class']}, {layer['dtype']}, {shapes}"
    yield f"    path    {layer['path']}"
    if layer["reason"]:
        yield f"    reason  {layer['reason']}"
    if layer["change"]:
        same = "; the results stay the same" if layer["same_results"] else ""
        yield f"    change  {layer['change']}{same}"
    for mode, gain in (layer["gain"] or {}).items():
        name = {"inference": "inference", "training": "training step"}[mode]
        yield (
            f"    gain    {name} {gain['now_ms']:.3g} ms, after the change {gain['after_ms']:.3g} "
            f"ms: {gain['ratio']:.2g} times as fast (medians of {gain['rounds']})"
        )
    if layer["not_measured"]:
        yield f"    gain    not measured: {layer['not_measured']}"


def _lines_of_exports(found: list[dict[str, Any]]) -> Iterator[str]:
    yield "\nExports (tf_lstm_ops.export)"
    for each in found:
        if each["change"] is None:
            words = "works" if each["works"] else "does not work"
            reason = f": {each['reason']}" if each["reason"] else ""
            yield f"  {each['name']:26}  {words}{reason}"
    for change in dict.fromkeys(each["change"] for each in found if each["change"]):
        same = [each for each in found if each["change"] == change]
        yield f"  {', '.join(each['name'] for each in same)}: not working"
        yield f"    reason  {same[0]['reason']}"
        yield f"    change  {change}"


def _lines_of_saved_model(found: dict[str, Any]) -> Iterator[str]:
    yield "\nOps"
    for key, words in (
        ("own_ops", "of this package"),
        ("recurrent_ops", "recurrent, of TensorFlow"),
        ("loops", "loops"),
    ):
        yield f"  {words:26}  {', '.join(found[key]) or 'none'}"
    for change in found["changes"]:
        yield f"    change  {change}"
    yield "\nWithout this package"
    answers = {True: "yes", False: "no", None: "not known"}
    yield f"  loads                       {answers[found['loads_without_package']]}"
    yield f"  runs on the CPU             {answers[found['runs_on_cpu_without_package']]}"
    if found["error_without_package"]:
        yield f"    reason  {found['error_without_package']}"
    yield "\nA SavedModel has no Keras layers. For these, give the .keras file of the model."


def _lines_of_environment(found: dict[str, Any]) -> Iterator[str]:
    yield "\nEnvironment"
    for name, value in (
        ("TensorFlow", found["tensorflow"]),
        ("Keras", f"{found['keras']} ({found['keras_backend']} backend)"),
        ("instruction set", found["instruction_set"]),
        ("threads", found["threads"]),
        ("GPU", ", ".join(found["gpus"]) or "none that TensorFlow can use"),
        ("GPU kernels", found["gpu_kernels"]["reason"]),
    ):
        yield f"  {name:15}  {value}"
    for each in found["problems"]:
        yield f"  problem          {each['problem']}"
        yield f"    change         {each['change']}"
