"""cc/session/CMakeLists.txt: CMake builds the library of sessions as native.py does."""

import json
import platform
import re
import runpy
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = "libtf_lstm_ops_inference.so"
PROGRAM = """
#include <tf_lstm_ops.h>
int main(void) { return tf_lstm_ops_api_version() != TF_LSTM_OPS_API_VERSION; }
"""
pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="compared on Linux"),
    pytest.mark.skipif(shutil.which("cmake") is None, reason="CMake is not installed"),
]


def run(*command: object) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def configure(folder: Path, *options: str) -> None:
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    record = "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"
    run("cmake", "-S", ROOT / "cc" / "session", "-B", folder, record, *launcher, *options)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "riscv64"])
def test_compiles_the_same_files_with_the_same_options(
    machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a build without TensorFlow; but the folders of headers, which are absolute paths and equal
    for all files."""
    monkeypatch.setenv("TF_LSTM_OPS_SESSIONS_ONLY", "1")
    configure(tmp_path, "-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={machine}")
    native = runpy.run_path(str(ROOT / "build_defs" / "native.py"))
    wanted = Counter(
        (unit.source, tuple(flag for flag in unit.flags if not flag.startswith("-I")))
        for unit in native["inference_units"](machine)
    )
    entries = json.loads((tmp_path / "compile_commands.json").read_text())
    found = Counter()
    for entry in entries:
        options = re.sub(r" -o \S+ -c .*", "", entry["command"]).split()
        flags = [o for o in options if o.startswith("-") and not o.startswith("-I")]
        found[Path(entry["file"]).relative_to(ROOT).as_posix(), tuple(flags)] += 1
    assert len(wanted) > 20
    assert found == wanted


def test_links_with_the_same_options_and_order(tmp_path: Path) -> None:
    """The order of the instruction sets decides which copy of an inline function is kept."""
    configure(tmp_path)
    native = runpy.run_path(str(ROOT / "build_defs" / "native.py"))
    file = tmp_path / "CMakeFiles" / "tf_lstm_ops_inference.dir" / "link.txt"
    if not file.exists():
        pytest.skip("the generator writes no commands of make")
    command = file.read_text().replace(f"{ROOT}/", "").split()
    assert set(native["FLAGS"]["INFERENCE_LINKOPTS_LINUX"]) - set(command) == set()
    sets = re.findall(r"CMakeFiles/(?:simd_)?(\w+)\.dir", " ".join(command))
    machine = platform.machine()
    simd = "SIMD_X86_64" if native["_is_x86_64"](machine) else "SIMD_OTHER"
    assert [*dict.fromkeys(sets)][:2] == ["baseline", next(iter(native["FLAGS"][simd]))]
    if simd == "SIMD_X86_64":
        assert [*dict.fromkeys(sets)] == ["baseline", *native["FLAGS"][simd]]


@pytest.mark.slow  # it compiles for minutes
def test_builds_and_installs_the_library(tmp_path: Path) -> None:
    build, installed, program = tmp_path / "build", tmp_path / "installed", tmp_path / "program"
    configure(build)
    run("cmake", "--build", build, "--parallel", "2")
    run("cmake", "--install", build, "--prefix", installed)
    [library] = installed.glob(f"lib*/**/{LIBRARY}")
    header = (installed / "include" / "tf_lstm_ops.h").read_text()
    if shutil.which("nm") is not None:
        rows = run("nm", "--dynamic", "--defined-only", "--format=posix", library).splitlines()
        exported = {row.split()[0] for row in rows}
        assert exported == {*re.findall(r"^TF_LSTM_OPS_API [\w\s*]+?\b(\w+)\(", header, re.M)}
    (tmp_path / "program.c").write_text(PROGRAM)
    options = [f"-I{installed / 'include'}", library, f"-Wl,-rpath,{library.parent}"]
    run("cc", tmp_path / "program.c", *options, "-o", program)
    run(program)
