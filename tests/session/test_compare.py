"""`Session.compare` against numbers that NumPy computes here, one by one."""

import doctest
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import tf_lstm_ops
from session.without_tensorflow import HOOK
from tf_lstm_ops.inference import Comparison, OutputErrors, Session, compare, layers
from tf_lstm_ops.keras import LSTM
from tf_lstm_ops.weights import LSTMWeights

B, T, C = 3, 5, 4
INF, NAN = np.inf, np.nan


@pytest.fixture(autouse=True)
def few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "_MIN_SECONDS", 0.0)


def identity() -> Session:
    """Its output is x [B, T, C]."""
    return Session.from_layers([layers.Input((None, C)), layers.Identity()])


def errors(a: Any, b: Any) -> OutputErrors:
    """Of a session whose output is a [B, T, C], and the reference b."""
    [output] = identity().compare(lambda x: b, np.asarray(a, "float32")).outputs
    return output


def lstm(scale: float = 1.0) -> Session:
    """All weights are multiplied by scale."""
    rng = np.random.default_rng(0)
    arrays = [scale * rng.normal(size=shape) for shape in ((C, 4 * C), (C, 4 * C), (4 * C,))]
    weights = LSTMWeights.from_keras(arrays)
    return Session.from_layers([layers.LSTM(weights, return_sequences=True)])


def test_errors(rng: np.random.Generator, capsys: pytest.CaptureFixture[str]) -> None:
    x = rng.normal(size=(B, T, C)).astype("float32")
    other = x + rng.normal(scale=0.5, size=x.shape)  # float64
    report = identity().compare(lambda x: other, x)
    [output] = report.outputs
    difference = np.abs(x - other)
    pairs = zip(x.reshape(-1, C), other.reshape(-1, C), strict=True)
    equal = [[*a].index(max(a)) == [*b].index(max(b)) for a, b in pairs]
    assert 0 < sum(equal) < len(equal)
    assert output.name == "output 0" and output.elements == x.size
    assert output.largest == difference.max()
    # sums in another order, in float64
    assert output.mean == pytest.approx(difference.sum() / x.size, rel=1e-14)
    norms = [sum(v * v for v in values.ravel()) ** 0.5 for values in (x - other, other)]
    assert output.relative_norm == pytest.approx(norms[0] / norms[1], rel=1e-14)
    assert output.equal_argmax == pytest.approx(sum(equal) / len(equal), rel=1e-14)
    assert report.seconds > 0 and report.other_seconds > 0
    assert capsys.readouterr().out == f"{report}\n"


def test_another_session(rng: np.random.Generator) -> None:
    x = rng.normal(size=(B, T, C))
    session, other = lstm(), lstm(1.01)
    [output] = session.compare(other, x).outputs
    assert output.largest == np.abs(session(x).astype("float64") - other(x)).max() > 0
    [same] = session.compare(session, x).outputs
    assert (same.largest, same.mean, same.relative_norm, same.equal_argmax) == (0, 0, 0, 1)


@pytest.mark.parametrize("kind", ["array", "list", "tensor"])
def test_a_keras_model(kind: str, rng: np.random.Generator) -> None:
    model = keras.Sequential(
        [keras.Input((None, C)), LSTM(8, return_sequences=True), keras.layers.Dense(3)]
    )
    x = rng.normal(size=(B, T, C)).astype("float32")
    given = {"array": x, "list": x.tolist(), "tensor": keras.ops.convert_to_tensor(x)}[kind]
    session = Session(model)
    model.layers[-1].bias.assign([0.5, 0, 0])  # float32 holds 0.5: the error is almost this
    [output] = session.compare(model, given).outputs
    assert output.largest == pytest.approx(0.5, rel=1e-5)
    assert output.mean == pytest.approx(0.5 / 3, rel=1e-5)


def test_a_model_of_bfloat16(rng: np.random.Generator) -> None:
    """NumPy reads its result, whose numbers have 8 bits."""
    layer = keras.layers.Dense(3, dtype="bfloat16")
    x = rng.normal(size=(B, T, C)).astype("float32")
    layer.build(x.shape)
    session = Session.from_layers([tuple(np.asarray(w, "float32") for w in layer.get_weights())])
    [output] = session.compare(layer, x).outputs
    assert 0 < output.largest < 0.1  # about 2**-9 of each x, weight and sum


@pytest.mark.parametrize("kind", [list, lambda mask: mask.astype("int8"), np.asarray])
def test_a_mask(kind: Any, rng: np.random.Generator) -> None:
    """Both get it, a function as booleans. Keras' mask is also that of the session."""
    layer = LSTM(C, return_sequences=True)
    layer.build((None, None, C))
    session, x = Session([layer]), rng.normal(size=(B, T, C)).astype("float32")
    mask = rng.random((B, T)) < 0.5
    taken = []

    def other(x: Any, mask: Any) -> Any:
        taken.append(mask)
        return layer(x, mask=mask)

    [output] = session.compare(other, x, kind(mask)).outputs
    assert output.largest == 0
    assert taken[0].dtype == bool and (taken[0] == mask).all()
    [masked] = session.compare(lambda x, mask: session(x), x, mask).outputs
    assert masked.largest == np.abs(session(x, mask).astype("float64") - session(x)).max() > 0


def outputs(structure: type, extra: float) -> Session:
    """Of two inputs, each plus a constant; that of the second one also counts twice."""
    inputs = [layers.Input((None, C), name=name) for name in ("a", "b")]
    bias = np.full(C, extra, "float32")
    found = [layers.Dense(k * np.eye(C), bias)(x) for k, x in enumerate(inputs, 1)]
    if structure is dict:
        names = [("a", "first"), ("b", "second")]
        return Session.from_graph(
            {name: x for (name, _), x in zip(names, inputs, strict=True)},
            {name: y for (_, name), y in zip(names, found, strict=True)},
        )
    return Session.from_graph(inputs, found)


@pytest.mark.parametrize("structure", [list, dict])
def test_several_outputs(structure: type) -> None:
    x: Any = [np.ones((B, T, C), "float32"), np.ones((B, 2, C), "float32")]
    if structure is dict:
        x = dict(zip("ab", x, strict=True))
    session, other = outputs(structure, 0.0), outputs(structure, 0.5)
    mask = {"a": None, "b": np.ones((B, 2))} if structure is dict else [None, np.ones((B, 2))]
    report = session.compare(other, x, mask)
    names = ("first", "second") if structure is dict else ("output 0", "output 1")
    assert tuple(output.name for output in report.outputs) == names
    assert [output.elements for output in report.outputs] == [B * T * C, B * 2 * C]
    assert [output.largest for output in report.outputs] == [0.5, 0.5]
    norms = [output.relative_norm for output in report.outputs]
    assert norms == pytest.approx([0.5 / 1.5, 0.5 / 2.5], rel=1e-14)


def test_the_first_result_counts() -> None:
    """Later calls are for the time only. Both are called equally often, at least seven times."""
    calls: list[int] = []

    def other(x: Any) -> Any:
        calls.append(1)
        return x + len(calls)

    [output] = identity().compare(other, np.zeros((B, T, C), "float32")).outputs
    assert output.largest == 1 and len(calls) == 7


# (an element of the session, of the reference): largest, relative norm. The others are 1 and 1.
NOT_FINITE = [
    ((NAN, NAN), (0, 0)),
    ((INF, INF), (0, 0)),
    ((-INF, -INF), (0, 0)),
    ((INF, -INF), (INF, INF)),
    ((INF, 1), (INF, INF)),
    ((1, INF), (INF, INF)),
    ((NAN, 1), (NAN, NAN)),
    ((1, NAN), (NAN, NAN)),
    ((NAN, INF), (NAN, NAN)),
]


@pytest.mark.parametrize(("pair", "want"), NOT_FINITE)
def test_elements_that_are_not_finite(pair: Any, want: Any) -> None:
    a, b = np.ones((2, B, T, C), "float32")
    a[1, 2, 3], b[1, 2, 3] = pair
    with np.errstate(all="raise"):
        output = errors(a, b)
    np.testing.assert_equal((output.largest, output.relative_norm), want)
    np.testing.assert_equal(output.mean, want[0])
    rows = B * T
    if np.isnan(pair[0]) != np.isnan(pair[1]):
        assert output.equal_argmax == (rows - 1) / rows


def test_a_nan_does_not_hide_another_error() -> None:
    """Nor does an infinity that both have make a relative norm of zero."""
    a, b = np.ones((2, 1, 1, C), "float32")
    a[0, 0, :2], b[0, 0, :2], a[0, 0, 2] = (NAN, INF), (NAN, INF), 1.5
    output = errors(a, b)
    assert output.largest == 0.5 and output.mean == 0.125
    assert output.relative_norm == pytest.approx(0.5 / 2**0.5)
    b[0, 0, 2] = NAN
    assert np.isnan(errors(a, b).largest)


def test_a_nan_in_one_of_both_is_no_equal_argmax() -> None:
    """argmax alone is 0 in both."""
    a, b = np.zeros((2, 1, 1, C), "float32")
    a[0, 0, 0], b[0, 0, 0] = NAN, 1
    assert errors(a, b).equal_argmax == 0
    b[0, 0, 0] = NAN
    assert errors(a, b).equal_argmax == 1


def test_a_reference_of_zeros() -> None:
    zeros, x = np.zeros((1, 1, C)), np.full((1, 1, C), 2.0)
    assert errors(zeros, zeros).relative_norm == 0
    assert errors(x, zeros).relative_norm == INF
    x[0, 0, 0] = NAN
    assert np.isnan(errors(x, zeros).relative_norm)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
def test_sizes_whose_squares_float64_does_not_have(size: float) -> None:
    x = np.zeros((1, 1, C))
    assert errors(x, x + size).relative_norm == pytest.approx(1)


@pytest.mark.parametrize("shape", [(0, T, C), (B, 0, C)])
def test_no_elements(shape: tuple[int, ...]) -> None:
    report = identity().compare(lambda x: x, np.zeros(shape, "float32"))
    assert report.outputs == (OutputErrors("output 0", 0, 0.0, 0.0, 0.0, None),)
    assert str(report).splitlines()[1].endswith(" -")


def test_no_argmax_of_one_feature() -> None:
    session = Session.from_layers([layers.Input((None, 1)), layers.Identity()])
    [output] = session.compare(lambda x: x + 1, np.zeros((B, T, 1), "float32")).outputs
    assert output.equal_argmax is None and output.largest == 1


def test_the_table() -> None:
    outputs = (
        OutputErrors("logits", 1234567, 0.012345, 1e-3, INF, 0.99999),
        OutputErrors("x", 1, NAN, NAN, NAN, None),
    )
    assert str(Comparison(outputs, 12.34e-6, 0.1)).splitlines() == [
        "output  elements  largest error  mean error  relative norm  equal argmax",
        "logits   1234567       1.23e-02    1.00e-03            inf        99.99%",
        "x              1            nan         nan            nan             -",
        "time of a call: 0.0123 ms; other: 100 ms, 8100 times as long",
    ]


X = np.zeros((B, T, C), "float32")
WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "shape": (
        lambda x: x[:, :2],
        ValueError,
        r"output 0 of the session has the shape \(3, 5, 4\), and model_or_session\(x\) the shape "
        r"\(3, 2, 4\)",
    ),
    "no broadcasting": (lambda x: x[:1], ValueError, r"\(3, 5, 4\).*\(1, 5, 4\)"),
    "no function": ("model.session", TypeError, "must be a Session, a Keras model.*: str"),
    "list of layers": ([LSTM], TypeError, "must be a Session, a Keras model.*: list"),
    "objects": (lambda x: object(), TypeError, r"model_or_session\(x\) must be an array of real"),
    "nothing": (lambda x: None, TypeError, r"model_or_session\(x\) must be an array of real"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_references(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    other, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        identity().compare(other, X)
    assert not capsys.readouterr().out


def test_wrong_structures() -> None:
    named, listed = outputs(dict, 0.0), outputs(list, 0.0)
    inputs = {"a": X, "b": X}
    with pytest.raises(ValueError, match=r"model_or_session\(x\) must have the keys \['first'"):
        named.compare(lambda x: {"first": X, "third": X}, inputs)
    with pytest.raises(TypeError, match=r"model_or_session\(x\) must be a dictionary"):
        named.compare(lambda x: [X, X], inputs)
    with pytest.raises(ValueError, match=r"model_or_session\(x\) must have 2 arrays. Received: 1"):
        listed.compare(lambda x: [X], [X, X])
    message = r"output 'second' .*\(3, 5, 4\), and model_or_session\(x\)\['second'\].*\(3, 4\)"
    with pytest.raises(ValueError, match=message):
        named.compare(lambda x: {"first": X, "second": X[:, 0]}, inputs)


def test_wrong_arguments() -> None:
    """The errors are those of a call."""
    session = identity()
    for x, mask in ((X[..., 0], None), (X[..., :2], None), (X, np.ones(T)), ("x", None)):
        with pytest.raises((ValueError, TypeError)) as call:
            session(x, mask)
        with pytest.raises(call.type, match=re.escape(str(call.value))):
            session.compare(session, x, mask)


def test_the_example() -> None:
    [example] = doctest.DocTestFinder().find(Session.compare, globs={})
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(example).failed == 0 and example.examples


NUMPY_ONLY = """
import numpy as np
from tf_lstm_ops.inference import Session, layers
session = Session.from_layers([layers.Dense(np.eye(3))])
print(session.compare(lambda x: x, np.ones((2, 4, 3))).outputs[0].largest)
"""


def test_with_numpy_only(tmp_path: Path) -> None:
    start = f"import sys; sys.path.insert(0, {str(Path(tf_lstm_ops.__file__).parents[1])!r})\n"
    command = [sys.executable, "-c", start + HOOK + NUMPY_ONLY]
    process = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert process.returncode == 0, process.stderr
    assert process.stdout.endswith("\n0.0\n")


def test_a_keras_model_is_called_in_a_graph() -> None:
    """So that its time is that of `predict`, without the cost of eager ops."""
    eager = []

    class Noticing(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            eager.append(keras.tree.flatten(x)[0].__class__.__name__ == "EagerTensor")
            return x

    inputs = keras.Input((None, C))
    model = keras.Model(inputs, LSTM(8)(Noticing()(inputs)))
    session = Session(keras.Sequential([keras.Input((None, C)), model.layers[-1]]))
    eager.clear()
    session.compare(model, np.ones((2, 3, C), "float32"))
    assert eager == [False]
