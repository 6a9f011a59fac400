"""How the CudnnRNN family calls cuDNN. That its numbers are right is test_suites.py's."""

import json
from pathlib import Path
from typing import Any

import pytest

from cuda.test_device import check, without

pytestmark = pytest.mark.cuda

PROGRAM = Path(__file__).with_name("cudnn_program.py")
STANDARD, PERSIST_STATIC, SMALL_H, OWN_KERNELS = 0, 1, 3, 4
UNPACKED, PACKED, BATCH_MAJOR = 0, 1, 2
TF32, FMA = 0, 3  # math types: the default may use TF32
MANY = {"STAND_IN_FASTEST": str(SMALL_H)}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "cudnn.log"
    path.touch()
    return path


def run(name: str, built: Path, **environment: str) -> Any:
    return check(name, built, PROGRAM, **environment)


def logged(name: str, built: Path, log: Path, **environment: str) -> tuple[Any, list[dict]]:
    """What the program says, and the passes of cuDNN."""
    said = run(name, built, STAND_IN_CUDNN_LOG=str(log), **environment)
    return said, [json.loads(line) for line in log.read_text().splitlines()]


def test_without_cudnn(tmp_path, built):
    """Our own kernels serve. For what they have not cuDNN is named with what it comes with."""
    folder = without("libcudnn.so.9", built, tmp_path / "incomplete")
    assert run("ways", folder) == [OWN_KERNELS] * 3
    with pytest.raises(AssertionError, match=r"libcudnn.*nvidia-cudnn-cu12"):
        run("ends_at_once", folder)


def test_cudnn_is_left_out_where_it_is_not_wanted(built, log):
    ways, passes = logged("ways", built, log, TF_LSTM_OPS_CUDA_CUDNN="0")
    assert ways == [OWN_KERNELS] * 3
    assert passes == []


def test_weights_stand_where_cudnn_says(built):
    """Elsewhere than documented: the same bits."""
    assert run("bits", built) == run("bits", built, STAND_IN_CUDNN_SCATTERED="1")


def test_a_reserve_space_serves_twice(built):
    """cuDNN's own is overwritten by its gradients."""
    assert run("gradients_again", built) == [True, True]


def test_lengths_are_told_where_there_are_any(built, log):
    """Padded input and output are decided on for each call; rows of length zero are left out."""
    _, passes = logged("passes", built, log, TF_CUDNN_USE_AUTOTUNE="0")
    shown = [(p["padded"], p["layout"], p["batch"], p["training"]) for p in passes]
    assert shown == [
        (0, PACKED, 3, 1),
        (1, UNPACKED, 3, 1),
        (1, BATCH_MAJOR, 3, 1),
        (1, UNPACKED, 2, 0),
        # nothing to do for lengths of zero
    ]


def test_any_number_of_lengths_is_told(built):
    assert run("many_lengths", built)


def test_float_is_multiplied_as_tensorflow_allows(built, log):
    _, passes = logged("precision", built, log, TF_CUDNN_USE_AUTOTUNE="0")
    assert [p["math"] for p in passes] == [TF32, FMA]


def test_keras_layers_go_by_cudnn_where_it_has_them(built, log):
    """Forward, and backward to data and weights, in sequences without padding."""
    where = {"STAND_IN_CUDNN_LOG": str(log), "TF_CUDNN_USE_AUTOTUNE": "0"}
    found = check("cudnn_passes", built, **where)
    by_cudnn = {"plain", "last step", "backwards", "GRU", "half"}
    for name, passes in found.items():
        assert len(passes) == (3 if name in by_cudnn else 0), name
        assert all(p["layout"] == PACKED and p["padded"] == 0 for p in passes), name
    assert by_cudnn < set(found)


def test_a_keras_layer_goes_back_with_the_algorithm_it_came_with(built, log):
    found = check("cudnn_passes", built, STAND_IN_CUDNN_LOG=str(log), **MANY)
    assert [(p["pass"], p["algorithm"]) for p in found["half"][-3:]] == [
        ("forward", SMALL_H),
        ("backward_data", SMALL_H),
        ("backward_weights", SMALL_H),
    ]


@pytest.mark.parametrize("fastest", [STANDARD, PERSIST_STATIC, SMALL_H, OWN_KERNELS])
def test_the_fastest_way_is_found_once(built, log, fastest):
    (chosen, gradients), passes = logged("algorithms", built, log, STAND_IN_FASTEST=str(fastest))
    assert chosen == [fastest, fastest]
    # Each is tried twice in both passes, then the chosen one runs in both, twice.
    forward = [p["algorithm"] for p in passes if p["pass"] == "forward"]
    tried = [0, 0, 1, 1, 2, 2, 3, 3]
    assert forward == tried + ([] if fastest == OWN_KERNELS else [fastest, fastest])
    weights = [p["algorithm"] for p in passes if p["pass"] == "backward_weights"]
    assert weights == forward
    environment = {"TF_LSTM_OPS_CUDA_CUDNN": "0"} if fastest == OWN_KERNELS else {}
    _, untried = run("algorithms", built, TF_CUDNN_USE_AUTOTUNE="0", **environment)
    assert gradients == untried


@pytest.mark.parametrize("fastest", [STANDARD, OWN_KERNELS])
def test_lengths_projections_and_dropout_are_tried_both_ways(built, fastest):
    ways = run("ways", built, STAND_IN_FASTEST=str(fastest))
    assert ways == [fastest] * 3


def test_a_way_with_other_numbers_is_not_taken(built):
    wrong = {"STAND_IN_FASTEST": str(SMALL_H), "STAND_IN_CUDNN_WRONG": str(SMALL_H)}
    chosen, gradients = run("algorithms", built, **wrong)
    assert SMALL_H not in chosen
    _, right = run("algorithms", built, TF_CUDNN_USE_AUTOTUNE="0")
    assert gradients == right


def test_rows_that_end_at_once_with_a_projection_are_cudnns(built):
    assert run("ends_at_once", built, STAND_IN_FASTEST=str(OWN_KERNELS)) == STANDARD


@pytest.mark.parametrize(
    ("name", "environment"),
    [
        ("algorithms", {"TF_CUDNN_USE_AUTOTUNE": "0"}),
        ("algorithms", {"STAND_IN_CAPTURES": "1"}),
        ("deterministic", {}),
    ],
)
def test_nothing_is_tried_where_it_may_not_be(built, log, name, environment):
    (chosen, _), passes = logged(name, built, log, **MANY, **environment)
    assert chosen == [STANDARD, STANDARD]
    assert len(passes) == 2 * 3


def test_keras_layers_go_by_own_kernels_where_these_are_faster(built, log):
    where = {"STAND_IN_CUDNN_LOG": str(log), "STAND_IN_FASTEST": str(OWN_KERNELS)}
    found = check("cudnn_passes", built, **where)
    # Four algorithms are tried twice, in three passes, and none is taken.
    assert len(found["half"]) == 4 * 2 * 3


def test_a_wrong_host_reserved_or_reserve_space_is_refused(built):
    number, empty, size = run("wrong_algorithm", built)
    assert "host_reserved must begin with the number of an algorithm, 0 to 4" in number
    assert "the first being 7" in number
    assert "has 0 elements" in empty
    assert "reserve_space must have" in size


def test_conversions_are_copies_on_the_device(built):
    assert run("conversions", built)
