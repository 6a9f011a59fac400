"""The build's own module, and the checkout that it builds."""

import importlib.util
import subprocess
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


@pytest.fixture(scope="session")
def build_release():
    """Builds the release of one platform, x86-64 Linux, into a folder."""

    def build(folder: Path) -> Path:
        script = ROOT / "scripts" / "release" / "build"
        command = [str(script), str(folder), "manylinux_2_28_x86_64", "--dirty"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return folder

    return build


@pytest.fixture(scope="session")
def release(build_release, tmp_path_factory) -> Path:
    return build_release(tmp_path_factory.mktemp("release"))
