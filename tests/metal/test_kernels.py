"""Memory, threads, errors and names of the Metal kernels."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from metal import build

pytestmark = pytest.mark.metal

PROGRAM = Path(__file__).with_name("kernels_program.py")
ASYNCHRONOUS = "Set TF_METAL_SYNCHRONOUS=1 before TensorFlow is imported"
BOTH = pytest.mark.parametrize("plugin", build.PLUGINS)


@pytest.fixture
def check(kernels: Path, plugins: dict[str, Path], fakes: Path):
    """The result of one of the program's checks with a plugin, or with none."""

    def run(name: str, plugin: str, package: str = "tf_lstm_ops", **variables: str):
        result = subprocess.run(
            [sys.executable, str(PROGRAM), name, str(plugins.get(plugin, "")), str(fakes), package],
            env={
                **os.environ,
                "TF_LSTM_OPS_METAL_LIBRARY": str(kernels),
                "TF_LSTM_OPS_GPU": "1",
                **variables,
            },
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="module")
def cached_programs() -> int:
    """The number of graphs that the cache keeps, from the source."""
    source = (build.ROOT / "cc" / "backends" / "metal" / "program.h").read_text()
    found = re.search(r"kCachedPrograms = (\d+);", source)
    assert found
    return int(found[1])


@BOTH
def test_nothing_grows_over_2000_calls(check, plugin):
    """Counts of graphs, buffers, command buffers and tensor data in the fake frameworks."""
    early, late = check("memory", plugin)
    assert late == early


@BOTH
def test_graphs_are_bounded_and_freed(check, plugin, cached_programs):
    graphs, still_right = check("cache", plugin)
    assert graphs == cached_programs
    assert still_right


@BOTH
def test_two_threads(check, plugin):
    assert check("threads", plugin) == [0, 0]


@BOTH
def test_threads_with_lengths_of_their_own(check, plugin):
    """In a tf.function: eager mode confuses host memory for any op (docs/guide/gpu.md)."""
    assert check("traced_threads", plugin) == [0, 0, 0, 0]


def test_failing_commands(check):
    (kind, message), works_again = check("failure", "host_address")
    assert kind == "InternalError" and "tf_lstm_ops: Metal failed: " in message
    assert works_again


def test_a_later_call_reports_failed_commands_of_apples_plugin(check):
    """The kernel does not wait, and the plugin does not look."""
    _, failed, reported, after = check("late_failure", "apple")
    assert failed is None and after is None
    assert reported[0] == "InternalError" and "tf_lstm_ops: Metal failed: " in reported[1]


def test_a_graph_serves_all_seeds(check):
    first, last = check("seeds", "host_address")
    assert first == last


@pytest.mark.parametrize(
    "name, variables, kind, message",
    [
        # MPSGraph would end the process.
        ("too_large", {}, "InternalError", "a tensor has 4 GiB or more"),
        ("many_rows", {"FAKE_MACOS": "14.3"}, "InternalError", "needs macOS 14.4"),
        ("call_error", {"TF_METAL_SYNCHRONOUS": "0"}, "UnimplementedError", ASYNCHRONOUS),
    ],
)
def test_refused_calls(check, name, variables, kind, message):
    found = check(name, "host_address", **variables)
    assert found[0] == kind and message in found[1]


@pytest.mark.parametrize(
    "name, plugin, variables",
    [
        ("many_rows", "host_address", {"FAKE_MACOS": "14.4"}),
        ("call_error", "apple", {"TF_METAL_SYNCHRONOUS": "0"}),  # asynchronous anyway
    ],
)
def test_accepted_calls(check, name, plugin, variables):
    assert check(name, plugin, **variables) is None


def test_the_other_plugin_is_asynchronous_by_default_with_a_newer_tensorflow(check):
    (kind, message), after = check("newer_tensorflow", "host_address")
    assert kind == "UnimplementedError" and "with this TensorFlow" in message
    assert after is None


@BOTH
def test_calls_run_in_order(check, plugin):
    assert check("order", plugin)


def test_a_stream_with_another_class_of_command_buffers(check):
    """Its work is committed before ours, and ours is waited for."""
    assert check("order", "apple", FAKE_PLAIN_COMMANDS="1")


def test_the_ops_with_kernels_are_those_that_the_package_assumes(check):
    """And none has a stock name."""
    registered, assumed = check("registered", "host_address")
    assert registered == assumed


@BOTH
def test_refused_attributes(check, plugin):
    """Calls after a refused one get their own arguments, including those in host memory."""
    gru, dropout = check("refusals", plugin)
    assert gru[0] == "UnimplementedError" and 'tf.device("CPU")' in gru[1]
    assert dropout[0] == "InvalidArgumentError"
    assert "dropout must be between 0 and 1 but is 2" in dropout[1]
    for *_, difference in (gru, dropout):
        assert difference < 1e-6  # a few sums of a dozen float32 products


@BOTH
def test_an_import_changes_no_stock_layer(check, plugin):
    """The results are right, or the call has an error without the package, too."""
    variables = {"TF_LSTM_OPS_METAL_LIBRARY": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    wanted, before, after = (
        check("stock_layers", *loaded, **variables)
        for loaded in (("", ""), (plugin, ""), (plugin, "tf_lstm_ops"))
    )
    for call, want in wanted.items():
        if isinstance(after[call], list) or isinstance(before[call], list):
            assert after[call] == pytest.approx(want, abs=1e-5), call
