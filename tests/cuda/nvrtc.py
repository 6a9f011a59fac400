"""NVIDIA's own run-time compiler, which needs no GPU, through ctypes."""

from __future__ import annotations

import ctypes
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "cc" / "backends" / "cuda" / "kernels"


class Nvrtc:
    """One version of NVRTC, with the sources that the CUDA library carries along."""

    def __init__(self, library: Path):
        self._functions = ctypes.CDLL(str(library))
        self._headers = {
            p.relative_to(ROOT / "cc").as_posix(): p.read_bytes()
            for folder in ("core", "dialects", "backends/cuda/kernels")
            for p in (ROOT / "cc" / folder).rglob("*")
            if p.suffix in (".h", ".cu")
        } | {p.name: p.read_bytes() for p in (KERNELS / "nvrtc").iterdir()}

    def architectures(self) -> list[int]:
        """90 for sm_90."""
        count = ctypes.c_int()
        self._functions.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        self._functions.nvrtcGetSupportedArchs(found)
        return list(found)

    def compile(self, source: str, options: list[str]) -> tuple[int, str]:
        """The result of compiling a file of kernels/, 0 for success, and the log."""
        program = ctypes.c_void_p()
        names = [name.encode() for name in self._headers]
        texts = list(self._headers.values())
        strings = ctypes.c_char_p * len(names)
        text = f'#include "backends/cuda/kernels/{source}"\n'.encode()
        self._functions.nvrtcCreateProgram(
            ctypes.byref(program), text, b"test.cu", len(names), strings(*texts), strings(*names)
        )
        given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        result = self._functions.nvrtcCompileProgram(program, len(options), given)
        size = ctypes.c_size_t()
        self._functions.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self._functions.nvrtcGetProgramLog(program, log)
        self._functions.nvrtcDestroyProgram(ctypes.byref(program))
        return result, log.value.decode(errors="replace")
