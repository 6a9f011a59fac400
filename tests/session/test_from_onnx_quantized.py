"""Sessions of graphs that ONNX Runtime's quantisation wrote."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="makes and reads the models")
runtime = pytest.importorskip("onnxruntime", reason="quantises the models")
quantization = pytest.importorskip("onnxruntime.quantization", reason="quantises the models")
from session.onnx_sources import model, node, refusal  # noqa: E402
from tf_lstm_ops.inference import Session  # noqa: E402

FEATURES, H, UNITS = 12, 16, 5
# Of the largest element: activations and weights of 8 bits in the file, weights in the session.
NEAR, OF_WEIGHTS = 2**-4, 2**-5


def graph(rng: Any) -> Any:
    arrays = {
        "w": rng.standard_normal((1, 4 * H, FEATURES)),
        "r": rng.standard_normal((1, 4 * H, H)),
        "b": rng.standard_normal((1, 8 * H)),
        "k": rng.standard_normal((H, UNITS)),
        "o": rng.standard_normal(UNITS),
        "one": [1],
    }
    nodes = [
        node("Transpose", "x", "t", perm=[1, 0, 2]),
        node("LSTM", "t w r b", "s", hidden_size=H),
        node("Squeeze", "s one", "q"),
        node("Transpose", "q", "p", perm=[1, 0, 2]),
        node("MatMul", "p k", "m"),
        node("Add", "m o"),
    ]
    return model(nodes, ("B", "T", FEATURES), arrays)


@pytest.fixture
def quantized(tmp_path: Any, rng: Any) -> tuple[Any, Any]:
    """A model, and the quantised one."""
    source, made = tmp_path / "source.onnx", tmp_path / "made.onnx"
    proto = graph(rng)
    source.write_bytes(proto.SerializeToString())
    quantization.quantize_dynamic(source, made)
    return proto, made


def test_dynamic_quantization(quantized: tuple[Any, Any], rng: Any) -> None:
    proto, made = quantized
    x = rng.standard_normal((2, 7, FEATURES), np.float32)
    session = Session.from_onnx(made)  # compares with ONNX Runtime
    got, whole = session(x), Session.from_onnx(proto)(x)
    (want,) = runtime.InferenceSession(made).run(None, {"x": x})
    size = np.abs(whole).max()
    assert np.abs(got - want).max() < NEAR * size
    assert np.abs(got - whole).max() < OF_WEIGHTS * size
    # The session rounds less than the file.
    assert np.abs(got - whole).max() < np.abs(want - whole).max()


def test_weights_of_8_bits(quantized: tuple[Any, Any], rng: Any) -> None:
    _, made = quantized
    x = rng.standard_normal((2, 7, FEATURES), np.float32)
    session = Session.from_onnx(made, weights={"int8": ["LSTM_s_quant"]})
    whole = Session.from_onnx(made)(x)
    assert [each.type for each in session.weights][:1] == ["int8"]
    assert np.abs(session(x) - whole).max() < OF_WEIGHTS * np.abs(whole).max()


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("is_signed", [False, True])
def test_static_quantization(per_channel: bool, is_signed: bool, rng: Any, tmp_path: Any) -> None:
    source, made = tmp_path / "source.onnx", tmp_path / "made.onnx"
    source.write_bytes(graph(rng).SerializeToString())
    batches = iter([{"x": rng.standard_normal((4, 9, FEATURES), np.float32)} for _ in range(8)])
    reader = type(
        "Reader", (quantization.CalibrationDataReader,), {"get_next": lambda _: next(batches, None)}
    )
    kind = quantization.QuantType.QInt8 if is_signed else quantization.QuantType.QUInt8
    quantization.quantize_static(
        source, made, reader(), per_channel=per_channel, activation_type=kind
    )
    x = rng.standard_normal((2, 7, FEATURES), np.float32)
    (want,) = runtime.InferenceSession(made).run(None, {"x": x})
    assert np.abs(Session.from_onnx(made)(x) - want).max() < NEAR * np.abs(want).max()


def codes(scale: float, zero: Any, other: float | None = None) -> Any:
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q o z")]
    arrays = {"s": np.float32(scale), "z": np.asarray(zero), "o": np.float32(other or scale)}
    return model(nodes, ("B", "T", 4), arrays)


@pytest.mark.parametrize("zero", [np.uint8(100), np.int8(-3), np.uint8(0)])
def test_the_range_of_integers(zero: Any) -> None:
    """Larger and smaller numbers become its bounds."""
    scale, kind = 0.125, np.iinfo(zero.dtype)
    x = np.linspace(-1.5, 1.5, 3 * 4 * 5, dtype=np.float32).reshape(3, 5, 4) * kind.max * scale
    low, high = (scale * (bound - int(zero)) for bound in (kind.min, kind.max))
    np.testing.assert_array_equal(Session.from_onnx(codes(scale, zero))(x), np.clip(x, low, high))


INTEGERS = [node("DynamicQuantizeLinear", "x", "q s z")]
WEIGHTS = {"k": np.ones((4, 3), np.int8)}
REFUSED = {
    "integers that are read": (
        [*INTEGERS, node("Cast", "q", "f", to=1), node("Relu", "f")],
        "integers",
    ),
    "a scale of another array": (
        [
            *INTEGERS,
            node("DynamicQuantizeLinear", "u", "q2 s2 z2"),
            node("MatMulInteger", "q k z", "m"),
            node("Cast", "m", "f", to=1),
            node("Mul", "f s2"),
        ],
        "the scale of another array",
    ),
    "a product without a scale": (
        [*INTEGERS, node("MatMulInteger", "q k z", "m"), node("Cast", "m", to=1)],
        "output y is the product of a quantised array",
    ),
    "another zero point": (
        [*INTEGERS, node("MatMulInteger", "q k", "m"), node("Cast", "m", to=1)],
        "zero point is not that of",
    ),
}


def test_refusals_of_codes() -> None:
    assert "is not that of QuantizeLinear" in refusal(codes(0.5, np.uint8(3), 0.25))
    assert "its largest number is 0.0" in refusal(codes(0.5, np.uint8(255)))
    proto = codes(0.5, np.uint8(3))
    proto.graph.node[1].CopyFrom(node("Cast", "q", to=1))
    assert "output y is the codes of a quantised array" in refusal(proto)


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    nodes, reason = REFUSED[case]
    inputs: dict[str, Any] = {"x": ("B", "T", 4)}
    if any("u" in each.input for each in nodes):
        inputs["u"] = ("B", "T", 4)
    assert reason in refusal(model(nodes, inputs, WEIGHTS))
