"""A build into a folder with the objects of an earlier one compiles what changed, and no more."""

import os
import shlex
import shutil
from pathlib import Path

import pytest

SOURCES = {
    "cc/one.cc": '#include "own.h"\n#include "shared.h"\nint one() { return kShared + kOwn; }\n',
    "cc/two.cc": '#include "shared.h"\nint two() { return kShared; }\n',
    "cc/text.cc": 'asm(".section .rodata\\n.incbin \\"cc/text.cu\\"\\n.previous\\n");\n',
    "cc/text.cu": "device code",
    "cc/own.h": "constexpr int kOwn = 1;\n",
    "cc/shared.h": "constexpr int kShared = 2;\n",
}
ALL = {"one", "text", "two"}


@pytest.fixture
def checkout(native, root, cxx, monkeypatch, tmp_path) -> Path:
    """A checkout of few sources in place of this one."""
    folder = tmp_path / "a checkout"
    shutil.copytree(root / "build_defs", folder / "build_defs")
    for name, text in SOURCES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("CXX", shlex.join(cxx))
    monkeypatch.setattr(native, "ROOT", folder)
    lists = {"SOURCES": ["cc/*.cc"], "SIMD_SOURCES": [], "CUDA_TEXTS": ["cc/*.cu"]}
    for name, patterns in lists.items():
        monkeypatch.setitem(native.FLAGS, name, patterns)
    return folder


@pytest.fixture
def build(native, checkout, monkeypatch):
    """Builds the library; returns the names of the sources that were compiled."""
    commands = []
    run = native._run
    monkeypatch.setattr(native, "_run", lambda command: [commands.append(command), run(command)])
    output = checkout / native.FLAGS["LIBRARY"]

    def compiled() -> set[str]:
        commands.clear()
        native.build([output], checkout / "objects")
        assert output.exists()
        return {Path(c[c.index("-c") + 1]).stem for c in commands if "-c" in c}

    assert compiled() == ALL
    return compiled


def test_nothing_changed(build):
    assert build() == set()


@pytest.mark.parametrize(
    ("changed", "compiled"),
    [
        ("cc/two.cc", {"two"}),
        # No compiler lists what the assembler embeds, so every header counts as embedded.
        ("cc/own.h", {"one", "text"}),
        ("cc/shared.h", {"one", "text", "two"}),
        ("cc/text.cu", {"text"}),
    ],
)
def test_what_reads_a_changed_file_is_compiled(build, checkout, changed, compiled):
    os.utime(checkout / changed)
    assert build() == compiled
    assert build() == set()


def test_a_new_header_takes_effect(build, checkout):
    (checkout / "cc" / "two.cc").write_text('#include "new.h"\nint two() { return kNew; }\n')
    (checkout / "cc" / "new.h").write_text("constexpr int kNew = 3;\n")
    assert "two" in build()
    os.utime(checkout / "cc" / "new.h")
    assert "two" in build()


def test_a_removed_header_is_noticed(native, build, checkout):
    (checkout / "cc" / "own.h").unlink()
    with pytest.raises(native.BuildError, match=r"own\.h"):
        build()


def test_other_flags_compile_all(native, build, monkeypatch):
    monkeypatch.setitem(native.FLAGS, "COPTS", [*native.FLAGS["COPTS"], "-DOTHER"])
    assert build() == ALL


def test_what_failed_is_compiled_again(native, build, checkout):
    two = checkout / "cc" / "two.cc"
    good = two.read_text()
    two.write_text("an error")
    with pytest.raises(native.BuildError):
        build()
    two.write_text(good)
    assert build() == {"two"}
