"""Import of packages that only some functions need. This module imports nothing else."""

from __future__ import annotations

import importlib
from types import ModuleType


def require(module: str, purpose: str, extra: str) -> ModuleType:
    """Imports a module of an optional package.

    Args:
      module: the module's name. The part before its first dot is the package's name.
      purpose: what needs it, the subject of the message.
      extra: the extra of this package that installs it, as pyproject.toml names it.

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
            f"pip install 'tf_lstm_ops[{extra}]'"
        ) from error
