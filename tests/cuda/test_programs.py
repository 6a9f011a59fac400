"""The device code with NVIDIA's own compilers, which need no GPU."""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from cuda import build
from cuda.nvrtc import Nvrtc

pytestmark = pytest.mark.cuda

TYPES = ("Half", "BFloat16", "float", "double")
CELLS = ("LstmCell", "CustomLstmCell")
KERNELS = build.ROOT / "cc" / "backends" / "cuda" / "kernels"
SOURCES = sorted(path.name for path in KERNELS.glob("*.cu"))
OLDEST = 70  # Volta, the oldest that TensorFlow is built for


def variants(source: str) -> list[list[str]]:
    """The macros that choose among the variants of a file of kernels/."""
    types = [[f"TF_LSTM_OPS_TYPE={t}"] for t in TYPES]
    if source == "steps.cu":
        return [[f"TF_LSTM_OPS_CELL={cell}", *macros] for cell in CELLS for macros in types]
    return types


def in_packages(pattern: str) -> list[Path]:
    """Files of NVIDIA's pip packages."""
    spec = find_spec("nvidia")
    folders = list(spec.submodule_search_locations or []) if spec else []
    return [p for f in folders for p in Path(f).glob(pattern)]


def nvrtc_libraries() -> list[Path]:
    """One for each major version of CUDA that is installed."""
    found = in_packages("*/lib/libnvrtc.so.1?")
    if not found:
        pytest.fail("needs a pip package of NVRTC, such as nvidia-cuda-nvrtc-cu12")
    return found


@pytest.fixture(scope="session", params=nvrtc_libraries() if find_spec("nvidia") else [None])
def nvrtc(request: pytest.FixtureRequest) -> Nvrtc:
    return Nvrtc(request.param or nvrtc_libraries()[0])


@pytest.mark.parametrize("source", SOURCES)
def test_nvrtc_compiles_for_every_card(nvrtc, source):
    """Of the oldest and the newest all types, of those between one; no warning, and no kernel that
    keeps values in memory, for want of registers or since it looks them up by number. In double
    some cards divide in a function, which keeps where to return to there."""
    architectures = [a for a in nvrtc.architectures() if a >= OLDEST]
    for architecture in architectures:
        some = variants(source)
        if architecture not in (architectures[0], architectures[-1]):
            some = [macros for macros in some if "TF_LSTM_OPS_TYPE=float" in macros]
        for macros in some:
            options = ["--std=c++17", f"--gpu-architecture=sm_{architecture}"]
            options += [f"--define-macro={macro}" for macro in macros]
            result, log = nvrtc.compile(source, [*options, "--ptxas-options=-v"])
            assert result == 0, log
            assert "warning" not in log
            assert report(log), log
            for kernel, used in report(log).items():
                print(f"sm_{architecture} {' '.join(macros)} {kernel}: {used.registers} registers")
                assert used.spilled == 0, (architecture, macros, kernel)
                if "TF_LSTM_OPS_TYPE=double" not in macros:
                    assert used.stack == 0, (architecture, macros, kernel)


class Used(NamedTuple):
    registers: int
    stack: int  # bytes
    spilled: int  # bytes


def report(log: str) -> dict[str, Used]:
    """What each kernel uses."""
    found = {}
    for kernel, text in re.findall(
        r"Compiling entry function '(\w+)'(.*?)(?=Compiling entry|\Z)", log, re.DOTALL
    ):
        registers = re.search(r"Used (\d+) registers", text)
        assert registers is not None, text
        stack = re.findall(r"(\d+) bytes (?:stack frame|cumulative stack)", text)
        spilled = re.findall(r"(\d+) bytes spill", text)
        found[kernel] = Used(int(registers[1]), max(map(int, stack)), max(map(int, spilled)))
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_nvcc_compiles(tmp_path, source):
    """As a part of a program with CUDA's headers, where functions of the host are declared too."""
    found = in_packages("*/bin/nvcc")
    if not found:
        pytest.fail("needs the pip package nvidia-cuda-nvcc")
    command = [
        *(str(found[0]), "-cubin", "-arch=sm_90", "-std=c++17", "--expt-relaxed-constexpr"),
        *("-Werror", "all-warnings", "--resource-usage", f"-I{build.ROOT / 'cc'}"),
        *("-o", str(tmp_path / "kernels.cubin")),
    ]
    for macros in variants(source):
        given = [*command, *(f"-D{macro}" for macro in macros), str(KERNELS / source)]
        done = subprocess.run(given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0 and report(done.stdout), done.stdout
        assert all(used.spilled == 0 for used in report(done.stdout).values()), done.stdout
