"""Fuzzes every op of the package.

    python -m tests.fuzz --calls 10000 --seed 0

A call depends on the seed and its number only. `--first` continues a run at a call's number.
"""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main("tests.fuzz", "fuzz.runner", __doc__))
