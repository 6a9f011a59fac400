"""Files of tf_keras, which is Keras 2, written once by another process."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def keras_2_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what keras_2_files.py writes."""
    folder = tmp_path_factory.mktemp("keras_2_files")
    program = Path(__file__).with_name("keras_2_files.py")
    run = subprocess.run(
        [sys.executable, program, folder], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return folder
