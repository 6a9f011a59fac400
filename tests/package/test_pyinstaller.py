"""The hook for PyInstaller. docs/test_installs.py freezes a program."""

import re
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from pages import ROOT
from tf_lstm_ops import _pyinstaller

PACKAGE = Path(_pyinstaller.__file__).parents[1]


def test_the_entry_point_names_the_folder() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    found = re.search(r"^\[project.entry-points.pyinstaller40\]\nhook-dirs = \"(.*)\"", text, re.M)
    assert found[1] == f"{_pyinstaller.__name__}:{_pyinstaller.get_hook_dirs.__name__}"
    [folder] = _pyinstaller.get_hook_dirs()
    for place in (".", "pre_find_module_path"):
        assert (Path(folder) / place / "hook-tf_lstm_ops.py").is_file()


def test_every_module_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without importing one: some import TensorFlow."""
    hooks = ModuleType("PyInstaller.utils.hooks")
    hooks.collect_dynamic_libs = lambda package: []
    hooks.collect_data_files = lambda package, excludes: []
    hooks.get_package_paths = lambda package: (str(PACKAGE.parent), str(PACKAGE))
    for name in ("PyInstaller", "PyInstaller.utils"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, hooks.__name__, hooks)
    found = runpy.run_path(str(PACKAGE / "_pyinstaller" / "hook-tf_lstm_ops.py"))["hiddenimports"]
    assert {"tf_lstm_ops", "tf_lstm_ops.keras", "tf_lstm_ops.cli.info"} <= set(found)
    assert {"tf_lstm_ops.inference.layers", "tf_lstm_ops.weights.keras"} <= set(found)
    assert len(found) == len(set(found)) == len([*PACKAGE.rglob("*.py")]) - 2  # the hooks


def test_the_package_is_found_where_python_finds_it() -> None:
    """As an editable installation needs it."""
    pytest.importorskip("PyInstaller", reason="it finds the package")
    file = PACKAGE / "_pyinstaller" / "pre_find_module_path" / "hook-tf_lstm_ops.py"
    api = SimpleNamespace(module_name="tf_lstm_ops", search_dirs=[])
    runpy.run_path(str(file))["pre_find_module_path"](api)
    assert [Path(folder).resolve() for folder in api.search_dirs] == [PACKAGE.parent.resolve()]


def test_the_libraries_are_added() -> None:
    pytest.importorskip("PyInstaller", reason="it finds them")
    found = runpy.run_path(str(PACKAGE / "_pyinstaller" / "hook-tf_lstm_ops.py"))
    names = {Path(source).name for source, _ in found["binaries"]}
    assert "libtf_lstm_ops_inference.so" in names
    assert {folder for _, folder in found["binaries"]} == {"tf_lstm_ops/_lib"}
    data = {Path(source).name for source, _ in found["datas"]}
    assert "japanese_vowels.npz" in data
    assert not data & {"libtf_lstm_ops_inference.a", "tf_lstm_ops.h"}
