"""A function that is called at the end of the import of a module, whoever imports it."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tf_lstm_ops._when_imported import when_imported

NAME = "module_of_test_when_imported"
OTHER = f"{NAME}_2"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of a module that can be imported. Import hooks do not outlive a test."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    file = tmp_path / f"{NAME}.py"
    file.write_text("value = 3")
    yield file
    sys.modules.pop(NAME, None)


@pytest.fixture
def values(file: Path) -> list[int]:
    """The module's value at each call of the function."""
    values: list[int] = []
    when_imported(NAME, lambda: values.append(sys.modules[NAME].value))
    return values


def test_called_once_after_the_module_was_executed(values: list[int]) -> None:
    module = importlib.import_module(NAME)
    assert values == [3]
    importlib.reload(module)
    assert values == [3]


def test_two_functions_for_one_module(values: list[int]) -> None:
    """As of the package that is imported twice before TensorFlow, by importlib.reload."""
    second: list[int] = []
    when_imported(NAME, lambda: second.append(sys.modules[NAME].value))
    module = importlib.import_module(NAME)
    assert (values, second) == ([3], [3])
    assert type(module.__loader__) is importlib.machinery.SourceFileLoader


def test_an_import_by_a_finder_of_another_module(values: list[int], file: Path) -> None:
    """No finder is skipped when the function is called while Python walks through the finders."""

    class ImportingFinder(importlib.abc.MetaPathFinder):
        def find_spec(self, name: str, path: object, target: object = None) -> None:
            if name == OTHER:
                importlib.import_module(NAME)

    file.with_name(f"{OTHER}.py").write_text("")
    sys.meta_path.insert(sys.meta_path.index(importlib.machinery.PathFinder), ImportingFinder())
    try:
        importlib.import_module(OTHER)
    finally:
        sys.modules.pop(OTHER, None)
    assert values == [3]


def test_a_finder_without_find_spec(values: list[int]) -> None:
    """Python skips it."""
    sys.meta_path.insert(1, object())  # type: ignore[arg-type]
    importlib.import_module(NAME)
    assert values == [3]


def test_called_at_once_if_the_module_is_imported(file: Path) -> None:
    importlib.import_module(NAME)
    hooks, calls = len(sys.meta_path), []
    when_imported(NAME, lambda: calls.append(1))
    assert (calls, len(sys.meta_path)) == ([1], hooks)


def test_a_search_is_no_import(values: list[int], file: Path) -> None:
    """As of a program that asks whether TensorFlow is installed."""
    spec = importlib.util.find_spec(NAME)
    assert spec is not None and spec.origin == str(file)
    assert spec.loader.get_filename() == str(file)  # type: ignore[union-attr]
    assert values == []
    importlib.import_module(NAME)
    assert values == [3]


def test_the_module_has_its_own_loader(values: list[int], file: Path) -> None:
    file.write_text("value, loaders = 3, (type(__loader__), type(__spec__.loader))")
    module = importlib.import_module(NAME)
    for loader in (*module.loaders, type(module.__loader__), type(module.__spec__.loader)):
        assert loader is importlib.machinery.SourceFileLoader


def test_an_import_that_fails_can_be_repeated(values: list[int], file: Path) -> None:
    file.write_text("raise ImportError('libother.so is missing')")
    with pytest.raises(ImportError, match=r"libother\.so is missing"):
        importlib.import_module(NAME)
    assert values == []
    file.write_text("value = 4")
    importlib.invalidate_caches()
    importlib.import_module(NAME)
    assert values == [4]


def test_a_module_that_does_not_exist(values: list[int], file: Path) -> None:
    file.unlink()
    importlib.invalidate_caches()
    assert importlib.util.find_spec(NAME) is None
    with pytest.raises(ModuleNotFoundError, match=NAME):
        importlib.import_module(NAME)


def test_an_error_of_the_function_is_a_warning(file: Path) -> None:
    def fail() -> None:
        raise ValueError("a wrong value")

    when_imported(NAME, fail)
    with pytest.warns(RuntimeWarning, match=f"`import {NAME}`: a wrong value"):
        assert importlib.import_module(NAME).value == 3


def test_after_an_interrupt_the_next_import_calls_again(file: Path) -> None:
    calls: list[int] = []

    def function() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt

    when_imported(NAME, function)
    with pytest.raises(KeyboardInterrupt):
        importlib.import_module(NAME)
    importlib.import_module(NAME)
    assert len(calls) == 2
