"""Builds kernel_program.cc with cc/tf/kernel.cc, without TensorFlow, and runs its tests."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from built_once import built_once

from .test_core import HERE, ROOT, package_build, run

SOURCE = HERE / "kernel_program.cc"
NAMES = re.findall(r"^TEST\((\w+)\)", SOURCE.read_text(), flags=re.MULTILINE)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="takes options of the GNU linker")


def build(path: Path) -> None:
    native = package_build()
    flags = [f for f in native.FLAGS["COPTS"] if f not in ("-O3", "-DNDEBUG", "-Icc")]
    sources = [*(ROOT / f"cc/{name}.cc" for name in ("tf/kernel", "core/signature", "core/shape"))]
    include = ["-I", str(ROOT / "cc"), "-I", str(HERE)]
    # The linker leaves out the functions that call the rest of TensorFlow.
    link = ["-ffunction-sections", "-Wl,--gc-sections", "-o", str(path)]
    command = [*native.compiler(), *flags, "-O1", *include, str(SOURCE), *map(str, sources), *link]
    subprocess.run(command, check=True)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_once(tmp_path_factory, "kernel_program", build)


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_kernel(program: Path, name: str) -> None:
    run(program, name)
