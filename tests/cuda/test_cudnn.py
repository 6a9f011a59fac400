"""How the CudnnRNN family calls cuDNN, and the choice of an algorithm. test_suites.py checks the
results."""

import json
from pathlib import Path
from typing import Any

import pytest

from cuda.test_device import check, without

pytestmark = pytest.mark.cuda

PROGRAM = Path(__file__).with_name("cudnn_program.py")
# The numbers of the algorithms: cuDNN's, then those of the package's own kernels.
STANDARD, PERSIST_STATIC, SMALL_H, STEPS, GRID, CLUSTERS = 0, 1, 3, 4, 5, 6
OWN = {STEPS, GRID, CLUSTERS}
# What makes a call take one of the own algorithms, untimed.
FORCED = {
    algorithm: {"TF_LSTM_OPS_CUDA_CUDNN": "0", "TF_LSTM_OPS_CUDA_PERSISTENT": launch}
    for algorithm, launch in ((STEPS, "0"), (GRID, "1"), (CLUSTERS, "clusters"))
}
UNTIMED = {"TF_CUDNN_USE_AUTOTUNE": "0"}
UNPACKED, PACKED, BATCH_MAJOR = 0, 1, 2
TF32, FMA = 0, 3  # math types: the default may use TF32
MANY = {"FAKE_FASTEST": str(SMALL_H)}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "cudnn.log"
    path.touch()
    return path


def run(name: str, built: Path, **environment: str) -> Any:
    return check(name, built, PROGRAM, **environment)


def logged(name: str, built: Path, log: Path, **environment: str) -> tuple[Any, list[dict]]:
    """The program's result, and the passes of cuDNN."""
    result = run(name, built, FAKE_CUDNN_LOG=str(log), **environment)
    return result, [json.loads(line) for line in log.read_text().splitlines()]


def test_without_cudnn(tmp_path, built):
    """The own kernels compute. The error of what they do not support names cuDNN's package."""
    folder = without("libcudnn.so.9", built, tmp_path / "incomplete")
    assert OWN.issuperset(run("choices", folder))
    with pytest.raises(AssertionError, match=r"libcudnn.*nvidia-cudnn-cu12"):
        run("empty_rows", folder)


def test_cudnn_is_left_out_where_it_is_not_wanted(built, log):
    choices, passes = logged("choices", built, log, TF_LSTM_OPS_CUDA_CUDNN="0")
    assert OWN.issuperset(choices)
    assert passes == []


def test_weights_are_found_where_cudnn_says(built):
    """Another layout than documented gives the same bits."""
    assert run("bits", built) == run("bits", built, FAKE_CUDNN_SCATTERED="1")


def test_a_reserve_space_serves_twice(built):
    """cuDNN's backward pass overwrites its own reserve."""
    assert run("gradients_again", built) == [True, True]


def test_cudnn_reads_lengths_only_where_there_is_padding(built, log):
    """Rows of length zero are left out."""
    _, passes = logged("passes", built, log, **UNTIMED)
    shown = [(p["padded"], p["layout"], p["batch"], p["training"]) for p in passes]
    assert shown == [
        (0, PACKED, 3, 1),
        (1, UNPACKED, 3, 1),
        (1, BATCH_MAJOR, 3, 1),
        (1, UNPACKED, 2, 0),
        # no pass for lengths that are all zero
    ]


def test_any_number_of_lengths_is_copied(built):
    assert run("many_lengths", built)


def test_float_is_multiplied_as_tensorflow_allows(built, log):
    _, passes = logged("precision", built, log, **UNTIMED)
    assert [p["math"] for p in passes] == [TF32, FMA]


def test_cudnn_computes_the_keras_layers_that_it_supports(built, log):
    """Forward, and the gradients of data and weights, of sequences without padding."""
    where = {"FAKE_CUDNN_LOG": str(log), **UNTIMED}
    found = check("cudnn_passes", built, **where)
    by_cudnn = {"plain", "last step", "backwards", "GRU", "half"}
    for name, passes in found.items():
        assert len(passes) == (3 if name in by_cudnn else 0), name
        assert all(p["layout"] == PACKED and p["padded"] == 0 for p in passes), name
    assert by_cudnn < set(found)


def test_a_keras_gradient_uses_the_algorithm_of_its_forward_op(built, log):
    found = check("cudnn_passes", built, FAKE_CUDNN_LOG=str(log), **MANY)
    assert [(p["pass"], p["algorithm"]) for p in found["half"][-3:]] == [
        ("forward", SMALL_H),
        ("backward_data", SMALL_H),
        ("backward_weights", SMALL_H),
    ]


@pytest.mark.parametrize("fastest", [STANDARD, PERSIST_STATIC, SMALL_H, STEPS, GRID, CLUSTERS])
def test_the_fastest_algorithm_is_found_once(built, log, fastest):
    (chosen, gradients), passes = logged("algorithms", built, log, FAKE_FASTEST=str(fastest))
    assert chosen == [fastest, fastest]
    # Each is timed twice, with both passes; then the chosen one runs in two calls.
    forward = [p["algorithm"] for p in passes if p["pass"] == "forward"]
    timed = [0, 0, 1, 1, 2, 2, 3, 3]
    assert forward == timed + ([] if fastest in OWN else [fastest, fastest])
    weights = [p["algorithm"] for p in passes if p["pass"] == "backward_weights"]
    assert weights == forward
    _, untimed = run("algorithms", built, **UNTIMED, **FORCED.get(fastest, {}))
    assert gradients == untimed


@pytest.mark.parametrize("fastest", [STANDARD, STEPS, GRID, CLUSTERS])
def test_all_algorithms_are_timed_for_lengths_projections_and_dropout(built, fastest):
    assert run("choices", built, FAKE_FASTEST=str(fastest)) == [fastest] * 3


@pytest.mark.parametrize("fault", ["FAKE_CUDNN_WRONG", "FAKE_CUDNN_FAILS"])
@pytest.mark.parametrize("faulty", [PERSIST_STATIC, SMALL_H])
def test_an_algorithm_that_fails_or_disagrees_is_not_chosen(built, fault, faulty):
    chosen, gradients = run(
        "algorithms", built, **{"FAKE_FASTEST": str(faulty), fault: str(faulty)}
    )
    assert faulty not in chosen
    algorithm = chosen[0]
    _, right = run("algorithms", built, **UNTIMED, **FORCED.get(algorithm, {}))
    assert gradients == right


@pytest.mark.parametrize("fastest", [STANDARD, SMALL_H, STEPS, GRID])
def test_version_1_finds_the_algorithm_in_the_size_of_the_reserve(built, log, fastest):
    found, error = run("version_1", built, FAKE_FASTEST=str(fastest))
    assert found[0] == found[1]
    assert "reserve_space" in error and "it must come unchanged" in error
    right, _ = run("version_1", built, **UNTIMED, **FORCED.get(fastest, {}))
    assert found == right


def test_empty_rows_with_a_projection_need_cudnn(built):
    assert run("empty_rows", built, FAKE_FASTEST=str(STEPS)) == STANDARD


@pytest.mark.parametrize(
    ("name", "environment"),
    [
        ("algorithms", UNTIMED),
        ("algorithms", {"FAKE_CAPTURES": "1"}),
        ("deterministic", {}),
    ],
)
def test_nothing_is_timed_where_it_is_not_allowed(built, log, name, environment):
    (chosen, _), passes = logged(name, built, log, **MANY, **environment)
    assert chosen == [STANDARD, STANDARD]
    assert len(passes) == 2 * 3


@pytest.mark.parametrize("fastest", [STEPS, GRID, CLUSTERS])
def test_own_kernels_compute_keras_layers_where_they_are_faster(built, log, fastest):
    where = {"FAKE_CUDNN_LOG": str(log), "FAKE_FASTEST": str(fastest)}
    found = check("cudnn_passes", built, **where)
    # Four algorithms are timed twice, with three passes each, and none is chosen.
    assert len(found["half"]) == 4 * 2 * 3


def test_a_wrong_host_reserved_or_reserve_space_is_refused(built):
    number, empty, size = run("wrong_algorithm", built)
    assert "host_reserved must begin with the number of an algorithm, 0 to 6" in number
    assert "the first being 7" in number
    assert "has 0 elements" in empty
    assert "reserve_space must have" in size


def test_conversions_are_copies_on_the_device(built):
    assert run("conversions", built)
