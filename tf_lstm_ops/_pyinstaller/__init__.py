"""PyInstaller's hook for programs that use this package; pyproject.toml registers the folder."""

from pathlib import Path


def get_hook_dirs() -> list[str]:
    """The folder with the hook.

    Returns:
      One path, for PyInstaller.
    """
    return [str(Path(__file__).parent)]
