"""The registry of the dialects knows every op, and CONTRIBUTING.md every file of a dialect."""

import re
from pathlib import Path

import pytest

from tf_lstm_ops import _kernels, dialects
from tf_lstm_ops.cli import info

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = "TfLstmOps>"
OPS = {op.removeprefix(NAMESPACE) for op in info._own_ops()}


def test_every_op_belongs_to_one_dialect() -> None:
    found = [op for d in dialects.DIALECTS.values() for op in (*d.composites, *d.no_composite)]
    assert sorted(found) == sorted(OPS)
    assert _kernels.ON_METAL | _kernels.NOT_ON_CUDA <= OPS


@pytest.mark.parametrize("name", dialects.DIALECTS)
def test_a_dialect_knows_all_of_its_ops(name: str) -> None:
    dialect = dialects.DIALECTS[name]
    ops = {*dialect.composites, *dialect.no_composite}
    own = {f"{NAMESPACE}{op}" for op in ops}
    registered = {op for op in dialect.gradients if op.startswith(NAMESPACE)}
    assert registered.isdisjoint(dialect.not_differentiable)
    assert registered | set(dialect.not_differentiable) == own
    assert {op for op in dialect.converters if op.startswith(NAMESPACE)} == own


@pytest.mark.parametrize("name", dialects.DIALECTS)
def test_the_recipe_names_every_file(name: str) -> None:
    """The files of a dialect that exists are those of the recipe."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Add a dialect")[2]
    rows = re.findall(r"^\|(.*)\|(.*)\|.*\|.*\|$", text.partition("\n## ")[0], re.MULTILINE)
    files, folder = set(), ""
    for first, second in rows[2:]:  # after the head
        folder = (re.findall("`(.+)`", first) or [folder])[0]
        files |= {f"{folder}/{file}".replace("<d>", name) for file in re.findall("`(.+?)`", second)}
    [count] = re.findall(r"takes \*\*(\d+) files\*\*", text)
    assert len(files) == int(count)
    in_python = {
        path.relative_to(ROOT).as_posix()
        for folder in ("raw_ops", "composite", "gradients", "vectorized")
        for path in (ROOT / "tf_lstm_ops" / folder).glob(f"{name}.py")
    }
    assert {file for file in files if (ROOT / file).exists()} >= in_python
    missing = {file for file in files if not (ROOT / file).exists()}
    # The layers call their ops without a function of raw_ops; on Metal they call another dialect's.
    assert missing <= {"tf_lstm_ops/raw_ops/keras.py", "cc/dialects/keras/kernels_metal.mm"}
