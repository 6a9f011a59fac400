"""``doctor`` names packages that compete, a wrong backend and kernels of a GPU that are off."""

import json
from pathlib import Path

import keras
import pytest

import tf_lstm_ops
from tf_lstm_ops import __main__, _gpu
from tf_lstm_ops.cli import doctor_environment, startup


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment without problems."""
    monkeypatch.setattr(doctor_environment, "_installed", lambda: {"tensorflow": "2.21.0"})
    monkeypatch.setattr(startup, "users_backend", None)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)


def problem() -> doctor_environment.Problem:
    [found] = doctor_environment.problems()
    return found


def test_no_problem() -> None:
    assert doctor_environment.problems() == []


@pytest.mark.parametrize(
    ("packages", "words"),
    [
        (["tensorflow", "tensorflow-cpu"], "tensorflow and tensorflow-cpu are builds"),
        (["tf-nightly", "tensorflow"], "tensorflow and tf-nightly are builds"),
        (["keras", "keras-nightly"], "keras and keras-nightly are builds of Keras"),
        (["tensorflow-metal-plugin", "tensorflow-metal"], "are plugins for Metal"),
        (["tensorflow-addons"], "tensorflow-addons is no longer maintained"),
    ],
)
def test_packages(monkeypatch, packages: list[str], words: str) -> None:
    monkeypatch.setattr(doctor_environment.tf, "__version__", "2.19.1")
    [found] = doctor_environment._package_problems(dict.fromkeys(packages, "1.0"))
    assert words in found.problem
    for name in packages:
        assert name in found.change


@pytest.mark.parametrize(("version", "count"), [("2.19.1", 0), ("2.20.0", 1), ("2.21.0-rc1", 1)])
def test_metal_plugin_with_a_newer_tensorflow(monkeypatch, version: str, count: int) -> None:
    monkeypatch.setattr(doctor_environment.tf, "__version__", version)
    found = list(doctor_environment._package_problems({"tensorflow-metal": "1.2"}))
    assert len(found) == count


def test_backend_of_the_environment(monkeypatch) -> None:
    monkeypatch.setattr(startup, "users_backend", "jax")
    assert "Keras runs on jax" in problem().problem


def test_backend_of_the_settings(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "keras.json").write_text(json.dumps({"backend": "torch"}))
    assert "Keras runs on torch" in problem().problem
    monkeypatch.setattr(startup, "users_backend", "tensorflow")
    assert doctor_environment.problems() == []
    monkeypatch.setattr(startup, "users_backend", None)
    (tmp_path / "keras.json").write_text("{")
    assert doctor_environment.problems() == []


def test_keras_2(monkeypatch) -> None:
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    assert problem().change == "unset TF_USE_LEGACY_KERAS"


def test_kernels_of_a_gpu_that_are_off(monkeypatch) -> None:
    status = _gpu.Status(False, "never run", "off, because their self-test has not run on a card")
    monkeypatch.setattr(_gpu, "_status", status)
    assert problem().change == "run tf-lstm-ops selftest --device GPU"


def test_a_problem_is_something_to_change(monkeypatch, tmp_path: Path, capsys) -> None:
    keras.Sequential([keras.Input((4, 3)), tf_lstm_ops.keras.GRU(4)]).save(tmp_path / "m.keras")
    arguments = ["doctor", str(tmp_path / "m.keras"), "--no-exports"]
    assert __main__.main(arguments) == 0
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    assert __main__.main(arguments) == 1
    assert "  problem          TF_USE_LEGACY_KERAS" in capsys.readouterr().out
    assert __main__.main([*arguments, "--json"]) == 1
    [found] = json.loads(capsys.readouterr().out)["environment"]["problems"]
    assert found["change"] == "unset TF_USE_LEGACY_KERAS"
