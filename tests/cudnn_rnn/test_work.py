"""Work follows the lengths, shown without a clock: steps beyond them are neither read nor saved."""

import numpy as np
import pytest
import tensorflow as tf

from empties import leave_nan

from .cases import GATES, Case, Values, arguments, call, outputs_of

LENGTHS = [4, 0, 7, 1, 7]


def case_of(mode: str, time_major: bool = True, time: int = 7) -> Case:
    return Case(mode, layers=2, directions=2, time=time, batch=5, time_major=time_major)


def reserve_size(case: Case, lengths: list[int]) -> int:
    return outputs_of("CudnnRNNV3", case, "float32", lengths)["reserve_space"].shape[0]


@pytest.mark.parametrize("mode", GATES)
def test_reserve_grows_with_the_sum_of_the_lengths(mode):
    """By the same number for each valid step, wherever it is; padding adds nothing."""
    case = case_of(mode)
    empty = reserve_size(case, [0] * 5)
    step = reserve_size(case, [1, 0, 0, 0, 0]) - empty
    assert step > 0
    for lengths in (LENGTHS, [7] * 5, [1] * 5, [0, 0, 0, 0, 7], [3, 2, 1, 0, 6]):
        assert reserve_size(case, lengths) == empty + sum(lengths) * step
    longer = case_of(mode, time=700)
    assert reserve_size(longer, LENGTHS) == reserve_size(case, LENGTHS)


def padding(case: Case, lengths: list[int]) -> np.ndarray:
    """True where there is no valid step; shaped as input without its last axis."""
    beyond = np.arange(case.time)[:, None] >= np.array(lengths)
    return beyond if case.time_major else beyond.T


def spoil(values: Values, case: Case, *names: str) -> Values:
    beyond = padding(case, LENGTHS)[..., None]
    return {**values, **{k: tf.where(beyond, np.nan, values[k]) for k in names}}


@pytest.mark.parametrize("time_major", [True, False])
@pytest.mark.parametrize("mode", GATES)
def test_padding_is_never_read(mode, time_major):
    """NaN there changes no bit, in forward's input and in all that backward is given."""
    case = case_of(mode, time_major)
    values = arguments("CudnnRNNV3", case, lengths=LENGTHS)
    clean = call("CudnnRNNV3", case, values)
    spoilt = call("CudnnRNNV3", case, spoil(values, case, "input"))
    for a, b in zip(spoilt, clean, strict=True):
        np.testing.assert_array_equal(a, b)
    beyond = padding(case, LENGTHS)
    assert not np.any(clean.output.numpy()[beyond])
    assert np.all(np.any(clean.output.numpy()[~beyond], axis=-1))

    values = arguments("CudnnRNNBackpropV3", case, lengths=LENGTHS)
    clean = call("CudnnRNNBackpropV3", case, values)
    spoilt = call(
        "CudnnRNNBackpropV3", case, spoil(values, case, "input", "output", "output_backprop")
    )
    for a, b in zip(spoilt, clean, strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.isfinite(a).all()
    assert not np.any(clean.input_backprop.numpy()[beyond])
    assert np.all(np.any(clean.input_backprop.numpy()[~beyond], axis=-1))


@pytest.mark.parametrize("mode", GATES)
def test_more_padding_changes_nothing(mode):
    """The same rows in a batch of ten times as many steps."""
    case, longer = case_of(mode), case_of(mode, time=70)
    values = arguments("CudnnRNNV3", case, lengths=LENGTHS)
    room = tf.fill([longer.time - case.time, *values["input"].shape[1:]], np.float32(np.nan))
    padded = {**values, "input": tf.concat([values["input"], room], axis=0)}
    got, want = call("CudnnRNNV3", longer, padded), call("CudnnRNNV3", case, values)
    np.testing.assert_array_equal(got.output[: case.time], want.output)
    assert not np.any(got.output[case.time :])
    np.testing.assert_array_equal(got.output_h, want.output_h)
    np.testing.assert_array_equal(got.output_c, want.output_c)


@pytest.mark.parametrize("mode", GATES)
def test_order_of_the_rows_changes_nothing(mode):
    """Lengths ascending, descending or mixed: each row has the same bits."""
    case = case_of(mode)
    values = arguments("CudnnRNNV3", case, lengths=LENGTHS)
    want = call("CudnnRNNV3", case, values)
    for order in (np.argsort(LENGTHS), np.argsort(LENGTHS)[::-1], [2, 0, 4, 1, 3]):
        axes = {"input": 1, "input_h": 1, "input_c": 1, "sequence_lengths": 0}
        if mode != "lstm":
            del axes["input_c"]
        shuffled = {k: tf.gather(values[k], order, axis=axis) for k, axis in axes.items()}
        got = call("CudnnRNNV3", case, {**values, **shuffled})
        np.testing.assert_array_equal(got.output, tf.gather(want.output, order, axis=1))
        np.testing.assert_array_equal(got.output_h, tf.gather(want.output_h, order, axis=1))


@pytest.mark.parametrize("mode", GATES)
def test_no_step_at_all(mode):
    """All results are written, whatever stood in the memory before."""
    case = case_of(mode)
    values = arguments("CudnnRNNBackpropV3", case, lengths=[0] * 5)
    inputs = {k: values[k] for k in case.shapes("CudnnRNNV3")}
    for _ in range(5):
        specs = [tf.TensorSpec(s) for s in case.shapes("CudnnRNNBackpropV3").values()]
        leave_nan(specs)
        outputs = call("CudnnRNNV3", case, inputs)
        leave_nan(specs)
        back = call("CudnnRNNBackpropV3", case, values)
        assert not np.any(outputs.output)
        assert not np.any(back.input_backprop) and not np.any(back.params_backprop)
        np.testing.assert_array_equal(outputs.output_h, inputs["input_h"])
        np.testing.assert_array_equal(back.input_h_backprop, values["output_h_backprop"])
        assert mode == "lstm" or outputs.output_c == back.input_c_backprop == 0


def test_a_row_without_a_step_passes_its_state_through():
    """Forward the state itself, backward its gradient."""
    case = case_of("lstm")
    values = arguments("CudnnRNNBackpropV3", case, lengths=LENGTHS)
    back = call("CudnnRNNBackpropV3", case, values)
    for state in ("h", "c"):
        np.testing.assert_array_equal(
            values[f"output_{state}"][:, 1], values[f"input_{state}"][:, 1]
        )
        np.testing.assert_array_equal(
            getattr(back, f"input_{state}_backprop")[:, 1],
            values[f"output_{state}_backprop"][:, 1],
        )
