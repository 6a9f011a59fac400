"""Files of tf_keras, which is Keras 2, written once by another process."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

_SECONDS = 600  # for the program on a busy machine


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what -m does not select
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs the files is `full`: tf_keras takes long to write them."""
    for item in items:
        if "keras_2_files" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.full)


@pytest.fixture(scope="session")
def keras_2_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what keras_2_files.py writes. Workers share it."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "keras_2_files"
    done = folder.with_suffix(".done")
    try:
        folder.mkdir()
    except FileExistsError:  # another worker writes it
        end = time.monotonic() + _SECONDS
        while not done.exists() and time.monotonic() < end:
            time.sleep(0.2)
    else:
        program = Path(__file__).with_name("keras_2_files.py")
        command = [sys.executable, str(program), str(folder)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        done.write_text("" if run.returncode == 0 else run.stderr or "it failed")
    assert done.read_text() == ""
    return folder
