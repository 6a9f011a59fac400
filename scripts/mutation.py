"""Changes an operator or a number in the C++ code, rebuilds, and runs tests, which must fail.

    python scripts/mutation.py --samples 100 --seed 0

The sources are cc/core and cc/backends/cpu, the instruction set x86-64-v3. The changed source, or
each source that includes the changed header, is compiled in a copy of the tree and linked with the
objects of the unchanged sources. First the fuzzer runs against the changed library, then, if that
has not failed, the tests in TESTS. A change that nothing notices is printed: a survivor. It needs a
test, or a reason why the change does not matter. `--first` continues a run at a sample's number.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".build" / "mutation"
SIMD, SIMD_NAME = "x86_64_v3", "x86-64-v3"
SOURCES = ("cc/core/*.h", "cc/core/*.cc", "cc/backends/cpu/**/*.h", "cc/backends/cpu/**/*.cc")
LIMIT = 300  # seconds for the tests of one change: an endless loop is noticed
CALLS = "1500"
TESTS = [
    "tests/core/test_bits.py",
    "tests/soak/test_extremes.py",
    "tests/block_cell/test_forward.py",
    "tests/block_cell/test_gradients.py",
    "tests/block_cell/test_rejected_inputs.py",
    "tests/block_cell/test_cves.py",
    "tests/cudnn_rnn/test_reserve.py",
    "tests/cudnn_rnn/test_dropout.py",
    "tests/keras/test_masks.py",
    "tests/keras/test_kept_weights.py",
    "tests/keras/test_projection_and_activations.py",
    "tests/mpsgraph/test_gradients.py",
]
FLIPS = {
    " + ": " - ",
    " - ": " + ",
    " * ": " + ",
    " / ": " * ",
    " < ": " <= ",
    " <= ": " < ",
    " > ": " >= ",
    " >= ": " > ",
    " == ": " != ",
    " != ": " == ",
    " && ": " || ",
    " || ": " && ",
    " += ": " -= ",
    "++": "--",
}
PATTERN = re.compile(
    "|".join(re.escape(f) for f in sorted(FLIPS, key=len, reverse=True))
    + r"|(?<![\w.\"])\d+(?![\w.])"
)


class Change(NamedTuple):
    file: str
    line: int  # from 1
    column: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.old.strip()} -> {self.new.strip()}"

    def apply(self, root: Path) -> None:
        path = root / self.file
        lines = path.read_text().splitlines(keepends=True)
        text = lines[self.line - 1]
        end = self.column + len(self.old)
        lines[self.line - 1] = text[: self.column] + self.new + text[end:]
        path.write_text("".join(lines))


def changes() -> list[Change]:
    """All that may be changed: outside of comments, strings and directives."""
    files = sorted({path for pattern in SOURCES for path in ROOT.glob(pattern)})
    return [change for path in files for change in changes_of(path)]


def changes_of(path: Path) -> Iterator[Change]:
    name = path.relative_to(ROOT).as_posix()
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        code = line.split("//")[0]
        # Template arguments, assertions about types and messages are not computed with.
        if code.lstrip().startswith(("#", "*", "static_assert", "template")) or '"' in code:
            continue
        for match in PATTERN.finditer(code):
            old = match.group()
            new = FLIPS.get(old) or str(int(old) + 1)
            yield Change(name, number, match.start(), old, new)


def sample(count: int, seed: int) -> list[Change]:
    import numpy as np

    found = changes()
    order = np.random.default_rng(seed).permutation(len(found))
    return [found[k] for k in order[:count]]


# --- one change ------------------------------------------------------------------------------


def native(root: Path):
    """build_defs/native.py of the tree at this path."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("native", root / "build_defs" / "native.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prepare() -> None:
    """The objects of the unchanged sources, and a copy of the tree."""
    if not os.environ.get("CXX") and shutil.which("ccache"):
        os.environ["CXX"] = "ccache c++"
    os.environ["CCACHE_NOHASHDIR"] = "1"
    tree = FOLDER / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for part in ("cc", "build_defs"):
        shutil.copytree(ROOT / part, tree / part)
    module = native(tree)
    with open(FOLDER / "build.log", "w") as log:
        quietly(log, lambda: module.build([FOLDER / "tf_lstm_ops.so"], FOLDER / "objects"))


def quietly(log, function) -> None:
    """Runs a function, with what it prints in a file."""
    stdout, sys.stdout = sys.stdout, log
    try:
        function()
    finally:
        sys.stdout = stdout


def build(change: Change) -> bool:
    """Builds the library with the change. False where the compiler refuses it."""
    tree, objects, changed = FOLDER / "tree", FOLDER / "objects", FOLDER / "changed"
    shutil.rmtree(changed, ignore_errors=True)
    changed.mkdir()
    module = native(tree)
    linked = []
    for unit in module.units("x86_64"):
        files = [unit.source, *module._included((objects / unit.object).with_suffix(".d"))]
        other_set = "_SIMD=" in unit.flags[-1] and not unit.flags[-1].endswith(f"={SIMD}")
        if change.file not in files or other_set:
            linked.append(str(objects / unit.object))
            continue
        # Not as fast as a release: the compiler takes most of the time.
        command = [*module.compile_command(unit, changed), "-O1"]
        result = subprocess.run(command, cwd=tree, capture_output=True, text=True)
        if result.returncode != 0:
            return False
        linked.append(str(changed / unit.object))
    command = module.link_command([], objects, FOLDER / "changed.so", "Linux")
    position = command.index("-shared") + 1
    subprocess.run([*command[:position], *linked, *command[position:]], cwd=tree, check=True)
    return True


def is_noticed(change: Change) -> str | None:
    """What has failed with the changed library; None for nothing."""
    environment = {
        **os.environ,
        "TF_LSTM_OPS_LIBRARY": str(FOLDER / "changed.so"),
        "TF_LSTM_OPS_SIMD": SIMD_NAME,
    }
    commands = {
        "fuzz": ["-m", "tests.fuzz", "--calls", CALLS],
        "tests": ["-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider", *TESTS],
    }
    for name, command in commands.items():
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            if process.wait(timeout=LIMIT) != 0:
                return name
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return f"{name}, by time"
    return None


def run(change: Change) -> str:
    """What became of a change: "killed by …", "survived" or "did not compile"."""
    change.apply(FOLDER / "tree")
    try:
        if not build(change):
            return "did not compile"
        noticed = is_noticed(change)
        return f"killed by {noticed}" if noticed else "survived"
    finally:
        shutil.copy(ROOT / change.file, FOLDER / "tree" / change.file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parsed = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    prepare()
    outcomes = []
    chosen = sample(parsed.first + parsed.samples, parsed.seed)[parsed.first :]
    for number, change in enumerate(chosen, start=parsed.first):
        begin = time.monotonic()
        outcome = run(change)
        outcomes.append(outcome)
        print(f"{number} {change}: {outcome} ({time.monotonic() - begin:.0f} s)", flush=True)
    compiled = [outcome for outcome in outcomes if outcome != "did not compile"]
    survivors = outcomes.count("survived")
    print(f"{len(compiled) - survivors} of {len(compiled)} changes were noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
