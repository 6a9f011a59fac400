"""The emulated plugin's stream against the code of Apple's plugin.

The test downloads tensorflow-metal from PyPI and runs its stream on an emulated processor. Both
streams get the same messages; what happens to their command buffers is compared.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from metal import unicorn_stream

pytestmark = [pytest.mark.metal, pytest.mark.downloads("tensorflow-metal")]

PLUGIN = "tensorflow-metal==1.2.0"
USE, COMMIT, WAIT = unicorn_stream.METHODS
PATTERNS = {
    "calls of our kernels": [USE, COMMIT] * 5,
    "work of the plugin, then our kernels": [USE, USE, COMMIT, USE, USE, USE, COMMIT, COMMIT],
    "a command buffer of another class": [USE, WAIT, USE, COMMIT, USE, WAIT],
    "a wait resets the count": [USE, COMMIT, USE, WAIT, USE, COMMIT, USE, COMMIT],
    "nothing to commit": [COMMIT, COMMIT, COMMIT, USE, COMMIT, WAIT, WAIT, USE, COMMIT],
}
# Prints the traces of the emulated stream. TensorFlow's functions come with its library.
EMULATED = """
import ctypes, sys, tensorflow
plugin = ctypes.CDLL(sys.argv[1])
plugin.apple_stream_trace.restype = ctypes.c_char_p
for messages in sys.argv[2:]:
    print(plugin.apple_stream_trace(messages.encode()).decode())
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("apple")
    options = ["--platform=macosx_12_0_arm64", "--python-version=3.11", "--only-binary=:all:"]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *options]
    subprocess.run([*pip, f"--dest={folder}", PLUGIN], check=True)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        return Path(files.extract("tensorflow-plugins/libmetal_plugin.dylib", folder))


def emulated(plugin: Path) -> dict[str, list[str]]:
    """The traces of all patterns."""
    command = [sys.executable, "-c", EMULATED, str(plugin), *map(" ".join, PATTERNS.values())]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    traces = done.stdout.split("\n\n")[:-1]
    return {name: trace.splitlines() for name, trace in zip(PATTERNS, traces, strict=True)}


def apples(library: Path, messages: list[str]) -> list[str]:
    stream = unicorn_stream.Stream(library)
    for message in messages:
        stream(message)
    return stream.trace


def test_same_trace(library, plugins):
    """So work is in the open command buffer, and one commit may not commit it."""
    want = {name: apples(library, messages) for name, messages in PATTERNS.items()}
    assert emulated(plugins["apple"]) == want
