"""dlclose of a library whose threads wait for work."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from session import c_library as c
from session import layers
from session import session_file as f

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="an option of ELF")

PROGRAM = """
import _ctypes, os, sys, time
import numpy as np
from pathlib import Path
from session import c_library as c
libraries, path = sys.argv[2:], Path(sys.argv[1])
x = np.ones((64, 20, 5), np.float32)
for library in libraries:
    results = []
    for _ in range(5):
        loaded = c.load(library)
        session = c.Session(loaded, path, threads=4)
        results.append(session(x).tobytes())
        del session
        _ctypes.dlclose(loaded._handle)
        time.sleep(0.02)  # the threads go to sleep
    assert len(set(results)) == 1
with open("/proc/self/maps") as file:
    mapped = file.read()
assert all(library in mapped for library in libraries)
workers = [Path(f"/proc/self/task/{task}/comm") for task in os.listdir("/proc/self/task")]
assert sum(name.read_text() == "tf_lstm_ops\\n" for name in workers) == 3 * len(libraries)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model in which a call with 64 rows uses all its threads."""
    path = tmp_path_factory.mktemp("unloading") / "model.bin"
    rng = np.random.default_rng(0)
    path.write_bytes(f.write([layers.recurrent(rng, f.LSTM, layers.INPUTS, 512)]))
    return path


def unload(file: Path, *libraries: Path) -> None:
    start = f"import sys\nsys.path[:0] = {sys.path!r}\n"
    command = [sys.executable, "-c", start + PROGRAM, str(file), *map(str, libraries)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
def test_the_shared_library(file: Path) -> None:
    unload(file, c.path().resolve())


@pytest.mark.full
def test_a_plugin_with_the_static_library(file: Path, tmp_path: Path) -> None:
    """The options of the package's file for pkg-config make the plugin stay."""
    libraries = c.path().resolve().parent
    description = libraries / "pkgconfig" / "tf_lstm_ops_inference_static.pc"
    if not description.exists() or shutil.which("cc") is None:
        pytest.skip("no static library or no C compiler")
    lines = [line for line in description.read_text().splitlines() if line.startswith("Libs:")]
    options = lines[0].removeprefix("Libs:").replace("${libdir}", str(libraries)).split()
    plugin = tmp_path / "plugin.so"
    whole = ["-Wl,--whole-archive", *options[:2], "-Wl,--no-whole-archive", *options[2:]]
    subprocess.run(["cc", "-shared", "-o", str(plugin), *whole], check=True)
    unload(file, plugin)


def test_the_libraries_of_the_ops() -> None:
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed (it is part of binutils)")
    for library in sorted(c.path().resolve().parent.glob("*.so")):
        command = ["readelf", "-dW", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "NODELETE" in done.stdout, library
