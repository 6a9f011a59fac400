"""The build's own module, and the checkout that it builds."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def native() -> ModuleType:
    """build_defs/native.py, without its folder's parent, the checkout, on sys.path."""
    spec = importlib.util.spec_from_file_location("native", ROOT / "build_defs" / "native.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def cxx(native: ModuleType) -> list[str]:
    """The C++ compiler's command."""
    try:
        return native.compiler()
    except native.BuildError as error:
        pytest.skip(str(error))
