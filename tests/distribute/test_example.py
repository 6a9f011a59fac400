"""examples/distributed_training.py: one device, two devices and two processes train the same."""

import re
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from launch import free_addresses, run_together

EXAMPLE = Path(__file__).parents[2] / "examples" / "distributed_training.py"
EPOCHS = 2  # of 9 steps
# The sums' order differs, by which a gradient may be off by some 1e-15. Adam divides it by its
# size plus 1e-7, and takes 18 steps of up to 5e-3 so: at worst 1e-9. Seen: 1e-15.
TOLERANCE = 1e-9


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """What each strategy printed, and the folder with the weights that it saved. The two workers
    run for a slow test only."""
    folder = tmp_path_factory.mktemp("runs")
    # Keras reads there that float64 is the default: rounding then hides no difference.
    (folder / "keras.json").write_text('{"floatx": "float64", "backend": "tensorflow"}')

    def command(name: str, *arguments: object) -> list[object]:
        weights = folder / f"{name}.weights.h5"
        return [EXAMPLE, "--epochs", EPOCHS, "--save", weights, *arguments]

    environment = {"KERAS_HOME": str(folder)}
    addresses = free_addresses(2)
    printed = run_together(command("one"), command("two", "--replicas", 2), **environment)
    if any(item.path == request.path and "workers" in item.name for item in request.session.items):
        printed += run_together(
            *(command(f"worker {k}", "--workers", addresses, "--index", k) for k in range(2)),
            **environment,
        )
    return SimpleNamespace(folder=folder, printed=printed)


def saved_weights(file: Path) -> dict[str, np.ndarray]:
    arrays = {}

    def take(name: str, item: h5py.HLObject) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = item[()]

    with h5py.File(file) as content:
        content.visititems(take)
    return arrays


def assert_weights_of_one_device(runs: SimpleNamespace, name: str) -> None:
    one = saved_weights(runs.folder / "one.weights.h5")
    other = saved_weights(runs.folder / f"{name}.weights.h5")
    assert len(one) == 8  # three of each recurrent layer, two of the last
    assert one.keys() == other.keys()
    for key, wanted in one.items():
        assert wanted.dtype == other[key].dtype == "float64"
        np.testing.assert_allclose(other[key], wanted, rtol=0, atol=TOLERANCE, err_msg=key)
    assert any(not np.array_equal(one[key], other[key]) for key in one)  # it is another sum


@pytest.mark.full
def test_weights_are_those_of_one_device(runs: SimpleNamespace) -> None:
    assert_weights_of_one_device(runs, "two")


@pytest.mark.full
def test_progress_is_the_same(runs: SimpleNamespace) -> None:
    one, two, *_ = runs.printed
    losses = re.findall(r"^epoch \d+/\d+: loss ([\d.]+)$", one, re.MULTILINE)
    assert len(losses) == EPOCHS
    assert float(losses[-1]) < float(losses[0])
    assert one.endswith(", 1 replicas\n")
    assert two == one.replace(", 1 replicas", ", 2 replicas")


@pytest.mark.slow
def test_two_workers_train_the_same_and_the_chief_alone_reports(runs: SimpleNamespace) -> None:
    assert_weights_of_one_device(runs, "worker 0")
    _, two, chief, other = runs.printed
    assert chief == two
    assert other == ""
    assert not (runs.folder / "worker 1.weights.h5").exists()


@pytest.mark.slow
def test_uneven_shares_are_refused() -> None:
    with pytest.raises(AssertionError, match="30 utterances a step cannot be shared out evenly"):
        run_together([EXAMPLE, "--replicas", 4])


@pytest.mark.slow
def test_defaults_learn() -> None:
    (printed,) = run_together([EXAMPLE])
    assert float(re.search(r"^test accuracy ([\d.]+)%", printed, re.MULTILINE)[1]) >= 95
