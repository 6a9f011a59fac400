"""Runs calls of each op under LeakSanitizer and reports memory that the native library has leaked.

    python3 build_defs/native.py build --sanitize address,undefined
    python scripts/leaks.py --each 1000

Python and TensorFlow leave much memory to the end of the process. A list of suppressions for them
would hide our leaks too, because TensorFlow is in every stack. So the report is read instead: a
leak is ours if the innermost frame that is not an allocator's is in our library.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / ".build" / "address_undefined" / "tf_lstm_ops.so"
# Frames that may stand between an allocation and the code that asked for it.
ALLOCATORS = ("libasan", "libstdc++", "libc.so")


def run(each: int, report: Path) -> int:
    """Runs the fuzzer and writes LeakSanitizer's report to files of this name.

    Returns:
      The exit status.
    """
    found = [_library("libasan.so"), _library("libstdc++.so.6")]
    options = f"detect_leaks=1:exitcode=0:fast_unwind_on_malloc=1:log_path={report}"
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(found),
        "ASAN_OPTIONS": f"allocator_may_return_null=1:{options}",
        "LSAN_OPTIONS": "exitcode=0:max_leaks=0:print_suppressions=0",
        "TF_LSTM_OPS_LIBRARY": str(LIBRARY),
    }
    command = [sys.executable, "-m", "tests.fuzz", "--calls", "10000000", "--each", str(each)]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def _library(name: str) -> str:
    command = ["c++", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def leaks(report: str) -> list[str]:
    """The leaks of our library in a report of LeakSanitizer."""
    found = re.split(r"\n\n", report)
    return [leak for leak in found if "leak of" in leak and is_ours(leak)]


def is_ours(leak: str) -> bool:
    """Whether the code that has asked for the memory is in our library."""
    for frame in re.findall(r"^ +#\d+ .*", leak, flags=re.MULTILINE):
        if not any(name in frame for name in ALLOCATORS):
            return (
                "/tf_lstm_ops.so" in frame or re.search(r" \S*\bcc/\w+/\S+:\d", frame) is not None
            )
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--each", type=int, default=1000, help="calls of each op")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        status = run(parsed.each, Path(folder, "report"))
        reports = [path.read_text(errors="replace") for path in Path(folder).glob("report*")]
    total = sum(report.count("leak of") for report in reports)
    ours = [leak for report in reports for leak in leaks(report)]
    print(*ours, sep="\n\n")
    print(f"{len(ours)} leaks of the native library among {total} of the process")
    if not total:
        print("LeakSanitizer reported nothing, not even Python's: it did not run", file=sys.stderr)
    return 1 if status or ours or not total else 0


if __name__ == "__main__":
    sys.exit(main())
