"""Fuzzes the importers of files of models and weights.

    python -m tests.fuzz.models --calls 10000 --seed 0 --counts

A call depends on the seed and its number only. `--first` continues a run at a call's number. The
variable FUZZ_KINDS has names of kinds of files, with commas; all if it is not set.
"""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main("tests.fuzz.models", "fuzz.model_files", __doc__))
