"""Our declarations of Apple's classes agree with those that packages publish: names, types of
arguments and results, values of enumerations."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from metal import build, declarations
from metal.declarations import FRAMEWORKS, Member

HEADERS = declarations.headers()


def unpublished(header: str) -> list[Member]:
    members = json.loads(declarations.PUBLISHED.read_text())["members"]
    return [m for m in declarations.declared(header) if str(m) not in members.get(m.owner, [])]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_declarations_are_published(framework):
    assert unpublished(HEADERS[framework]) == []


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_declaration_is_read(framework):
    """The parser finds every method and property."""
    text = HEADERS[framework]
    count = text.count("\n- (") + text.count("\n+ (") + text.count("@property(")
    assert len(list(declarations.declared(text))) == count > 0


def test_enumerations():
    values = json.loads(declarations.PUBLISHED.read_text())["enumerations"]
    ours = {n: v for text in HEADERS.values() for n, v in declarations.enumerations(text).items()}
    assert "MPSDataTypeFloat16" in ours and ours == values


@pytest.mark.parametrize(
    "right, wrong",
    [
        ("sliceTensor:(", "sliceOfTensor:("),
        ("withDimension:(NSUInteger)", "toDimension:(NSUInteger)"),
        ("axis:(NSInteger)axis", "axis:(NSArray<NSNumber*>*)axis"),
        ("+ (instancetype)descriptor;", "- (instancetype)descriptor;"),
        ("@property(readwrite) BOOL training;", "@property(readwrite) BOOL trains;"),
        ("- (MPSGraphTensor*)castTensor", "- (NSArray*)castTensor"),
    ],
)
def test_a_wrong_declaration_is_caught(right, wrong):
    text = HEADERS["MetalPerformanceShadersGraph"]
    assert right in text
    assert unpublished(text.replace(right, wrong))


@pytest.mark.metal
@pytest.mark.parametrize("receiver", ["MPSGraph* graph", "id graph"])
def test_a_selector_that_is_not_declared_does_not_compile(tmp_path, receiver):
    source = tmp_path / "wrong.mm"
    for selector, compiles in [("tanhWithTensor:nil", True), ("tangentWithTensor:nil", False)]:
        source.write_text(
            "#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>\n"
            f"void Send({receiver}) {{ [graph {selector} name:nil]; }}\n"
        )
        command = [*build.COMPILER, *build.objective_c_flags(), "-fsyntax-only", str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode == 0) == compiles, done.stderr
        assert compiles or "tangentWithTensor:name:" in done.stderr


@pytest.mark.slow
@pytest.mark.downloads("an npm package, and PyObjC")
def test_packages_still_say_so(tmp_path):
    """Downloads the packages and extracts published.json once more."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")

    def run(*command: str) -> None:
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    run("npm", "pack", declarations.PACKAGES["npm"])
    [archive] = tmp_path.glob("*.tgz")
    run("tar", "xzf", archive.name)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest=wheels"]
    pip += ["--only-binary=:all:", "--python-version=3.12", "--platform=macosx_10_13_universal2"]
    run(*pip, *declarations.PACKAGES["PyPI"])
    for wheel in (tmp_path / "wheels").iterdir():
        shutil.unpack_archive(wheel, tmp_path / "pyobjc", "zip")
    found = declarations.extract(tmp_path / "package", Path(tmp_path / "pyobjc"))
    assert declarations.text_of(found) == declarations.PUBLISHED.read_text()
