"""The Python blocks of docs/mpsgraph.md run, from top to bottom, and print what they say; the
errors that it lists are given."""

import re
from pathlib import Path

import pytest
import tensorflow as tf

from tf_lstm_ops import raw_ops

PAGE = Path(__file__).parents[2] / "docs" / "mpsgraph.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_page_runs(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(blocks) == TEXT.count("```python") == 2
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {"__name__": "docs"})
    printed = capsys.readouterr().out.splitlines()
    said = re.findall(r"^print\(.*\)  # (.*)$", "\n".join(blocks), re.MULTILINE)
    assert printed == said


def test_errors_are_as_shown():
    """Of calls with T, N, I, H = 7, 4, 3, 5 and two directions, one argument wrong at a time."""
    right = {
        "source": tf.zeros([7, 4, 3]),
        "recurrent_weight": tf.zeros([2, 20, 5]),
        "input_weight": tf.zeros([40, 3]),
    }
    wrong = [
        {"source": tf.zeros([7, 3])},
        {"bias": tf.zeros([20])},
        {"mask": tf.zeros([5])},
        {"recurrent_weight": tf.zeros([2, 0, 0])},
        {"init_state": tf.zeros([4, 10], tf.float64)},
    ]
    (block,) = re.findall(r"^```text\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    for arguments, message in zip(wrong, block.splitlines(), strict=True):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            raw_ops.MPSGraphLSTM(**{**right, **arguments}, bidirectional=True)
        assert message in str(caught.value)
