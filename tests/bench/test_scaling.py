"""The script that measures the growth of time: operations, growth factors, table. No process."""

import itertools
import sys
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest

from peers.cases import Row

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "scaling.py"


@pytest.fixture(scope="module")
def scaling() -> ModuleType:
    spec = util.spec_from_file_location("scaling", SCRIPT)
    assert spec and spec.loader
    module = util.module_from_spec(spec)
    sys.modules["scaling"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def row(task: str = "inference", batch: int = 2, units: int = 4) -> Row:
    return Row("row", task, task, batch, 10, units, 3, peers=("ours",))


def test_operations_are_two_for_each_multiply_add(scaling: ModuleType) -> None:
    products = 2 * 10 * 4 * 4 * (3 + 4)  # N T, four gates of H units, I + H inputs
    assert scaling.operations(row()) == pytest.approx(2 * products)
    # The formula in the head of the script.
    n, t, h, i = 2, 10, 4, 3
    assert scaling.operations(row()) == pytest.approx(8 * n * t * h * (i + h))
    assert scaling.operations(row("training")) == pytest.approx(3 * 2 * products)


def test_sweeps_have_whole_doublings(scaling: ModuleType) -> None:
    sizes = {name: sweep.sizes for name, sweep in scaling.SWEEPS.items()}
    assert sizes["batch"] == tuple(2**k for k in range(13))
    assert sizes["units"] == (8, 16, 32, 64, 128, 256, 512, 1024)
    assert sizes["steps"][0] == 10 and sizes["steps"][-1] >= 10000
    assert all(b == 2 * a for s in sizes.values() for a, b in itertools.pairwise(s))
    found = scaling.SWEEPS["units"].rows("training", odd=True)
    assert list(found) == sorted(found)
    assert set(found) > set(sizes["units"])
    assert found[12].units == 12 and found[12].task == "training"


@pytest.mark.parametrize(("size", "expected"), [(8, None), (12, None), (16, 8), (25, 12), (32, 16)])
def test_growth_is_counted_from_half_of_the_size(
    scaling: ModuleType, size: int, expected: int | None
) -> None:
    assert scaling.previous(size, [8, 12, 16, 25, 32]) == expected


def test_growth_factor_is_of_a_doubling(scaling: ModuleType) -> None:
    rows = {n: row(batch=n) for n in (1, 2, 4, 16)}
    found = scaling.growth_factors(rows, {1: 1.0, 2: 2.0, 4: 5.0, 16: 5 * 4 * 1.21})
    assert found == pytest.approx({2: 1.0, 4: 1.25, 16: 1.1})


def test_growth_of_operations_counts_both_products(scaling: ModuleType) -> None:
    rows = {h: row(units=h) for h in (4, 8)}
    operations = (8 * (3 + 8)) / (4 * (3 + 4))
    found = scaling.growth_factors(rows, {4: 1.0, 8: 1.2 * operations})
    assert found == pytest.approx({8: 1.2})


def test_factors_above_the_limit_are_measured_again(scaling: ModuleType) -> None:
    times = {1: [1.0], 2: [2.4, 2.3, 2.1], 4: [4.2], 8: [8.0], 16: [20.0, 19.0, 21.0]}
    again = {1: [0.99, 1.01], 8: [8.1, 8.2]}
    queue = {n: iter(times[n] + again.get(n, [])) for n in times}
    curve = scaling.Curve({n: row(batch=n) for n in times})
    curve.measure(lambda row: next(queue[row.batch]))
    # Those of rows 1 and 2, and of 8 and 16, in each repetition; the shortest ones are kept.
    assert curve.seconds == {1: 0.99, 2: 2.1, 4: 4.2, 8: 8.0, 16: 19.0}
    assert curve.above == [16]
    assert all(next(rest, None) is None for rest in queue.values())


@pytest.fixture
def measured(scaling: ModuleType) -> dict:
    curves = {}
    for task in ("inference", "training"):
        rows = scaling.SWEEPS["batch"].rows(task, odd=False)
        seconds = {n: 1e-3 * n ** (1.2 if n == 4 else 1) for n in rows}
        curves[task] = scaling.Curve(rows, seconds)
    return {"batch": curves}


def test_table_marks_what_is_above_the_limit(scaling: ModuleType, measured: dict) -> None:
    text = scaling.document({"capacity": "1.96 of 2 threads"}, measured)
    assert "* capacity: 1.96 of 2 threads\n" in text
    factor = 4**1.2 / 4
    rate = 8 * 4 * 25 * 128 * (64 + 128) / (1e-3 * 4**1.2) / 1e9
    cells = f"{4**1.2:.4g} | {rate:.1f} | **{factor:.2f}, above 1.1**"
    assert f"| 4 | {cells} | {4**1.2:.4g} | {3 * rate:.1f} | **{factor:.2f}, above 1.1** |" in text
    assert "* factors above 1.1: inference N4, training N4\n" in text
    assert text.count("above 1.1**") == 2
    assert "## N from 1 to 4096, T25 I64 H128\n" in text


def test_plot_is_drawn(scaling: ModuleType, measured: dict, tmp_path: Path) -> None:
    scaling.save_plot(tmp_path / "scaling.png", measured)
    assert (tmp_path / "scaling.png").stat().st_size > 1000
