"""What is wrong with the environment: packages that compete, Keras' backend, the GPU's state."""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import tensorflow as tf

from tf_lstm_ops import _gpu, _keras_backend
from tf_lstm_ops.cli import startup

_TENSORFLOWS = (
    *("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-rocm", "tensorflow-macos"),
    *("tensorflow-cpu-aws", "intel-tensorflow", "tf-nightly", "tf-nightly-cpu", "tf-nightly-gpu"),
)
_METALS = ("tensorflow-metal", "tensorflow-metal-plugin")
# The extra metal of pyproject.toml.
METAL = "pip install 'tensorflow-metal>=1.2' 'tensorflow<2.20'"
_GPU_STATES = ("never run", "failed", "outdated", "broken")  # that `selftest` may change


class Problem(NamedTuple):
    """Something in the environment that should be changed.

    Attributes:
      problem: what is wrong, in one sentence.
      change: what to do, in one sentence.
    """

    problem: str
    change: str


def problems() -> list[Problem]:
    """Examines the environment of this process.

    Returns:
      The problems.
    """
    found = [*_package_problems(_installed()), *_keras_problems()]
    if _gpu.status().state in _GPU_STATES:
        found.append(Problem(f"The GPU kernels are {_gpu.status().reason}", f"run {_gpu.COMMAND}"))
    return found


def _installed() -> dict[str, str]:
    """The packages that Python finds."""
    return {
        re.sub(r"[-_.]+", "-", name).lower(): each.version
        for each in importlib.metadata.distributions()
        if (name := each.metadata["Name"])
    }


def _package_problems(versions: Mapping[str, str]) -> Iterator[Problem]:
    """Finds packages that compete."""
    for what, names in (
        ("builds of TensorFlow", _TENSORFLOWS),
        ("builds of Keras", ("keras", "keras-nightly")),
        ("plugins for Metal", _METALS),
    ):
        found = [name for name in names if name in versions]
        if len(found) > 1:
            yield Problem(
                f"{' and '.join(found)} are {what} that do not work beside each other.",
                f"pip uninstall {' '.join(found)}, then install one of them",
            )
    if "tensorflow-addons" in versions:
        yield Problem(
            "tensorflow-addons is no longer maintained and does not work with Keras 3.",
            "use the layers of tf_lstm_ops.keras or keras.layers, then "
            "pip uninstall tensorflow-addons",
        )
    if "tensorflow-metal" in versions and [*map(int, tf.__version__.split(".")[:2])] >= [2, 20]:
        yield Problem(
            f"tensorflow-metal does not load into TensorFlow {tf.__version__}.",
            METAL,
        )


def _keras_problems() -> Iterator[Problem]:
    backend = startup.users_backend or _keras_backend.configured()
    if backend not in (None, "tensorflow"):
        of_torch = ", though `tf-lstm-ops run` makes Keras faster" if backend == "torch" else ""
        yield Problem(
            f"Keras runs on {backend} in your programs, which cannot run the layers{of_torch}.",
            "set KERAS_BACKEND=tensorflow",
        )
    if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):
        yield Problem(
            "TF_USE_LEGACY_KERAS makes tf.keras Keras 2, which cannot run the layers.",
            "unset TF_USE_LEGACY_KERAS",
        )
