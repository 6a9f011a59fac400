"""Builds the wheels of a release on one Linux machine, from a clean checkout.

    scripts/release/build [FOLDER] [PLATFORM ...]

Writes the wheels, a bill of materials for each and SHA256SUMS to FOLDER, by default dist/. Two
builds of one commit give the same bytes. docs/reference/releases.md says what is needed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
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
import sbom
import stream_libraries

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PLATFORMS = ["manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "macosx_13_0_arm64"]
LARGEST = 5_000_000  # bytes
TENSORFLOW = "libtensorflow_framework.so.2"  # is in the process before ours are loaded
TOOLS = ["auditwheel", "setuptools", "ziglang"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist")
    parser.add_argument("platforms", nargs="*", default=PLATFORMS, metavar="PLATFORM")
    parser.add_argument("--dirty", action="store_true", help="also with uncommitted changes")
    options = parser.parse_args()
    if unknown := set(options.platforms) - set(PLATFORMS):
        parser.error(f"PLATFORM must be of {PLATFORMS}, got {sorted(unknown)}")
    if not options.dirty and (changes := git("status", "--porcelain")):
        sys.exit(f"the checkout must be clean, but git status says:\n{changes}")
    output = options.folder.resolve()
    output.mkdir(parents=True, exist_ok=True)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))
    cache = Path(os.environ["TF_LSTM_OPS_RELEASE_CACHE"]).resolve()
    with tempfile.TemporaryDirectory() as work:
        checkout = Path(work) / "checkout"
        export(checkout, options.dirty)
        for name in options.platforms:
            print(f"=== {name}", flush=True)
            build(name, checkout, Path(work) / name, cache, epoch, output)
    write_sums(output)


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


def build(name: str, checkout: Path, work: Path, cache: Path, epoch: int, output: Path) -> None:
    """Builds the wheel of a platform and its bill of materials."""
    system, processor = (
        ("Darwin", "arm64") if "macosx" in name else ("Linux", name.removeprefix("manylinux_2_28_"))
    )
    compile_package(name, system, processor, checkout, work)
    [built] = work.glob("*.whl")
    files = archive.read(built)
    if system == "Linux":
        for library in stream_libraries.compile_all(processor, cache, work / "stream"):
            files[f"tf_lstm_ops/_lib/{library.name}"] = library.read_bytes()
        archive.write(built, files, epoch)
        files = archive.read(audited(built, name, work / "audited"))
    version = built.name.split("-")[1]
    native = {path: data for path, data in files.items() if path.endswith(".so")}
    tools = {tool: importlib.metadata.version(tool) for tool in TOOLS}
    text = sbom.sbom("tf_lstm_ops", version, native, tools, epoch)
    files[f"{archive.dist_info(files)}/sboms/tf_lstm_ops.cdx.json"] = text.encode()
    wheel = output / f"tf_lstm_ops-{version}-py3-none-{name}.whl"
    archive.write(wheel, files, epoch)
    wheel.with_suffix(".cdx.json").write_text(text)
    if wheel.stat().st_size > LARGEST:
        sys.exit(f"{wheel} has {wheel.stat().st_size} bytes, more than {LARGEST}")


def compile_package(name: str, system: str, processor: str, checkout: Path, work: Path) -> None:
    """Runs setup.py in a process that takes itself for one on the platform."""
    work.mkdir()
    macos = [sys.executable, str(checkout / "scripts" / "macos" / "cxx.py")]
    linux = [sys.executable, str(checkout / "scripts" / "release" / "linux_cxx.py"), processor]
    zig = os.environ.get("ZIG_GLOBAL_CACHE_DIR") or str(work.parent / "zig")
    environment = {
        **os.environ,
        "CXX": shlex.join(macos if system == "Darwin" else linux),
        "ZIG_GLOBAL_CACHE_DIR": zig,
    }
    # auditwheel replaces the tag linux_….
    tag = name if system == "Darwin" else f"linux_{processor}"
    arguments = [system, processor, "bdist_wheel", "--dist-dir", str(work), "--plat-name", tag]
    with (work / "build.log").open("wb") as log:
        done = subprocess.run(
            [sys.executable, str(HERE / "wheels.py"), "--setup", *arguments],
            cwd=checkout,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    if done.returncode:
        sys.exit((work / "build.log").read_text(errors="replace")[-5000:])


def run_setup(system: str, processor: str, arguments: list[str]) -> None:
    platform.system, platform.machine = lambda: system, lambda: processor
    sys.argv = ["setup.py", *arguments]
    runpy.run_path("setup.py")


def audited(wheel: Path, name: str, folder: Path) -> Path:
    """The wheel under the manylinux tag, which auditwheel gives it only if it earns it."""
    audit = ["auditwheel", "repair", "--exclude", TENSORFLOW, "--plat", name, "--only-plat"]
    subprocess.run([*audit, "--wheel-dir", str(folder), str(wheel)], check=True)
    [result] = folder.glob("*.whl")
    return result


def write_sums(folder: Path) -> None:
    """SHA256SUMS of all files of the release in a folder."""
    files = sorted(p for p in folder.iterdir() if p.name.endswith((".whl", ".cdx.json")))
    lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in files]
    (folder / "SHA256SUMS").write_text("".join(lines))
    print("".join(lines), *(f"{p.stat().st_size:9d}  {p.name}\n" for p in files), sep="")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--setup"]:
        run_setup(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        main()
