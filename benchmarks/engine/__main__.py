"""Times the CPU engine without TensorFlow, and oneDNN beside it where that is installed.

``python3 benchmarks/engine`` builds the libraries of this checkout where they are out of date,
links `engine.cc` with the engine's objects, and runs it. Each line is a case: batch size N, steps
T, input size I and units H. A line has four parts: inference, inference with weights that were
packed before (as the Keras layers keep them), and the forward and the backward pass of training.
Each part has the time of the fastest of many calls, the floor in percent of it, and the time for
each unit and step. The floor is the shortest possible time: that of all matrix products by the
roofline model, and that of the cell's sigmoids and tanhs in a loop over values in the cache.

If oneDNN's headers and library are found, `onednn.cc` is run instead. It prints two more lines for
each case: the times of oneDNN's LSTM or GRU primitives, and these divided by ours. Both compute the
same results from the same data, which is checked, and take turns in rounds. oneDNN's weights are
reordered before. Its gradients of the weights are not set to zero before each call.

oneDNN is looked for in the prefix of the active Python environment. Either of these commands
installs it there:

* ``pip install onednn-devel``: the newest version, with all that it needs to run (2 GB). Its CPU
  engine runs through SYCL, its threads are those of TBB.
* ``pip install --no-deps onednn-cpu-gomp onednn-devel-cpu-gomp``: version 3.2 with OpenMP.

``--onednn DIR`` names any other prefix, with include/oneapi/dnnl and lib/libdnnl.so.

Both are restricted to --threads processors, of different cores as far as possible, and OpenMP also
to as many threads. Run it on an idle machine. It first measures the capacity of the processors (see
`benchmarks/peers/capacity.py`), and ends if it is too low, unless --any-capacity is given.

``--predict`` runs `predict.cc` instead. It prints Markdown tables: the measured times of inference,
of inference with kept weights and of the backward pass beside the times that the schedules predict
(``docs/design/threads.md``), the fastest of several rounds; then for 1 to 192 requested threads the
regime, the number of threads that the schedule chooses, and the predicted time. Nothing is run with
more than --threads threads.

The environment variable TF_LSTM_OPS_SIMD selects our instruction set, and oneDNN's unless
ONEDNN_MAX_CPU_ISA is set.
"""

from __future__ import annotations

import argparse
import os
import platform
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NATIVE = runpy.run_path(str(ROOT / "build_defs" / "native.py"))
CAPACITY = runpy.run_path(str(ROOT / "benchmarks" / "peers" / "capacity.py"))
FOLDER = "benchmarks/engine"

# ONEDNN_MAX_CPU_ISA for a value of TF_LSTM_OPS_SIMD.
ONEDNN_SETS = {"x86-64-v2": "SSE41", "x86-64-v3": "AVX2", "x86-64-v4": "AVX512_CORE"}

# CELL,BATCH,STEPS,INPUTS,UNITS: one row, few rows, many rows; few units; wide inputs.
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
    # Wide inputs and few units: features of a network for images.
    "lstm,32,20,768,8",
    "lstm,32,20,2048,8",
    "lstm,32,20,2048,16",
    "gru,32,20,2048,16",
    "lstm,32,20,4096,32",
]

# Of --predict: regimes and sizes of the weights that differ.
PREDICTED_CASES = [
    "lstm,1,100,128,128",
    "lstm,4,25,1024,1024",
    "lstm,16,50,256,256",
    "lstm,16,25,512,512",
    "lstm,32,100,128,128",
    "lstm,64,50,256,256",
    "lstm,256,60,7,32",
    "lstm,1024,50,4,32",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--onednn",
        metavar="DIR",
        type=Path,
        help="prefix with oneDNN's include/ and lib/ (default: the Python environment's)",
    )
    parser.add_argument(CAPACITY["OPTION"], action="store_true", help=CAPACITY["HELP"])
    parser.add_argument(
        "--predict", action="store_true", help="compare predicted with measured times"
    )
    parser.add_argument("cases", nargs="*", help="CELL,BATCH,STEPS,INPUTS,UNITS")
    arguments = parser.parse_args()
    prefix = arguments.onednn or Path(sys.prefix)
    library = None if arguments.predict else onednn_library(prefix)
    if arguments.onednn and arguments.predict:
        parser.error("--onednn and --predict exclude each other")
    if arguments.onednn and not library:
        parser.error(f"{prefix} has no include/oneapi/dnnl/dnnl.hpp or no lib/libdnnl.so")
    try:
        CAPACITY["check"](arguments.threads, arguments.any_capacity)
    except CAPACITY["TooLow"] as error:
        parser.exit(1, f"{error}\n")
    NATIVE["build_checkout"]()
    if not library and not arguments.predict:
        print("oneDNN was not found: pip install onednn-devel, or --onednn DIR")
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "engine")
        source = "predict.cc" if arguments.predict else "engine.cc"
        command = link_onednn(program, prefix, library) if library else link(program, source)
        subprocess.run(command, cwd=ROOT, check=True)
        restrict_processors(arguments.threads)
        environment = {**os.environ, **onednn_environment(prefix, arguments.threads, os.environ)}
        cases = arguments.cases or (PREDICTED_CASES if arguments.predict else CASES)
        command = [program, str(arguments.threads), *cases]
        sys.exit(subprocess.run(command, env=environment, check=False).returncode)


def onednn_library(prefix: Path) -> Path | None:
    """oneDNN's shared library below a prefix, or None where it or the headers are absent."""
    if not (prefix / "include" / "oneapi" / "dnnl" / "dnnl.hpp").exists():
        return None
    found = (prefix / folder / "libdnnl.so" for folder in ("lib", "lib64"))
    return next((library for library in found if library.exists()), None)


def onednn_environment(prefix: Path, threads: int, given: Mapping[str, str]) -> dict[str, str]:
    """The variables that oneDNN needs beside those that are given."""
    wanted = {"OMP_NUM_THREADS": str(threads)}
    if given.get("TF_LSTM_OPS_SIMD") in ONEDNN_SETS:
        wanted["ONEDNN_MAX_CPU_ISA"] = ONEDNN_SETS[given["TF_LSTM_OPS_SIMD"]]
    # The SYCL device of the processor. A virtual environment has no system-wide list of devices.
    device = prefix / "lib" / "libintelocl.so"
    if device.exists():
        wanted["OCL_ICD_FILENAMES"] = str(device)
    return {name: value for name, value in wanted.items() if name not in given}


def restrict_processors(threads: int) -> None:
    """Restricts this process and its children. TBB has as many threads as processors."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, CAPACITY["processors"](threads))


def link(program: str, *sources: str) -> list[str]:
    engine = [
        str(NATIVE["OBJECTS"] / unit.object)
        for unit in NATIVE["units"](platform.machine())
        if unit.source.startswith(("cc/core/", "cc/backends/cpu/"))
        and not unit.source.endswith("/for_python.cc")
    ]
    paths = [f"{FOLDER}/{source}" for source in sources]
    return [*NATIVE["compiler"](), *NATIVE["FLAGS"]["COPTS"], *paths, *engine, "-o", program]


def link_onednn(program: str, prefix: Path, library: Path) -> list[str]:
    # The libraries that oneDNN needs lie beside it and have no path of their own to them.
    # --disable-new-dtags: the program's path then holds for them too.
    flags = ["-Wl,--disable-new-dtags", f"-Wl,-rpath,{library.parent}"]
    command = link(program, "onednn.cc", "onednn_layer.cc")
    headers = ["-isystem", str(prefix / "include")]
    return [*command, *headers, str(library), *flags, "-Wl,--allow-shlib-undefined"]


if __name__ == "__main__":
    main()
