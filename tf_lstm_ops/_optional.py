"""Import of packages that only some functions need. This module imports nothing else."""

from __future__ import annotations

import importlib
from types import ModuleType

# By package, the versions that work: those of the extras in pyproject.toml. The messages name the
# packages themselves: `pip install 'tf_lstm_ops[...]'` would also install what a clone requires,
# thus TensorFlow, and fails where the package is on no index.
VERSIONS = {
    "ai-edge-litert": ">=1.2",
    "h5py": ">=3.11",
    "keras": ">=3.8,<3.17",
    "matplotlib": ">=3.8",
    "onnx": ">=1.16",
    "onnxruntime": ">=1.18",
    "onnxscript": ">=0.7",
    "safetensors": ">=0.4",
    "tensorflow": ">=2.18,<2.23",
    "tensorflow-cpu": ">=2.18,<2.23",
    "tf2onnx": ">=1.17",
    "torch": ">=2.13",
}


def pip_install(*packages: str) -> str:
    """The command that installs packages.

    Args:
      packages: names in `VERSIONS`.

    Returns:
      A command for a shell.
    """
    return " ".join(["pip install", *(f"'{name}{VERSIONS[name]}'" for name in packages)])


def require(module: str, purpose: str, *packages: str) -> ModuleType:
    """Imports a module of an optional package.

    Args:
      module: the module's name. The part before its first dot is the name in the message.
      purpose: what needs it, the subject of the message.
      packages: what to install for the purpose, names in `VERSIONS`.

    Returns:
      The module.

    Raises:
      ImportError: it cannot be imported. The last line of the message is the command to type.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{purpose} needs {package}, which cannot be imported ({error}). Install it with:\n"
            f"{pip_install(*packages)}"
        ) from error
