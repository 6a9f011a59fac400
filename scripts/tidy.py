"""Runs clang-tidy on the C++ files that it has not passed yet.

What clang-tidy says of a file depends on its text after the preprocessor, its options, the
configuration and clang-tidy's version. A file of which all of that has passed before is left out.

  python scripts/tidy.py COMPILE_COMMANDS PASSED FILES…

COMPILE_COMMANDS is the folder of compile_commands.json, PASSED a folder for notes of what passed.
The exit code is 1 if clang-tidy finds something. The last line says how many files were left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_WITHOUT_VALUE = ("-c", "-MD")
_WITH_VALUE = ("-o", "-MF")


def compiler_options(arguments: Sequence[str]) -> list[str]:
    """The options of a compiler's command without its outputs.

    Args:
      arguments: of an entry of compile_commands.json.

    Returns:
      The compiler and its options.
    """
    found, skips = [], False
    for argument in arguments:
        if not skips and argument not in (*_WITHOUT_VALUE, *_WITH_VALUE):
            found.append(argument)
        skips = not skips and argument in _WITH_VALUE
    return found


def key_of(entry: dict[str, object], common: bytes) -> str:
    """A hash of all that decides what clang-tidy says of a file.

    Args:
      entry: the entry of the file in compile_commands.json.
      common: what all files have in common.

    Returns:
      The hash, as text.
    """
    options = compiler_options(entry["arguments"])  # type: ignore[arg-type]
    command = [*options, "-E", "-P", "-C"]
    text = subprocess.run(command, cwd=str(entry["directory"]), capture_output=True, check=True)
    parts = (common, json.dumps(options).encode(), text.stdout)
    return hashlib.sha256(b"\0".join(hashlib.sha256(p).digest() for p in parts)).hexdigest()


def main(arguments: Sequence[str]) -> int:
    """Checks files; see the module.

    Args:
      arguments: those of the command.

    Returns:
      The exit code.
    """
    database, passed, *files = arguments
    entries = json.loads((Path(database) / "compile_commands.json").read_text())
    by_file = {str(entry["file"]): entry for entry in entries}
    notes = Path(passed)
    notes.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes()

    def check(file: str) -> bool | None:
        """True: passed; False: something was found; None: it has passed before."""
        note = notes / key_of(by_file[file], common) if file in by_file else None
        if note and note.exists():
            note.touch()
            return None
        command = ["clang-tidy", "--quiet", "-p", database, file]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if result.returncode:
            print(result.stdout, result.stderr, sep="", flush=True)
            return False
        if note:
            note.touch()
        return True

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, files))
    left_out = results.count(None)
    print(f"clang-tidy: {len(files) - left_out} files checked, {left_out} passed before")
    return int(False in results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
