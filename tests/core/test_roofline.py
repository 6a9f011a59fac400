"""The measurements of the roofline: wrong arguments, and too little memory, are Python errors."""

import subprocess
import sys

import pytest

from tf_lstm_ops import _library

# Without memory for the buffers; without memory for the stacks of threads.
PROGRAM = """
import resource, sys
from tf_lstm_ops import _library
_library.cpu_info()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), resource.RLIM_INFINITY))
for call in (
    lambda: _library.measure_read_bandwidth(1 << 40, 1),
    lambda: _library.measure_flops(256),
):
    try:
        call()
    except RuntimeError as error:
        print(error)
"""


@pytest.mark.parametrize("threads", [0, -1, 257, 1 << 32])
def test_number_of_threads(threads: int) -> None:
    message = f"threads must be from 1 to 256, but is {threads}"
    with pytest.raises(ValueError, match=message):
        _library.measure_flops(threads)
    with pytest.raises(ValueError, match=message):
        _library.measure_read_bandwidth(1 << 20, threads)


@pytest.mark.parametrize("size", [0, -1, 1 << 63])
def test_size(size: int) -> None:
    with pytest.raises(ValueError, match=f"size must be from 1 to 2\\*\\*62, but is {size}"):
        _library.measure_read_bandwidth(size, 1)


@pytest.mark.parametrize("threads", [0, -1])
def test_no_exception_leaves_the_library(threads: int) -> None:
    """C has none. NaN says that there is no result."""
    native = _library._native()
    for rate in (
        native.tf_lstm_ops_measure_flops(threads),
        native.tf_lstm_ops_measure_read_bandwidth(1 << 20, threads),
        native.tf_lstm_ops_measure_read_bandwidth(0, 1),
    ):
        assert rate != rate


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.full
def test_too_little_memory() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        f"no memory for {1 << 40} bytes and 1 threads",
        "no memory for 256 threads",
    ]
