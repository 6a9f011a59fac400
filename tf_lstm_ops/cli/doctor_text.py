"""The report of ``tf-lstm-ops doctor`` as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tf_lstm_ops.cli.output import wrapped

_WORDS = {"inference": "inference", "training": "training step"}


def lines(report: dict[str, Any], is_long: bool = False) -> Iterator[str]:
    """The report in lines as wide as the terminal.

    Args:
      report: the document of ``tf-lstm-ops doctor --json``.
      is_long: whether to add what developers need.

    Yields:
      The lines.
    """
    model, sizes = report["model"], report["sizes"]
    yield f"{model['path']}" + (f": {model['name']}" if model["name"] else ": a SavedModel")
    if report["whole_model"]:
        yield from _of_whole_model(report)
        yield from _of_measurement(report)
    if version := model["keras_version"]:
        words = f"Keras {version} wrote the file. Keras 3 does not load it, or computes otherwise."
        yield from wrapped("  ", words)
        yield from wrapped(
            "    change  ", f"load it with tf_lstm_ops.keras.load_h5({model['path']!r})"
        )
    if report["saved_model"]:
        yield from _of_saved_model(report["saved_model"])
    else:
        yield ""
        yield from wrapped(
            "",
            f"Recurrent layers{' that load_h5 makes' if version else ''} (where the model leaves "
            f"sizes open: batch {sizes['batch']}, {sizes['steps']} steps)",
        )
        for layer in _merged(report["layers"]):
            yield from _of_layer(layer, is_long)
        if not report["layers"]:
            yield "  none"
    yield from _to_paste(report)
    if report["exports"]:
        yield from _of_exports(report["exports"])
    yield from _of_environment(report["environment"], is_long)
    yield ""
    yield _summary(report)


def _of_whole_model(report: dict[str, Any]) -> Iterator[str]:
    """The first lines: what the conversion of all layers gains."""
    found, layers = report["whole_model"], report["layers"]
    are_ours = all(str(layer["class"]).startswith("tf_lstm_ops.") for layer in layers)
    if fast := found["accelerated"]:
        yield from wrapped("  ", f"With tf-lstm-ops run or accelerate(): {fast['layers']}")
        for mode, gain in fast["gain"].items():
            words = f"{_times(gain)} for a batch of {found['batch']}, {_ratio(gain)}"
            yield from wrapped(f"  {mode:7}  ", words)
        yield "  With convert_model"
    if found["gain"]:
        for mode, name in (("inference", "model"), ("fit", "fit")):
            if gain := found["gain"].get(mode):
                words = f"{_times(gain)} for a batch of {found['batch']}, {_ratio(gain)}"
                yield from wrapped(f"  {name:6}  ", words)
            else:
                why = found["not_measured"] or "it has no weights to train"
                yield from wrapped(f"  {name:6}  ", f"not measured: {why}")
    elif not layers:
        yield from wrapped("  model   ", "it has no recurrent layers")
    elif not found["replaced"] and are_ours:
        yield from wrapped("  model   ", "converted already: its layers are of this package")
    else:
        yield from wrapped("  model   ", f"not measured: {found['not_measured']}")


def _of_measurement(report: dict[str, Any]) -> Iterator[str]:
    """What was measured, and whether other processes disturbed it."""
    if report["whole_model"]["gain"]:
        words = (
            f"random inputs {_padding(report['sizes']['lengths'])}, of {report['sizes']['steps']} "
            "steps where the model leaves them open (--steps); in brackets the least and the "
            "greatest ratio of a round"
        )
        if report["model"]["keras_version"]:
            words += "; stock layers with the same weights → the layers that load_h5 makes"
        yield from wrapped("          ", words)
    if report["capacity"] and report["capacity"]["note"]:
        yield from wrapped("  busy    ", report["capacity"]["note"])


def _padding(lengths: list[int]) -> str:
    if not lengths:
        return "without padding"
    return f"with zeros behind {', '.join(map(str, lengths))} steps (--lengths)"


def _times(gain: dict[str, float]) -> str:
    return f"{gain['now_ms']:.3g} → {gain['after_ms']:.3g} ms"


def _ratio(gain: dict[str, Any]) -> str:
    low, high = gain["ratio_range"]
    of_rounds = "one round" if gain["rounds"] == 1 else f"{low:.2g} to {high:.2g}"
    return f"{gain['ratio']:.2g} times as fast ({of_rounds})"


def _merged(layers: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The layers with the halves of each Bidirectional as one, if the same holds for both."""
    halves: dict[str, list[dict[str, Any]]] = {}
    for layer in layers:
        if layer["part_of"]:
            halves.setdefault(layer["part_of"], []).append(layer)
    for layer in layers:
        pair = halves.get(layer["part_of"] or "", [])
        if len(pair) != 2 or any(pair[0][key] != pair[1][key] for key in ("reason", "change")):
            yield layer
        elif layer is pair[0]:
            yield {
                **layer,
                "name": layer["part_of"],
                "class": f"Bidirectional of {layer['class']}",
                "gain": _of_both(pair),
            }


def _of_both(pair: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The gain of two halves that run one after the other."""
    if not all(half["gain"] for half in pair):
        return None
    first, second = (half["gain"] for half in pair)
    both = {}
    for mode in first:
        now, after = (first[mode][key] + second[mode][key] for key in ("now_ms", "after_ms"))
        lows, highs = zip(first[mode]["ratio_range"], second[mode]["ratio_range"], strict=True)
        both[mode] = {
            "now_ms": now,
            "after_ms": after,
            "ratio": now / after,
            "ratio_range": [min(lows), max(highs)],  # that of the sum lies within
            "rounds": min(first[mode]["rounds"], second[mode]["rounds"]),
        }
    return both


def _of_layer(layer: dict[str, Any], is_long: bool) -> Iterator[str]:
    shapes = "shapes unknown"
    if layer["input_shape"]:
        shapes = f"{layer['input_shape']} to {layer['output_shape']}"
    if str(layer["class"]).startswith("Bidirectional of"):
        shapes += " each"
    yield from wrapped(f"  {layer['name']}: ", f"{layer['class']}, {layer['dtype']}, {shapes}")
    yield f"    path    {layer['path']}"
    if layer["reason"]:
        yield from wrapped("    reason  ", layer["reason"])
    if layer["change"]:
        same = "; the results stay the same" if layer["same_results"] else ""
        yield from wrapped("    change  ", f"{layer['change']}{same}")
    for mode, gain in (layer["gain"] or {}).items():
        rounds = f" (medians of {gain['rounds']})" if is_long else ""
        yield from wrapped(
            "    gain    ",
            f"{_WORDS[mode]} {_times(gain)}, {_ratio(gain)}{rounds}",
        )
    if layer["not_measured"]:
        yield from wrapped("    gain    ", f"not measured: {layer['not_measured']}")


def _to_paste(report: dict[str, Any]) -> Iterator[str]:
    """The command and the lines of Python that convert the model, if that changes it."""
    whole, model = report["whole_model"], report["model"]
    if not whole or not (whole["replaced"] or model["keras_version"]):
        return
    is_slower = whole["gain"] and all(gain["ratio"] <= 1 for gain in whole["gain"].values())
    if is_slower and not model["keras_version"]:
        return
    if whole["accelerated"]:
        yield "\nTo run a program as it is, on the fused ops"
        yield "  tf-lstm-ops run PROGRAM.py"
    path = Path(model["path"])
    new = str(path.with_name(f"{path.stem}_fast.keras"))
    words = ["tf-lstm-ops", "convert", str(path), new]
    words += [word for name in report["imports"] for word in ("--import", name)]
    yield "\nTo change it, in a shell"
    yield f"  {shlex.join(words)}"
    yield "or in Python"
    imports = [f"  import {name}" for name in report["imports"]]
    if model["keras_version"]:
        yield from imports
        yield "  from tf_lstm_ops.keras import load_h5"
        yield f"  model = load_h5({str(path)!r})"
    else:
        yield from ["  import keras", *imports, "  from tf_lstm_ops.keras import convert_model"]
        yield f"  model = convert_model(keras.models.load_model({str(path)!r}))"
    yield f"  model.save({new!r})"


def _of_exports(found: list[dict[str, Any]]) -> Iterator[str]:
    yield "\nExports"
    for each in found:
        if each["change"] is None:
            no = "no" if each["name"] == "session" else "does not work"
            reason = f": {each['reason']}" if each["reason"] else ""
            reason = reason.replace(": a session does not compute layer", ": layer")
            words = "works" if each["works"] else no
            yield from wrapped(f"  {each['name']:26}  ", f"{words}{reason}")
    for change in dict.fromkeys(each["change"] for each in found if each["change"]):
        same = [each for each in found if each["change"] == change]
        yield from wrapped("  ", f"{', '.join(each['name'] for each in same)}: not working")
        yield from wrapped("    reason  ", str(same[0]["reason"]))
        yield from wrapped("    change  ", change)


def _of_saved_model(found: dict[str, Any]) -> Iterator[str]:
    yield "\nOps"
    for key, words in (
        ("own_ops", "of this package"),
        ("recurrent_ops", "recurrent, of TensorFlow"),
        ("loops", "loops"),
    ):
        yield from wrapped(f"  {words:26}  ", ", ".join(found[key]) or "none")
    for change in found["changes"]:
        yield from wrapped("    change  ", change)
    yield "\nWithout this package"
    answers = {True: "yes", False: "no", None: "not known"}
    yield f"  loads                       {answers[found['loads_without_package']]}"
    yield f"  runs on the CPU             {answers[found['runs_on_cpu_without_package']]}"
    if found["error_without_package"]:
        yield from wrapped("    reason  ", found["error_without_package"])
    yield ""
    yield from wrapped(
        "", "A SavedModel has no Keras layers. For these, give the .keras file of the model."
    )


def _of_environment(found: dict[str, Any], is_long: bool) -> Iterator[str]:
    yield "\nEnvironment"
    for_developers = (
        ("instruction set", found["instruction_set"]),
        ("threads", str(found["threads"])),
        ("GPU kernels", found["gpu_kernels"]["reason"]),
    )
    for name, value in (
        ("TensorFlow", found["tensorflow"]),
        ("Keras", f"{found['keras']} ({found['keras_backend']} backend)"),
        ("GPU", ", ".join(found["gpus"]) or "none that TensorFlow can use"),
        *(for_developers if is_long else ()),
    ):
        yield from wrapped(f"  {name:15}  ", value)
    for each in found["problems"]:
        yield from wrapped("  problem          ", each["problem"])
        yield from wrapped("    change         ", each["change"])


def _summary(report: dict[str, Any]) -> str:
    """How many things are to change; if none, how many exports do not work nevertheless."""
    if count := report["to_change"]:
        return "1 thing to change." if count == 1 else f"{count} things to change."
    failed = sum(not each["works"] for each in report["exports"])
    if not failed:
        return "Nothing to change."
    words = "1 export does" if failed == 1 else f"{failed} exports do"
    return f"Nothing to change in the layers. {words} not work."
