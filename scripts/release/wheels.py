"""Builds a release on one Linux machine, from a clean checkout.

    scripts/release/build [FOLDER] [PLATFORM ...]

Writes the source distribution, the wheels, a bill of materials for each wheel and SHA256SUMS to
FOLDER, by default dist/. Two builds of one commit give the same bytes.
docs/reference/releases.md says what is needed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import archive
import audit
import sbom
import stream_libraries
from targets import TARGETS, Target, missing_tools

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LARGEST = 4_000_000  # bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist")
    parser.add_argument("platforms", nargs="*", default=[*TARGETS], metavar="PLATFORM")
    parser.add_argument("--dirty", action="store_true", help="also with uncommitted changes")
    options = parser.parse_args()
    if unknown := set(options.platforms) - set(TARGETS):
        parser.error(f"PLATFORM must be of {[*TARGETS]}, got {sorted(unknown)}")
    targets = [TARGETS[name] for name in options.platforms]
    if missing := missing_tools(targets):
        sys.exit(f"these tools are missing: {', '.join(missing)}")
    if not options.dirty and (changes := git("status", "--porcelain")):
        sys.exit(f"the checkout must be clean, but git status says:\n{changes}")
    output = options.folder.resolve()
    output.mkdir(parents=True, exist_ok=True)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))
    cache = Path(os.environ["TF_LSTM_OPS_RELEASE_CACHE"]).resolve()
    with tempfile.TemporaryDirectory() as work:
        checkout = Path(work) / "checkout"
        export(checkout, options.dirty)
        written = [build_sdist(checkout, Path(work) / "sdist", epoch, output)]
        for target in targets:
            print(f"=== {target.tag}", flush=True)
            written += build(target, checkout, Path(work) / target.tag, cache, epoch, output)
    write_sums(output, written)


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return done.stdout.decode().strip()


def export(checkout: Path, dirty: bool) -> None:
    """Copies the tracked files: nothing else can become a part of a wheel."""
    names = git("ls-files", *(["--others", "--exclude-standard", "--cached"] if dirty else []))
    for name in names.splitlines():
        if (ROOT / name).exists():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, checkout / name)


def build_sdist(checkout: Path, work: Path, epoch: int, output: Path) -> Path:
    """Builds the source distribution."""
    work.mkdir()
    run_logged(
        [sys.executable, "setup.py", "sdist", "--dist-dir", str(work)], checkout, work / "log"
    )
    [built] = work.glob("*.tar.gz")
    archive.write_sdist(output / built.name, built, epoch)
    return output / built.name


def build(
    target: Target, checkout: Path, work: Path, cache: Path, epoch: int, output: Path
) -> list[Path]:
    """Builds the wheel of a platform and its bill of materials."""
    compile_package(target, checkout, work)
    [built] = work.glob("*.whl")
    files = archive.read(built)
    if target.system == "Linux":
        for library in stream_libraries.compile_all(target.processor, cache, work / "stream"):
            files[f"tf_lstm_ops/_lib/{library.name}"] = library.read_bytes()
    version = built.name.split("-")[1]
    native = {path: data for path, data in files.items() if path.endswith((".so", ".a"))}
    tools = sbom.tools(target)
    text = sbom.sbom("tf_lstm_ops", version, native, tools, sbom.parts(target, tools), epoch)
    files[f"{archive.dist_info(files)}/sboms/tf_lstm_ops.cdx.json"] = text.encode()
    wheel = output / built.name
    archive.write(wheel, files, epoch)
    bill = wheel.with_suffix(".cdx.json")
    bill.write_text(text)
    if problems := audit.problems(wheel):
        sys.exit("\n".join(problems))
    if wheel.stat().st_size > LARGEST:
        sys.exit(f"{wheel} has {wheel.stat().st_size} bytes, more than {LARGEST}")
    return [wheel, bill]


def compile_package(target: Target, checkout: Path, work: Path) -> None:
    """Runs setup.py in a process that takes itself for one on the platform."""
    work.mkdir()
    zig = os.environ.get("ZIG_GLOBAL_CACHE_DIR") or str(work.parent / "zig")
    compiler = [sys.executable, *(str(checkout / part) for part in target.compiler[:1])]
    environment = {
        "CXX": shlex.join([*compiler, *target.compiler[1:]]),
        "ZIG_GLOBAL_CACHE_DIR": zig,
    }
    if target.system == "Linux":  # for the static library
        environment |= {"OBJCOPY": f"{target.gcc}objcopy", "AR": f"{target.gcc}ar"}
    setup = ["bdist_wheel", "--dist-dir", str(work), "--plat-name", target.tag]
    run_logged(
        [sys.executable, str(HERE / "wheels.py"), "--setup", target.system, target.machine, *setup],
        checkout,
        work / "build.log",
        environment,
    )


def run_logged(
    command: list[str], folder: Path, log: Path, environment: dict[str, str] | None = None
) -> None:
    """Runs a command. If it fails, the end of its output ends the process."""
    with log.open("wb") as file:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "TF_LSTM_OPS_RELEASE": "1", **(environment or {})},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    if done.returncode:
        sys.exit(log.read_text(errors="replace")[-5000:])


def run_setup(system: str, machine: str, arguments: list[str]) -> None:
    platform.system, platform.machine = lambda: system, lambda: machine
    sys.argv = ["setup.py", *arguments]
    runpy.run_path("setup.py")


def write_sums(folder: Path, files: list[Path]) -> None:
    """SHA256SUMS of the files of the release, and of those of an earlier build beside them."""
    sums = folder / "SHA256SUMS"
    old = sums.read_text().splitlines() if sums.exists() else []
    digests = {line.split()[1]: line.split()[0] for line in old}
    digests = {name: digest for name, digest in digests.items() if (folder / name).exists()}
    digests |= {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    sums.write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())))
    print(sums.read_text(), *(f"{p.stat().st_size:9d}  {p.name}\n" for p in files), sep="")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--setup"]:
        run_setup(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        main()
