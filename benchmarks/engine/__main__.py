"""Times the CPU engine without TensorFlow.

``python3 benchmarks/engine`` builds the libraries of this checkout where they are out of date,
links `engine.cc` with the engine's objects, and runs it. Each line is a case: batch size N, steps
T, input size I and units H. A line has three parts: inference, and the forward and the backward
pass of training. Each part has the time of the fastest of many calls, the time by the roofline
model in percent of it, and the time for each unit and step.

Run it on an idle machine. The environment variable TF_LSTM_OPS_SIMD selects the instruction set.
"""

from __future__ import annotations

import argparse
import runpy
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NATIVE = runpy.run_path(str(ROOT / "build_defs" / "native.py"))

# CELL,BATCH,STEPS,INPUTS,UNITS: one row, few rows, many rows; few units.
CASES = [
    "lstm,1,50,256,256",
    "lstm,4,50,256,256",
    "lstm,16,50,256,256",
    "lstm,32,100,128,128",
    "lstm,64,50,256,256",
    "lstm,32,25,512,512",
    "lstm,128,40,56,128",
    "lstm,256,60,7,32",
    "lstm,1024,50,4,32",
    "lstm,256,30,16,64",
    "lstm,32,100,128,64",
    "gru,64,50,128,128",
    "gru,256,50,8,32",
]


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the CPU engine without TensorFlow.")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("cases", nargs="*", default=CASES, help="CELL,BATCH,STEPS,INPUTS,UNITS")
    arguments = parser.parse_args()
    NATIVE["build_checkout"]()
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "engine")
        subprocess.run(_link(program), cwd=ROOT, check=True)
        subprocess.run([program, str(arguments.threads), *arguments.cases], check=True)


def _link(program: str) -> list[str]:
    objects = NATIVE["OBJECTS"]
    engine = [
        str(path)
        for pattern in ("cc_core_*.o", "cc_backends_cpu_*.o")
        for path in sorted(objects.glob(pattern))
        if path.name != "cc_backends_cpu_c_api.o"
    ]
    source = "benchmarks/engine/engine.cc"
    return [*NATIVE["compiler"](), *NATIVE["FLAGS"]["COPTS"], source, *engine, "-o", program]


if __name__ == "__main__":
    main()
