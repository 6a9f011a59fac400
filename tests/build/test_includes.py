"""The include rule of the C++ code: core <- backends <- dialects -> tf, backends/cpu <- session,
and training, which includes session and dialects/keras.

Each folder of cc/ includes its own headers and those that its arrow allows. A backend includes no
other backend, and a dialect no other dialect but dialects/common. A file directly in cc/dialects
may include all dialects.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SUFFIXES = {".h", ".cc", ".mm", ".cu", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*(?:include|import)\s*["<]([^">]+)[">]', re.MULTILINE)
# Compiled beside TensorFlow, with its C++ headers.
WITH_TENSORFLOW = "tf/cuda/stream_library"


def group(path: str) -> str | None:
    """The unit of the rule, such as core, backends/cpu, dialects, dialects/keras; else None."""
    first, *folders = path.split("/")[:-1] or [""]
    if first in ("core", "session", "tf", "training"):
        return first
    if first in ("backends", "dialects"):
        return "/".join([first, *folders[:1]])
    return None


def is_allowed(path: str, included: str) -> bool:
    if included.startswith("tensorflow/"):
        return path.startswith(WITH_TENSORFLOW)
    own, unit = group(path), group(included)
    assert own is not None, f"cc/{path} is in no folder that the rule knows"
    if unit is None:
        return True  # of a system or a library
    if own == "training":
        return unit in ("training", "session", "core", "backends/cpu", "dialects/keras")
    if "session" in (own, unit):
        return own == "session" and unit in ("session", "core", "backends/cpu")
    if own == "dialects":
        return True
    if own.startswith("dialects/"):
        return not unit.startswith("dialects/") or unit in (own, "dialects/common")
    return unit in (own, "core")


def violations(cc: Path) -> Iterator[str]:
    """One line for each include against the rule: file:line, what it includes."""
    for source in sorted(path for path in cc.rglob("*") if path.suffix in SUFFIXES):
        text, path = source.read_text(), source.relative_to(cc).as_posix()
        for found in INCLUDE.finditer(text):
            if not is_allowed(path, found[1]):
                line = text.count("\n", 0, found.start(1)) + 1
                yield f"cc/{path}:{line} includes {found[1]}"


def test_includes_follow_the_rule(root):
    found = list(violations(root / "cc"))
    assert not found, "\n".join([f"{len(found)} includes against the rule:", *found])


def test_the_forward_pass_needs_nothing_of_the_backward_pass(root):
    """Inference has no part of training, neither in the library of sessions nor for a reader."""
    forward = (root / "cc/backends/cpu/simd/forward").glob("*.h")
    found = [f"{f.name}: {name}" for f in forward for name in INCLUDE.findall(f.read_text())]
    assert found
    assert not [line for line in found if "/backward/" in line or "training_engine" in line]


def test_quoted_includes_exist(root):
    """Each include of our own names a file by its path from cc/."""
    missing = [
        f"cc/{source.relative_to(root / 'cc')}: {name}"
        for source in (root / "cc").rglob("*")
        if source.suffix in SUFFIXES
        for name in INCLUDE.findall(source.read_text())
        if group(name) and not (root / "cc" / name).exists()
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("path", "included", "expected"),
    [
        ("core/shape.h", "backends/cpu/layer.h", False),
        ("core/shape.h", "core/status.h", True),
        ("core/shape.h", "vector", True),
        ("backends/metal/device.h", "tf/kernel.h", False),
        ("backends/metal/device.h", "dialects/common/inputs.h", False),
        ("backends/metal/device.h", "backends/cpu/layer.h", False),
        ("backends/metal/device.h", "backends/metal/program.h", True),
        ("backends/cuda/kernels/layer.cu", "core/lstm_cell.h", True),
        ("tf/kernel.h", "dialects/common/inputs.h", False),
        ("tf/kernel.h", "backends/cpu/layer.h", False),
        ("tf/kernel.h", "tensorflow/core/framework/op_kernel.h", False),
        ("tf/cuda/stream_library/stream.cc", "tensorflow/core/framework/op_kernel.h", True),
        ("dialects/keras/problem.h", "dialects/mpsgraph/problem.h", False),
        ("dialects/keras/problem.h", "dialects/common/inputs.h", True),
        ("dialects/keras/kernels_cpu.cc", "backends/cpu/layer.h", True),
        ("dialects/common/inputs.h", "dialects/keras/problem.h", False),
        ("dialects/common/inputs.h", "tf/kernel.h", True),
        ("dialects/keras/kernels_cpu.cc", "tf/op.h", True),
        ("session/session.h", "core/sequence.h", True),
        ("session/session.h", "backends/cpu/frozen_layer.h", True),
        ("session/session.h", "session/error.h", True),
        ("session/session.h", "tf_lstm_ops.h", True),
        ("session/session.h", "backends/cuda/device.h", False),
        ("session/session.h", "dialects/keras/problem.h", False),
        ("session/session.h", "tf/kernel.h", False),
        ("dialects/keras/problem.h", "session/session.h", False),
        ("dialects/ops.h", "session/session.h", False),
        ("backends/cpu/layer.h", "session/session.h", False),
        ("core/shape.h", "session/session.h", False),
    ],
)
def test_rule(tmp_path, path, included, expected):
    """A file with one include in a tree of its own."""
    source = tmp_path / path
    source.parent.mkdir(parents=True)
    source.write_text(f'// A comment.\n#include "{included}"\n')
    want = [] if expected else [f"cc/{path}:2 includes {included}"]
    assert list(violations(tmp_path)) == want
