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
ASYNCHRONOUS = "UnimplementedError: .* Set TF_METAL_SYNCHRONOUS=1 before TensorFlow is imported"
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


@BOTH
def test_nothing_grows_over_2000_calls(check, plugin):
    """Counts of graphs, buffers, command buffers and tensor data in the fake frameworks."""
    early, late = check("memory", plugin)
    assert late == early


@BOTH
def test_graphs_are_bounded_and_freed(check, plugin):
    source = (build.ROOT / "cc" / "backends" / "metal" / "program.h").read_text()
    [kept] = re.findall(r"kCachedPrograms = (\d+);", source)
    graphs, still_right = check("cache", plugin)
    assert graphs == int(kept)
    assert still_right


# The second in a tf.function: eager mode confuses host memory for any op (docs/guide/gpu.md).
@BOTH
@pytest.mark.parametrize("name, count", [("threads", 2), ("traced_threads", 4)])
def test_threads(check, plugin, name, count):
    assert check(name, plugin) == [0] * count


@pytest.mark.parametrize("plugin, reports", [("host_address", 1), ("apple", 2)])
def test_failing_commands(check, plugin, reports):
    """Apple's plugin does not look and the kernel does not wait: a later call reports them."""
    errors, works_again = check("failure", plugin)
    kind, message = errors.pop(reports)
    assert kind == "InternalError" and "tf_lstm_ops: Metal failed: " in message
    assert errors == [None, None, None] and works_again


def test_a_graph_serves_all_seeds(check):
    first, last = check("seeds", "host_address")
    assert first == last


@pytest.mark.parametrize(
    "name, plugin, variables, error",
    [
        # MPSGraph would end the process.
        ("too_large", "host_address", {}, "InternalError: .* a tensor has 4 GiB or more"),
        ("many_rows", "host_address", {"FAKE_MACOS": "14.3"}, "InternalError: .* macOS 14.4"),
        ("many_rows", "host_address", {"FAKE_MACOS": "14.4"}, "^none$"),
        ("call_error", "host_address", {"TF_METAL_SYNCHRONOUS": "0"}, ASYNCHRONOUS),
        ("call_error", "apple", {"TF_METAL_SYNCHRONOUS": "0"}, "^none$"),  # asynchronous anyway
    ],
)
def test_errors(check, name, plugin, variables, error):
    found = check(name, plugin, **variables)
    assert re.search(error, ": ".join(found or ["none"]))


def test_the_other_plugin_is_asynchronous_by_default_with_a_newer_tensorflow(check):
    (kind, message), after = check("newer_tensorflow", "host_address")
    assert kind == "UnimplementedError" and "with this TensorFlow" in message
    assert after is None


@BOTH
def test_calls_run_in_order(check, plugin):
    assert check("order", plugin)


def test_a_stream_with_another_class_of_command_buffers(check):
    error, message = check("call_error", "apple", FAKE_PLAIN_COMMANDS="1")
    assert error == "UnimplementedError" and "no MPSCommandBuffer" in message


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
