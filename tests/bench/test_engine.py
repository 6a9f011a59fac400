"""The script that times the engine: where it finds oneDNN, the variables it sets, predictions."""

import re
import runpy
import sys
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


def test_threads_get_processors_of_their_own(engine: dict, monkeypatch) -> None:
    found = []
    monkeypatch.setattr("os.sched_setaffinity", lambda _, processors: found.extend(processors))
    engine["restrict_processors"](1)
    assert len(found) == 1


@pytest.mark.full  # compiles a program
def test_predictions(engine: dict, monkeypatch, capfd) -> None:
    """The tables are whole. Their times are those of a machine that may be busy."""
    if not list(engine["NATIVE"]["OBJECTS"].glob("cc_backends_cpu_processor_measured_rates.o")):
        pytest.skip("the checkout has no objects of the engine")
    names = engine["main"].__globals__
    monkeypatch.setitem(names["NATIVE"], "build_checkout", lambda: None)
    monkeypatch.setitem(names, "restrict_processors", lambda threads: None)
    monkeypatch.setattr(sys, "argv", ["engine", "--predict", "--any-capacity", "lstm,2,3,4,5"])
    with pytest.raises(SystemExit) as end:
        engine["main"]()
    assert end.value.code == 0
    rows = re.findall(r"^\| lstm N2 T3 I4 H5 (\|.*)", capfd.readouterr().out, re.MULTILINE)
    measured, *curves = ([cell.strip() for cell in row.strip("|").split("|")] for row in rows)
    regime, *times = measured
    assert regime == "units"
    assert len(times) == 9
    assert all(float(time) > 0 for time in times)
    assert [len(curve) for curve in curves] == [10, 10]  # numbers of threads, of both passes
    for cell in [cell for curve in curves for cell in curve]:
        assert re.fullmatch(r"units 1: \d+\.\d", cell)  # one vector of units
