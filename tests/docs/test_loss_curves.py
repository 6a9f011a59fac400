"""What docs/guide/keras.md says about the accuracy of bfloat16 is what was measured."""

import json
from pathlib import Path

import keras
import matplotlib
import numpy as np
import pytest
import tensorflow as tf

import loss_curves
import plot_loss_curves as script
from pages import ROOT

RESULTS = json.loads((script.FOLDER / script.NAME).read_text(encoding="utf-8"))
RUNS = RESULTS["runs"]
PAGE = (ROOT / "docs" / "guide" / "keras.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n### When to use bfloat16\n")[2].partition("\n## ")[0]
WORDS = " ".join(SECTION.split())


def last(task: str, dtype: str) -> tuple[float, float, float]:
    """The smallest value, the median and the largest value of the losses of the last epoch."""
    low, median, high = script.band(RUNS, task, "loss", dtype)[:, -1]
    return low, median, high


def test_table_is_that_of_the_results() -> None:
    """If not: python scripts/plot_loss_curves.py prints it."""
    assert f"\n{script.table(RUNS)}\n" in SECTION


def test_page_says_what_was_measured() -> None:
    assert "AMD EPYC (Zen 5) with AVX512_BF16" in WORDS
    assert "AMD EPYC (cpu family 26" in RESULTS["machine"]["processor"]  # family 26 is Zen 5
    assert RESULTS["machine"]["instruction set"].endswith("-bf16")
    curves = [run for types in RUNS.values() for runs in types.values() for run in runs]
    assert len(curves) == 2 * len(script.DTYPES) * len(loss_curves.SEEDS)
    epochs = {task: len(RUNS[task]["float32"][0]["loss"]) for task in RUNS}
    assert epochs == {"demo": loss_curves.DEMO_EPOCHS, "adding": loss_curves.EPOCHS}
    steps = loss_curves.EPOCHS * loss_curves.SEQUENCES // loss_curves.BATCH_SIZE
    assert f"{loss_curves.UNITS} units" in WORDS and f"{steps:,} training steps" in WORDS
    assert f"`beta_2={loss_curves.BETA_2}`" in WORDS


@pytest.mark.parametrize("task", ["demo", "adding"])
def test_mixed_precision_differs_less_than_the_seeds(task: str) -> None:
    low, median, high = last(task, "float32")
    mixed = last(task, "mixed_bfloat16")
    assert abs(mixed[1] - median) < high - low
    assert mixed[0] < high and low < mixed[2]


def test_bfloat16_weights_cost_accuracy_in_the_adding_problem_only() -> None:
    _, float32, high = last("adding", "float32")
    low, bfloat16, _ = last("adding", "bfloat16")
    assert low > high
    assert f"is {bfloat16 / float32:.1f} times that of float32" in WORDS
    assert last("demo", "bfloat16")[0] < last("demo", "float32")[1] < last("demo", "bfloat16")[2]


@pytest.mark.parametrize("weight", [1.0, 1.5, 255 / 128])
def test_bfloat16_loses_small_updates(weight: float) -> None:
    value = tf.constant(weight, tf.bfloat16)
    for update in (0.99 * weight / 512, -0.99 * weight / 512):
        assert value + tf.cast(update, tf.bfloat16) == value


@pytest.mark.parametrize(("options", "changes"), [({}, False), ({"beta_2": 0.99}, True)])
def test_adam_changes_no_bfloat16_weights_by_default(options: dict, changes: bool) -> None:
    """Its beta_2 is 1 in bfloat16, which the correction of the bias makes a factor of 0."""
    weight = keras.Variable(np.full(3, 0.5), dtype="bfloat16")
    optimizer = keras.optimizers.Adam(0.1, **options)
    for _ in range(3):
        optimizer.apply([tf.ones(3, tf.bfloat16)], [weight])
    assert (np.array(weight.value, "float32") != 0.5).all() == changes


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plot_is_that_of_the_results(theme: str, tmp_path: Path) -> None:
    """If not: the script writes it. Bytes depend on matplotlib's version."""
    name = f"loss_curves-{theme}.svg"
    assert f'="../../benchmarks/{name}"' in SECTION
    committed = (script.FOLDER / name).read_bytes()
    assert script.metadata(RUNS)["Description"].encode() in committed
    script.save(RUNS, theme, tmp_path / name)
    if f"Matplotlib v{matplotlib.__version__},".encode() in committed:
        assert (tmp_path / name).read_bytes() == committed


@pytest.mark.parametrize("dtype", script.DTYPES)
def test_models_begin_with_the_weights_of_float32(dtype: str) -> None:
    got, expected = (
        loss_curves.in_dtype(loss_curves.build_adding, 1, name, seed=1).get_weights()
        for name in (dtype, "float32")
    )
    for a, b in zip(got, expected, strict=True):
        rounded = tf.cast(b, a.dtype)
        np.testing.assert_array_equal(np.array(a, "float64"), np.array(rounded, "float64"))


def test_adding_problem() -> None:
    x, y = loss_curves.adding_problem(20, np.random.default_rng(0))
    half = loss_curves.STEPS // 2
    assert x.shape == (20, loss_curves.STEPS, 2) and y.shape == (20,)
    assert (x[:, :half, 1].sum(1) == 1).all() and (x[:, half:, 1].sum(1) == 1).all()
    # y is the sum in float64; x is rounded to float32.
    np.testing.assert_allclose((x[..., 0] * x[..., 1]).sum(1), y, rtol=2.0**-22)


@pytest.mark.full
@pytest.mark.parametrize("dtype", script.DTYPES)
def test_a_short_training_has_the_curves_of_the_table(dtype: str) -> None:
    short = {
        "demo": loss_curves.train_demo(dtype, 0, epochs=2),
        "adding": loss_curves.train_adding(dtype, 0, epochs=2, count=64),
    }
    for task, curve, *_ in script.ROWS:
        assert len(short[task][curve]) == 2
        assert np.isfinite(short[task][curve]).all()
    assert short["demo"]["loss"][1] < short["demo"]["loss"][0]
