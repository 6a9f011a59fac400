"""``tf-lstm-ops selftest``: compares a device's kernels with the CPU's."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import sys

import tensorflow as tf

from tf_lstm_ops import selftest
from tf_lstm_ops._version import __version__
from tf_lstm_ops.cli import CommandError
from tf_lstm_ops.cli.info import print_columns

_PLUGINS = ("tensorflow-metal", "tensorflow-metal-plugin")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to the command line.

    Args:
      commands: the commands of ``tf-lstm-ops``.
    """
    summary = "compare a device's kernels with the CPU's"
    parser = commands.add_parser("selftest", help=summary, description=summary)
    parser.add_argument("--device", default="GPU", help="GPU, GPU:1, ... (default: %(default)s)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs all cases for which the device has kernels and prints a table of the differences.

    Args:
      arguments: those of the command line.

    Returns:
      0, or 1 if a case fails.

    Raises:
      CommandError: there is no such device, or the package has no kernels for it.
    """
    device = arguments.device if ":" in arguments.device else f"{arguments.device}:0"
    kind, _, number = device.partition(":")
    all_devices = tf.config.list_physical_devices()
    found = [d for d in all_devices if d.device_type == kind]
    if not number.isdigit() or int(number) >= len(found):
        raise CommandError(
            f"TensorFlow has no device {device} here, only "
            f"{', '.join(d.name.removeprefix('/physical_device:') for d in all_devices)}. "
            "For a Mac, docs/guide/gpu.md lists the plugin for each version of TensorFlow."
        )
    tf.config.set_soft_device_placement(False)
    outcomes = list(selftest.outcomes(device))
    if not outcomes:
        raise CommandError(f"this package has no kernels for {device}")
    print_columns([("op", "case", "type", "difference", "allowed", ""), *map(_row, outcomes)])
    failed = [o for o in outcomes if not o.passed]
    print(f"\n{len(outcomes) - len(failed)} of {len(outcomes)} cases agree with the CPU.")
    if failed:
        _print_report(device, failed)
    return 1 if failed else 0


def _row(outcome: selftest.Outcome) -> tuple[str, ...]:
    """A row of the table."""
    return (
        outcome.case.op,
        outcome.case.what,
        outcome.dtype.name,
        "-" if outcome.error else f"{outcome.difference:.1e}",
        f"{selftest.TOLERANCES[outcome.dtype]:.0e}",
        "ok" if outcome.passed else "FAILED",
    )


def _print_report(device: str, failed: list[selftest.Outcome]) -> None:
    print("Please report the table above together with these lines:\n")
    print(f"  tf_lstm_ops {__version__}, TensorFlow {tf.__version__}, {_plugin()}")
    print(f"  Python {platform.python_version()}, {platform.platform()}")
    print(f"  {device}: {_description(device)}")
    for outcome in failed:
        if outcome.error:
            print(f"  {outcome.case.op}, {outcome.case.what}, {outcome.dtype.name}:")
            print(f"    {outcome.error}")
    sys.stdout.flush()


def _plugin() -> str:
    for name in _PLUGINS:
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return "no Metal plugin"


def _description(device: str) -> str:
    kind, _, number = device.partition(":")
    physical = tf.config.list_physical_devices(kind)[int(number)]
    return str(tf.config.experimental.get_device_details(physical).get("device_name", "unknown"))
