"""Models that export.onnx writes, read by Session.from_onnx again, against the Keras models."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tf_lstm_ops.export import onnx as export_onnx
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import GRU, LSTM, SimpleRNN

pytest.importorskip("tf2onnx", reason="the converter of all other layers")
onnx = pytest.importorskip("onnx", reason="reads the files")
runtime = pytest.importorskip("onnxruntime", reason="runs the files")

INPUTS, UNITS, WORDS = 3, 5, 9
# Of the largest element. Stock layers of Keras round in another order.
TOLERANCE = 2e-6
MASK = np.array(
    [
        [1, 1, 1, 1, 1, 1],
        [1, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 1, 1],
        [0, 1, 0, 1, 1, 0],
        [0, 0, 0, 0, 0, 0],
    ],
    bool,
)
LENGTHS = np.array([6, 0, 3, 1, 5], np.int32)
BATCH, TIME = MASK.shape
Layers = keras.layers


def both(layer: Any) -> Any:
    return Layers.Bidirectional(layer)


def of_features(*layers: Any, value: float = 0.0, time: int | None = None) -> keras.Model:
    return keras.Sequential([keras.Input((time, INPUTS)), Layers.Masking(value), *layers])


def of_words(*layers: Any, dtype: str = "int32") -> keras.Model:
    embedding = Layers.Embedding(WORDS, INPUTS, mask_zero=True)
    return keras.Sequential([keras.Input((None,), dtype=dtype), embedding, *layers])


def of_mask(layer: Any, states: int = 0) -> keras.Model:
    x, mask = keras.Input((None, INPUTS)), keras.Input((None,), dtype="bool")
    initial = [keras.Input((UNITS,)) for _ in range(states)]
    options = {"initial_state": initial} if states else {}
    return keras.Model([x, mask, *initial], layer(x, mask=mask, **options))


def of_lengths(layer: Any, time: int | None = None) -> keras.Model:
    x, lengths = keras.Input((time, INPUTS)), keras.Input((), dtype="int32")
    return keras.Model([x, lengths], layer(x, sequence_lengths=lengths))


def encoder_and_decoder() -> keras.Model:
    words, x = keras.Input((None,), dtype="int32"), keras.Input((4, INPUTS))
    embedded = Layers.Embedding(WORDS, INPUTS, mask_zero=True)(words)
    _, *states = LSTM(UNITS, return_state=True)(embedded)
    y = LSTM(UNITS, return_sequences=True)(x, initial_state=states)
    return keras.Model([words, x], [y, states[1]])


def sum_of_masked() -> keras.Model:
    x, z = keras.Input((None, INPUTS)), keras.Input((None, INPUTS))
    y = Layers.Add()([Layers.Masking()(x), Layers.Masking()(z)])
    return keras.Model([x, z], LSTM(UNITS)(y))


def all_results(kind: Any, **options: Any) -> Any:
    return kind(UNITS, return_sequences=True, return_state=True, **options)


BY_DEFAULT = {
    "learned": lambda: keras.Sequential(
        [
            keras.Input((None, INPUTS)),
            both(GRU(UNITS, learned_initial_state=True, return_sequences=True)),
            LSTM(UNITS, learned_initial_state=True),
        ]
    ),
    "features": lambda: of_features(
        both(LSTM(UNITS, return_sequences=True)), GRU(4), Layers.Dense(2)
    ),
    "words": lambda: of_words(LSTM(UNITS, return_sequences=True), LSTM(UNITS)),
    "mask_and_states": lambda: of_mask(all_results(LSTM, zero_output_for_mask=True), 2),
    "lengths": lambda: of_lengths(GRU(UNITS, return_sequences=True)),
    "encoder_and_decoder": encoder_and_decoder,
}
FURTHER = {
    "fixed_steps": lambda: of_features(LSTM(UNITS), time=TIME),
    "other_value": lambda: of_features(GRU(UNITS), value=-1.5),
    "stock": lambda: of_features(
        Layers.LSTM(UNITS, return_sequences=True), both(Layers.GRU(4)), Layers.Dense(2)
    ),
    "dense": lambda: of_features(Layers.Dense(4), SimpleRNN(UNITS)),
    "mean": lambda: of_features(
        LSTM(UNITS, return_sequences=True), Layers.GlobalAveragePooling1D()
    ),
    "learned_and_masked": lambda: of_features(LSTM(UNITS, learned_initial_state=True)),
    "float_words": lambda: of_words(both(GRU(UNITS)), dtype="float32"),
    "both_of_mask": lambda: of_mask(both(LSTM(UNITS, return_sequences=True))),
    "stock_of_mask": lambda: of_mask(Layers.GRU(UNITS)),
    "lengths_of_fixed_steps": lambda: of_lengths(LSTM(UNITS), TIME),
    "two_masks": sum_of_masked,
    "state_of_zeros": lambda: of_mask(all_results(GRU)),
    **{
        f"{kind.__name__}_{sequences:d}{zeros:d}{backwards:d}": (
            lambda kind=kind, sequences=sequences, zeros=zeros, backwards=backwards: of_mask(
                kind(
                    UNITS,
                    return_sequences=sequences,
                    zero_output_for_mask=zeros,
                    go_backwards=backwards,
                    return_state=True,
                ),
                1 + (kind is LSTM),
            )
        )
        for kind in (LSTM, GRU)
        for sequences in (False, True)
        for zeros in (False, True)
        for backwards in (False, True)
    },
}


def cases() -> Iterator[Any]:
    for name, make in BY_DEFAULT.items():
        yield pytest.param(make, id=name)
    for name, make in FURTHER.items():
        yield pytest.param(make, id=name, marks=pytest.mark.full)


def draw(model: keras.Model, rng: np.random.Generator) -> list[np.ndarray]:
    """Inputs with masks of all kinds."""
    masking = [layer for layer in model.layers if isinstance(layer, Layers.Masking)]
    padding = masking[0].mask_value if masking else 0.0
    found = []
    for tensor in model.inputs:
        shape = [BATCH, *(TIME if size is None else size for size in tensor.shape[1:])]
        if tensor.dtype == "bool":
            array = MASK
        elif len(shape) == 1:
            array = LENGTHS
        elif len(shape) == 2 and tensor.shape[1] is None:
            array = rng.integers(1, WORDS, shape) * MASK
        else:
            array = rng.normal(size=shape)
            if tensor.shape[1:] != (UNITS,):
                array = np.where(MASK[:, : shape[1], None], array, padding)
        found.append(array.astype(tensor.dtype))
    return found


def exported(model: keras.Model, path: Path, rng: np.random.Generator) -> Path:
    model.set_weights([0.6 * rng.normal(size=w.shape) for w in model.get_weights()])
    export_onnx(model, path)
    return path


def results_of(session: Session, inputs: list[np.ndarray]) -> list[np.ndarray]:
    if len(inputs) == 1:
        found = session(inputs[0])
    else:
        names = [spec.name for spec in session.inputs]
        found = session(dict(zip(names, inputs, strict=True)) if all(names) else inputs)
    if isinstance(found, dict):
        return [*found.values()]
    return [*found] if isinstance(found, list | tuple) else [found]


def assert_close(found: Any, wanted: Any) -> None:
    for got, want in zip(found, keras.tree.flatten(wanted), strict=True):
        want = np.asarray(want)
        assert got.shape == want.shape
        limit = TOLERANCE * np.nanmax(np.abs(want))
        np.testing.assert_allclose(got, want, rtol=0, atol=limit)  # NaN is the mean of no steps


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", cases())
def test_round_trips(make, tmp_path, rng):
    model = make()
    session = Session.from_onnx(exported(model, tmp_path / "model.onnx", rng))
    inputs = draw(model, rng)
    assert_close(results_of(session, inputs), model(inputs if len(inputs) > 1 else inputs[0]))


def test_stream(tmp_path, rng):
    """A mask of a boolean input, step by step."""
    model = of_mask(LSTM(UNITS))
    session = Session.from_onnx(exported(model, tmp_path / "model.onnx", rng))
    x, mask = draw(model, rng)
    stream = session.stream(BATCH)
    names = [spec.name for spec in session.inputs]
    for t in range(TIME):
        y = stream(dict(zip(names, (x[:, t], mask[:, t]), strict=True)))
    assert_close([y], model([x, mask]))


def altered(proto: Any) -> Iterator[tuple[str, Any]]:
    """The model with one other number, for each attribute and integer that belongs to the mask."""
    recurrent = {"LSTM", "GRU", "RNN"}
    for k, node in enumerate(proto.graph.node):
        for n, attribute in enumerate(node.attribute):
            if attribute.type != onnx.AttributeProto.INT or node.op_type in recurrent:
                continue
            copy = onnx.ModelProto.FromString(proto.SerializeToString())
            found = copy.graph.node[k].attribute[n]
            is_type = attribute.name == "to"
            found.i = onnx.TensorProto.FLOAT16 if is_type else 1 - attribute.i
            yield f"{node.name} {attribute.name}", copy
    for k, tensor in enumerate(proto.graph.initializer):
        array = onnx.numpy_helper.to_array(tensor)
        if array.ndim < 2 and array.size < 3 and array.dtype != np.int32:  # of shapes
            copy = onnx.ModelProto.FromString(proto.SerializeToString())
            other = np.where(array > 1, array - 1, array + 1).astype(array.dtype)
            changed = onnx.numpy_helper.from_array(other, tensor.name)
            copy.graph.initializer[k].CopyFrom(changed)
            yield tensor.name, copy
    outputs = [name for node in proto.graph.node for name in node.output]
    for k, node in enumerate(proto.graph.node):
        if node.op_type in ("Where", "GatherND", "Greater"):
            for place, name in enumerate(node.input):
                same = [each for each in outputs[: outputs.index(node.output[0])] if each != name]
                for other in same[-3:]:
                    copy = onnx.ModelProto.FromString(proto.SerializeToString())
                    copy.graph.node[k].input[place] = other
                    yield f"{node.name} {place} {other}", copy


@pytest.mark.parametrize(
    "make",
    [
        lambda: of_mask(all_results(LSTM)),
        pytest.param(lambda: of_features(both(GRU(UNITS))), marks=pytest.mark.full),
        pytest.param(lambda: of_words(LSTM(UNITS, go_backwards=True)), marks=pytest.mark.full),
        pytest.param(lambda: of_lengths(GRU(UNITS)), marks=pytest.mark.full),
        pytest.param(
            lambda: of_mask(all_results(LSTM, zero_output_for_mask=True, go_backwards=True), 2),
            marks=pytest.mark.full,
        ),
        pytest.param(
            lambda: of_mask(GRU(UNITS, zero_output_for_mask=True)), marks=pytest.mark.full
        ),
    ],
)
def test_no_other_graph_is_taken_for_a_mask(make, tmp_path, rng):
    """What differs in one number or operand is refused, or computed as by ONNX Runtime."""
    model = make()
    proto = onnx.load(exported(model, tmp_path / "model.onnx", rng))
    inputs = draw(model, rng)
    refused = 0
    for what, other in altered(proto):
        try:
            session = Session.from_onnx(other, check=False)
        except ValueError:
            refused += 1
            continue
        try:
            onnx.checker.check_model(other, full_check=True)
        except onnx.shape_inference.InferenceError:  # two types of floats or integers in a node
            continue
        own = runtime.InferenceSession(other.SerializeToString())
        names = [each.name for each in own.get_inputs()]
        wanted = own.run(None, dict(zip(names, inputs, strict=True)))
        try:
            assert_close(results_of(session, inputs), wanted)
        except AssertionError as error:
            raise AssertionError(what) from error
    assert refused > 20
