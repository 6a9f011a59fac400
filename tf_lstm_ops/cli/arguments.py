"""The arguments of all commands. This module imports nothing that takes long."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from tf_lstm_ops import _library, _tensorflow
from tf_lstm_ops._version import __version__
from tf_lstm_ops.cli import UsageError, conversion, kinds, output

DTYPE_POLICIES = ("float32", "mixed_float16", "mixed_bfloat16")
LEAST_ACCURACY = 0.95  # of the demo

Arguments = argparse.Namespace
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def parser() -> argparse.ArgumentParser:
    """Makes the parser of the command line.

    Returns:
      The parser. What it returns has the attribute ``command``, the command's name or None, and
      after a command ``parser``, that of the command, ``check``, which takes the arguments and
      raises a UsageError if a value is wrong, ``module``, that of the command, and ``loads``,
      whether the module needs TensorFlow. ``check`` may change the last two.
    """
    program = argparse.ArgumentParser(
        prog="tf-lstm-ops",
        description="LSTM operations for TensorFlow and Keras.",
        epilog=output.examples(
            "tf-lstm-ops run train.py",
            "tf-lstm-ops doctor model.keras",
            "tf-lstm-ops convert model.keras fast.keras",
            "tf-lstm-ops info --json",
        ),
        formatter_class=output.Help,
    )
    program.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = program.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    of_models = (_add_run, _add_doctor, _add_convert, _add_checkpoint)
    for add in (_add_info, *of_models, _add_demo, _add_selftest):
        add(commands)
    return program


def _add(
    commands: Commands,
    name: str,
    check: Callable[[Arguments], None],
    summary: str,
    more: str = "",
    *,
    examples: tuple[str, ...],
    formatter: type[argparse.HelpFormatter] = output.Help,
) -> argparse.ArgumentParser:
    """Adds a command."""
    added = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.{more}",
        epilog=output.examples(*(f"tf-lstm-ops {name} {rest}".rstrip() for rest in examples)),
        formatter_class=formatter,
    )
    added.set_defaults(parser=added, check=check, module=name, loads=True)
    return added


def _add_info(commands: Commands) -> None:
    added = _add(
        commands,
        "info",
        _check_info,
        "print versions, native library, instruction set, threads and the state of the GPU",
        " Without TensorFlow print what sessions need.",
        examples=("", "--all --json", "--include-dir"),
    )
    added.add_argument(
        "--all",
        action="store_true",
        help="also caches, rates, and the kernels by op, device and dtype",
    )
    for name, what in (("include", "the header for C"), ("library", "the library of sessions")):
        added.add_argument(
            f"--{name}-dir", action="store_true", help=f"print only the folder with {what}"
        )
    output.add_json(added)


def _add_run(commands: Commands) -> None:
    added = _add(
        commands,
        "run",
        _check_run,
        "run a Python program whose recurrent Keras layers use the fused ops",
        " The program is not changed. Its files stay those of Keras. It runs as with python, also "
        "its child processes. At its end one line says how many layers ran fused ops.",
        examples=("train.py data.csv", "--report train.py", "-m package.train data.csv"),
    )
    added.add_argument(
        "--report", action="store_true", help="print a table of the layers at the end"
    )
    rest = argparse.REMAINDER
    added.add_argument(
        "-m",
        dest="of_module",
        metavar="MODULE",
        nargs=rest,
        default=[],
        help="run a module instead, with its arguments",
    )
    added.add_argument(
        "-c",
        dest="of_code",
        metavar="CODE",
        nargs=rest,
        default=[],
        help="run a text instead, with its arguments",
    )
    added.add_argument(
        "program", metavar="SCRIPT", nargs=rest, help="file to run, and its arguments"
    )
    added.set_defaults(loads=False)


def _add_doctor(commands: Commands) -> None:
    added = _add(
        commands,
        "doctor",
        _check_doctor,
        "tell why the layers of a model are slow, what to change and what that gains",
        " Also try the exports of the model, and look for problems in the environment. The exit "
        "status is 1 if there is something to change.",
        examples=(
            "model.keras",
            "model.keras --batch 64 --steps 200 --lengths 200 120 80",
            "model.keras --import my_package.layers",
            "saved_model --json",
        ),
        formatter=output.HelpWithDefaults,
    )
    added.add_argument(
        "model", metavar="MODEL", type=Path, help=".keras file, .h5 file or folder of a SavedModel"
    )
    added.add_argument(
        "--batch", metavar="N", type=int, default=32, help="batch size if the model leaves it open"
    )
    added.add_argument(
        "--steps", metavar="T", type=int, default=100, help="other sizes that the model leaves open"
    )
    added.add_argument(
        "--lengths",
        metavar="N",
        type=int,
        nargs="+",
        default=[],
        help="lengths of the sequences of a batch, in turn; the inputs behind are zeros",
    )
    _add_import(added)
    added.add_argument("--no-timing", action="store_true", help="do not measure")
    added.add_argument(
        "--all", action="store_true", help="also rounds, instruction set, threads and GPU kernels"
    )
    added.add_argument("--no-exports", action="store_true", help="do not try exports")
    output.add_json(added)


def _add_import(added: argparse.ArgumentParser) -> None:
    added.add_argument(
        "--import",
        metavar="MODULE",
        dest="modules",
        action="append",
        default=[],
        help="Python module that registers classes of the model; may be repeated",
    )


def _add_convert(commands: Commands) -> None:
    added = _add(
        commands,
        "convert",
        conversion.check,
        "write a model with the layers of this package, as a session or as an ONNX file",
        " The end of OUT says which. A file at OUT is replaced when the new one is complete.",
        examples=(
            "model.keras fast.keras",
            "model.keras model.session --weights int8",
            "old.h5 model.onnx",
            "model.onnx model.session",
            "fast.keras stock.keras --to stock",
        ),
    )
    added.add_argument(
        "source", metavar="IN", type=Path, help=".keras, .h5 or .onnx file with a model"
    )
    added.add_argument(
        "target", metavar="OUT", type=Path, help="file to write: .keras, .session or .onnx"
    )
    added.add_argument(
        "--to",
        choices=("fused", "stock"),
        default="fused",
        help="layers of a .keras file: of this package (fused) or of keras.layers (stock)",
    )
    added.add_argument(
        "--weights",
        choices=("float32", "bfloat16", "bfloat16_storage", "int8"),
        default="float32",
        help="type of the weights of a .session file",
    )
    _add_import(added)


def _add_checkpoint(commands: Commands) -> None:
    added = _add(
        commands,
        "checkpoint",
        _check_checkpoint,
        "list the LSTM and GRU layers in a file of trained weights, or convert one",
        " The file may be of TensorFlow, Keras or PyTorch. The exit status is 1 if there are none.",
        examples=(
            "train/model.ckpt-100000",
            "frozen.pb --layer rnn/lstm_cell --to lstm.safetensors",
            "weights.h5 --json",
        ),
    )
    added.add_argument(
        "path",
        metavar="PATH",
        type=Path,
        help="checkpoint, frozen graph (.pb), folder of a SavedModel, "
        "or .h5, .hdf5, .keras, .weights.h5 or .safetensors file",
    )
    added.add_argument("--layer", metavar="NAME", help="name of the list, or its first parts")
    added.add_argument(
        "--forget-bias",
        metavar="X",
        type=float,
        help="what to add to the bias of the forget gate; by default what the list says",
    )
    added.add_argument(
        "--to",
        metavar="FILE",
        type=Path,
        help="file to write: .safetensors (PyTorch's names) or .npz (arrays of CellWeights)",
    )
    output.add_json(added)


def _add_demo(commands: Commands) -> None:
    added = _add(
        commands,
        "demo",
        _check_demo,
        "train a speaker classifier and compare it with stock Keras, export it, reload it",
        f" Fails if the test accuracy is below {LEAST_ACCURACY:.0%} or the reloaded model predicts "
        "other values.",
        examples=("", "--epochs 5 --output results"),
        formatter=output.HelpWithDefaults,
    )
    added.add_argument(
        "--output", metavar="DIR", type=Path, default="tf_lstm_ops_demo", help="folder to write"
    )
    added.add_argument(
        "--epochs", metavar="N", type=int, default=30, help="passes over the training data"
    )
    added.add_argument(
        "--seed", metavar="N", type=int, default=0, help="seed of weights, dropout and data order"
    )
    added.add_argument(
        "--dtype-policy",
        choices=DTYPE_POLICIES,
        default=DTYPE_POLICIES[0],
        help="dtype policy of both models; mixed policies compute in 16 bits, store weights in 32",
    )


def _add_selftest(commands: Commands) -> None:
    added = _add(
        commands,
        "selftest",
        _check_selftest,
        "compare a GPU's kernels with the CPU's; if they agree, use them from now on",
        " With --device CPU compare the CPU's kernels with plain TensorFlow ops in float64.",
        examples=("", "--device CPU --json"),
    )
    added.add_argument(
        "--device", default="GPU", help="CPU, GPU, GPU:1, ... (default: %(default)s)"
    )
    added.add_argument(
        "--report",
        default="tf_lstm_ops_selftest.txt",
        metavar="FILE",
        help="the file for what is printed (default: %(default)s)",
    )
    added.add_argument(
        "--time-limit",
        default=180.0,
        type=float,
        metavar="SECONDS",
        help="of each check (default: %(default).0f)",
    )
    output.add_json(added)


def _check_info(given: Arguments) -> None:
    if given.include_dir or given.library_dir:
        if given.all or given.json:
            raise UsageError("--include-dir and --library-dir go with neither --all nor --json")
        given.module = "folders"
    elif not (_library.has_ops() and _tensorflow.is_installed()):
        given.module = "info_of_sessions"
    given.loads = given.module == "info"


def _check_run(given: Arguments) -> None:
    if not (given.of_module or given.of_code or given.program):
        raise UsageError("run needs a SCRIPT, -m and a MODULE, or -c and a CODE")


def _check_doctor(given: Arguments) -> None:
    for name in ("batch", "steps"):
        if (value := getattr(given, name)) < 1:
            raise UsageError(f"--{name} must be at least 1 but is {value}")
    if given.lengths and not 0 <= min(given.lengths) <= max(given.lengths) <= given.steps:
        raise UsageError(f"--lengths must be from 0 to --steps, which is {given.steps}")
    given.kind = kinds.kind_of(given.model)


def _check_checkpoint(given: Arguments) -> None:
    if given.to is not None and given.to.suffix not in (".safetensors", ".npz"):
        raise UsageError(f"--to must end in .safetensors or .npz but is {given.to}")
    if given.to is not None:
        conversion.require_other(given.path, given.to)
    if given.forget_bias is not None and not math.isfinite(given.forget_bias):
        raise UsageError(f"--forget-bias must be finite but is {given.forget_bias}")
    if given.forget_bias is not None and given.to is None:
        raise UsageError("--forget-bias has no effect without --to")


def _check_demo(given: Arguments) -> None:
    if given.epochs < 2:
        raise UsageError(
            f"--epochs must be at least 2 but is {given.epochs}: the first epoch is not timed"
        )
    if not 0 <= given.seed < 2**32:
        raise UsageError(f"--seed must be from 0 to {2**32 - 1} but is {given.seed}")


def _check_selftest(given: Arguments) -> None:
    if not re.fullmatch(r"(CPU|GPU)(:[0-9]{1,3})?", given.device):
        raise UsageError(f"--device must be CPU, GPU, GPU:1 or such but is {given.device!r}")
    if not 0 < given.time_limit < math.inf:
        raise UsageError(f"--time-limit must be more than 0 and finite but is {given.time_limit}")
