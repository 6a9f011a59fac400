"""Programs in processes that have Python and NumPy only."""

import subprocess
import sys
from pathlib import Path

import tf_lstm_ops

# Hides every module but those of Python and of NumPy, in two ways.
HOOK = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first not in {"numpy", "tf_lstm_ops", *sys.stdlib_module_names}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name in ("tensorflow", "keras") else found(name, package)
)
"""


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    # The installed package, not the source folder.
    start = f"import sys; sys.path.insert(0, {str(Path(tf_lstm_ops.__file__).parents[1])!r})\n"
    command = [sys.executable, "-c", start + program]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)
