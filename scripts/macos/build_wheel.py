"""Builds on Linux the wheel for Macs with Apple silicon. Runs setup.py as on macOS, with cxx.py as
the compiler.

``python scripts/macos/build_wheel.py FOLDER`` writes the wheel to FOLDER. Needs setuptools and the
tools of cxx.py.
"""

import os
import platform
import runpy
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CXX = Path(__file__).with_name("cxx.py")


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    os.chdir(ROOT)
    os.environ["CXX"] = shlex.join([sys.executable, str(CXX)])
    platform.system, platform.machine = lambda: "Darwin", lambda: "arm64"
    oldest = runpy.run_path(str(CXX))["OLDEST_MACOS"].replace(".", "_")
    wheel = ["bdist_wheel", "--dist-dir", str(folder), "--plat-name", f"macosx_{oldest}_arm64"]
    sys.argv = ["setup.py", *wheel]
    runpy.run_path(str(ROOT / "setup.py"))


if __name__ == "__main__":
    main()
