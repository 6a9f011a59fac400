"""Runs the benchmark: ``python benchmarks/peers`` in a clone."""

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # The modules import one another as `peers.…`. This folder itself has modules of common names.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    try:
        from peers import command

        status = command.main()
    except KeyboardInterrupt:  # also while TensorFlow is imported
        print("python benchmarks/peers: interrupted", file=sys.stderr)
        status = 130
    sys.exit(status)
