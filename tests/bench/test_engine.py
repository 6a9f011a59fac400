"""The script that times the engine beside oneDNN: where it finds it, and the variables it sets."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def engine() -> dict:
    return runpy.run_path(str(ROOT / "benchmarks" / "engine" / "__main__.py"))


def test_onednn_is_found_with_headers_and_library_only(engine: dict, tmp_path: Path) -> None:
    headers = tmp_path / "include" / "oneapi" / "dnnl"
    library = tmp_path / "lib64" / "libdnnl.so"
    assert engine["onednn_library"](tmp_path) is None
    headers.mkdir(parents=True)
    (headers / "dnnl.hpp").touch()
    assert engine["onednn_library"](tmp_path) is None
    library.parent.mkdir()
    library.touch()
    assert engine["onednn_library"](tmp_path) == library
    command = engine["link_onednn"]("program", tmp_path, library)
    assert str(library) in command
    assert all((ROOT / name).exists() for name in command if name.endswith(".cc"))


def test_onednn_gets_our_instruction_set_and_threads(engine: dict, tmp_path: Path) -> None:
    variables = engine["onednn_environment"]
    assert variables(tmp_path, 2, {}) == {"OMP_NUM_THREADS": "2"}
    found = variables(tmp_path, 1, {"TF_LSTM_OPS_SIMD": "x86-64-v3", "OMP_NUM_THREADS": "7"})
    assert found == {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    given = {"TF_LSTM_OPS_SIMD": "x86-64-v3", "ONEDNN_MAX_CPU_ISA": "SSE41"}
    assert variables(tmp_path, 1, given) == {"OMP_NUM_THREADS": "1"}
    device = tmp_path / "lib" / "libintelocl.so"
    device.parent.mkdir()
    device.touch()
    assert variables(tmp_path, 1, {})["OCL_ICD_FILENAMES"] == str(device)
