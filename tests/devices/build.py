"""What the test beds' builds have in common."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path


def tensorflow_folder() -> Path:
    spec = find_spec("tensorflow")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def is_older(path: Path, than: Iterable[Path]) -> bool:
    """Whether it is missing, or what it was made from is missing or newer."""
    if not path.exists():
        return True
    written = path.stat().st_mtime
    return any(not other.exists() or other.stat().st_mtime > written for other in than)
