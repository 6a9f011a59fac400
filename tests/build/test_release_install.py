"""The wheel of a release beside any TensorFlow: in new environments, without a second one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.downloads("TensorFlow, and tools of a release")]
# Of TensorFlow's authors, but not TensorFlow.
PARTS = {"tensorflow-io-gcs-filesystem"}
PROGRAM = """
import keras, numpy as np, tf_lstm_ops
layer = tf_lstm_ops.keras.LSTM(4)
print(layer(np.ones((2, 3, 5), "float32")).shape, layer.uses_fused_op)
"""


class Environment:
    """A new virtual environment."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        self.python = str(folder / "bin" / "python")

    def pip(self, *arguments: str) -> str:
        command = [self.python, "-m", "pip", "--disable-pip-version-check", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def tensorflows(self) -> list[str]:
        installed = json.loads(self.pip("list", "--format", "json"))
        names = {package["name"].replace("_", "-") for package in installed}
        return sorted(n for n in names - PARTS if n.startswith(("tensorflow", "tf-nightly")))

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.python, "-c", PROGRAM], capture_output=True, text=True)

    def check(self) -> None:
        done = self.run()
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "(2, 4) True"


@pytest.fixture
def environment(tmp_path) -> Environment:
    return Environment(tmp_path / "venv")


@pytest.fixture(scope="module")
def wheel(release) -> str:
    [path] = release.glob("*.whl")
    return str(path)


@pytest.mark.parametrize("name", ["tensorflow", "tensorflow-cpu", "tf-nightly"])
def test_an_installed_tensorflow_stays_alone(environment, wheel, name):
    # Nightlies are pre-releases: so for this package alone, not for what it needs.
    environment.pip("install", f"{name}>=0.dev0" if name == "tf-nightly" else name)
    environment.pip("install", wheel)
    assert environment.tensorflows() == [name]
    environment.check()


@pytest.mark.parametrize("extra", ["tensorflow", "tensorflow-cpu"])
def test_an_extra_brings_tensorflow(environment, wheel, extra):
    environment.pip("install", f"{wheel}[{extra}]")
    assert environment.tensorflows() == [extra]
    environment.check()


def test_without_tensorflow(environment, wheel):
    environment.pip("install", wheel)
    assert environment.tensorflows() == []
    program = [environment.python, "-c", "import tf_lstm_ops.keras"]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install" in done.stderr.splitlines()[-1]
