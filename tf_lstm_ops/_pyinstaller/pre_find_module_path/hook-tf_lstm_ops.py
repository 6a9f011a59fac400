"""Where PyInstaller finds tf_lstm_ops. It does not ask the finders of editable installations."""

from pathlib import Path
from typing import Any

from PyInstaller.utils.hooks import get_package_paths


def pre_find_module_path(hook_api: Any) -> None:
    """Called by PyInstaller.

    Args:
      hook_api: has ``module_name`` and ``search_dirs``, which is set.
    """
    folder = Path(get_package_paths(hook_api.module_name)[1])
    hook_api.search_dirs = [str(folder.parent)]
