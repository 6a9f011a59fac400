"""Every option of every layer on every target: computed right, or refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import _cells, _targets, composite, export
from tf_lstm_ops import keras as ours
from tf_lstm_ops._activations import DEFAULTS, OF_CELLS
from tf_lstm_ops._targets import OPTIONS, TARGETS, Effect
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import accelerate, convert_model, counterparts, op_arguments, options
from tf_lstm_ops.weights import class_of

BATCH, STEPS, INPUTS, UNITS = 2, 4, 3, 4
# float32 sums of at most UNITS + INPUTS products of numbers near 1, over STEPS steps.
TOLERANCE = 2e-6
FUNCTIONS = ["relu", "selu"]
OTHER_FUNCTIONS = sorted({*OF_CELLS} - {*FUNCTIONS})
# Values that are not the defaults.
VALUES: dict[str, list[Any]] = {
    "activation": FUNCTIONS,
    "recurrent_activation": FUNCTIONS,
    "use_peephole": [True],
    "cell_clip": [0.3],
    "projection_size": [2],
    "proj_clip": [0.2],
    "layer_normalization": ["haste", "addons"],
    "layer_normalization_epsilon": [0.01],
    "reset_after": [False],
    "units": [UNITS],
    "use_bias": [False],
    "num_layers": [2],
    "bidirectional": [True],
    "dropout": [0.3],
    "recurrent_dropout": [0.3],
    "dropout_per": ["sequence"],
    "seed": [1],
    "unit_forget_bias": [False],
    "implementation": [1],
    "use_cudnn": [False, True],
    **{name: [True] for name in ("return_sequences", "return_state", "go_backwards", "stateful")},
    **{name: [True] for name in ("zero_output_for_mask", "unroll", "learned_initial_state")},
    "activity_regularizer": ["l2"],
    **{
        f"{weight}_{kind}": [value]
        for weight in ("kernel", "recurrent", "bias")
        for kind, value in (
            ("initializer", "ones"),
            ("regularizer", "l2"),
            ("constraint", "NonNeg"),
        )
    },
}
# What an option needs beside it.
NEEDS: dict[str, dict[str, Any]] = {
    "proj_clip": {"projection_size": 2},
    "layer_normalization_epsilon": {"layer_normalization": "haste"},
}
LAYERS: dict[str, Callable[..., Any]] = {
    "LSTM": ours.LSTM,
    "GRU": ours.GRU,
    "SimpleRNN": ours.SimpleRNN,
    "normalised LSTM": lambda *a, **k: ours.LSTM(*a, **{"layer_normalization": "haste", **k}),
    "normalised GRU": lambda *a, **k: ours.GRU(*a, **{"layer_normalization": "haste", **k}),
    "stock LSTM": keras.layers.LSTM,
    "stock GRU": keras.layers.GRU,
    "stock SimpleRNN": keras.layers.SimpleRNN,
    "StackedLSTM": lambda *a, **k: ours.StackedLSTM(*a, **{"num_layers": 1, **k}),
    "StackedGRU": lambda *a, **k: ours.StackedGRU(*a, **{"num_layers": 1, **k}),
}


def cases(every: dict[str, list[Any]] = VALUES) -> Iterator[Any]:
    for kind, make in LAYERS.items():
        for name, values in every.items():
            for value in values:
                given = {**NEEDS.get(name, {}), name: value}
                sizes = {"units": UNITS, **given}
                try:
                    make(**sizes)
                except (TypeError, ValueError):  # the layer has no such option
                    continue
                yield pytest.param(make, sizes, id=f"{kind}-{name}={value}")


def build(layer: Any, rng: np.random.Generator) -> None:
    """Gives a layer weights, of which none is 0."""
    layer.build((BATCH, STEPS, INPUTS))
    layer.set_weights([rng.uniform(-0.7, 0.7, w.shape) for w in layer.get_weights()])


def arrays(results: Any) -> list[np.ndarray]:
    return [np.asarray(each) for each in keras.tree.flatten(results)]


def close(found: Any, wanted: Any) -> None:
    for one, other in zip(arrays(found), arrays(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE)


def reference(layer: Any, x: Any, mask: Any = None) -> Any:
    """Keras' loop; of a stack a loop of TensorFlow's ops."""
    reset(layer)
    if hasattr(layer, "num_layers"):
        with composite.plain_ops():
            return layer(x, mask=mask)
    initial = layer.get_initial_state(BATCH)
    masks = None if mask is None else tf.constant(mask)
    last, outputs, states = keras.layers.RNN.inner_loop(layer, x, initial, masks, training=False)
    output = outputs if layer.return_sequences else last
    return [output, *keras.tree.flatten(states)] if layer.return_state else output


def reset(layer: Any) -> None:
    if layer.stateful:
        layer.reset_state()


def model_of(layer: Any) -> Any:
    x = keras.Input((STEPS, INPUTS), batch_size=BATCH)
    return keras.Model(x, layer(x))


def on_cpu(layer: Any, x: Any, mask: Any, folder: Path) -> None:
    wanted = reference(layer, x, mask)
    reset(layer)
    with accelerate() as acceleration:
        close(layer(x, mask=mask), wanted)
    if not counterparts.is_ours(layer):
        assert [row.op for row in acceleration.report()] == [options.op_of(layer)]


def in_a_session(layer: Any, x: Any, mask: Any, folder: Path) -> None:
    if not layer.return_state:
        close(Session([layer])(x, mask=mask), reference(layer, x, mask))


def as_a_node(layer: Any, x: Any, mask: Any, folder: Path) -> None:
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    file = folder / "model.onnx"
    export.onnx(model_of(layer), file)
    kinds = {node.op_type for node in onnx.load(file).graph.node}
    assert kinds & {"LSTM", "GRU", "RNN"} and "Loop" not in kinds
    session = runtime.InferenceSession(file)
    close(session.run(None, {session.get_inputs()[0].name: x}), reference(layer, x))


def as_an_op_of_lite(layer: Any, x: Any, mask: Any, folder: Path) -> None:
    file = folder / "model.tflite"
    export.tflite(model_of(layer), file, batch_size=BATCH)
    interpreter = tf.lite.Interpreter(str(file))
    assert "UNIDIRECTIONAL_SEQUENCE_LSTM" in {
        op["op_name"] for op in interpreter._get_ops_details()
    }
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    close(found, reference(layer, x))


def as_a_stock_layer(layer: Any, x: Any, mask: Any, folder: Path) -> None:
    is_single = counterparts.is_ours(layer) and not hasattr(layer, "num_layers")
    if is_single and getattr(layer, "use_cudnn", None) is not True:  # no CPU has this path
        new = convert_model(model_of(layer), to="stock")
        assert not any(map(counterparts.is_ours, new.layers))
        close(new(x), reference(layer, x))


def as_a_stack(layer: Any, x: Any, mask: Any, folder: Path) -> None:
    if hasattr(layer, "num_layers") or layer.return_state or layer.unroll:
        return
    cells = [type(layer.cell).from_config({**layer.cell.get_config(), "name": n}) for n in "ab"]
    config = {name: getattr(layer, name) for name in ("return_sequences", "zero_output_for_mask")}
    old = model_of(keras.layers.RNN(cells, **config))
    rng = np.random.default_rng(5)
    old.set_weights([rng.uniform(-0.7, 0.7, w.shape) for w in old.get_weights()])
    new = convert_model(old)
    assert hasattr(new.layers[1], "num_layers")
    close(new(x), old(x))


def as_weights(layer: Any, x: Any, mask: Any, folder: Path) -> None:
    if not hasattr(layer, "num_layers"):
        cell = _cells.BY_OP[options.op_of(layer)]
        weights = class_of(cell).from_keras(layer)
        close(weights.to_keras(use_bias=layer.use_bias), layer.get_weights())


COMPUTED: dict[str, Callable[..., None]] = {
    "CPU": on_cpu,
    "session": in_a_session,
    "keras.layers": as_a_stock_layer,
    "stack": as_a_stack,
    "weights": as_weights,
}
CONVERTED = {"ONNX node": as_a_node, "Lite op": as_an_op_of_lite}
# Kernels that no CPU runs.
OF_DEVICES = ("CUDA", "cuDNN", "Metal")


def test_every_target_is_here() -> None:
    assert {*COMPUTED, *CONVERTED, *OF_DEVICES} == {*TARGETS}


def test_every_option_is_here() -> None:
    assert {*VALUES} == {*OPTIONS}


def check(name: str, computed: Any, make: Any, given: dict[str, Any], folder: Path) -> None:
    layer = make(**{"name": "layer", **given})
    reason = options.why_not(layer, TARGETS[name], tuple(Effect))
    if reason is not None:
        found = options.of(layer).given
        named = [option for option in found if option in reason]
        assert named or options.of(layer).op in reason, reason
        return
    if computed is None:
        return
    rng = np.random.default_rng(0)
    build(layer, rng)
    x = rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")
    mask = np.array([[True, False, True, True], [True, True, False, False]])
    computed(layer, x, mask, folder)


@pytest.mark.parametrize(("make", "given"), cases())
@pytest.mark.parametrize("name", COMPUTED)
def test_computed_or_refused(name: str, make: Any, given: Any, tmp_path: Path) -> None:
    check(name, COMPUTED[name], make, given, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize(("make", "given"), cases(dict.fromkeys(DEFAULTS, OTHER_FUNCTIONS)))
@pytest.mark.parametrize("name", COMPUTED)
def test_every_function(name: str, make: Any, given: Any, tmp_path: Path) -> None:
    check(name, COMPUTED[name], make, given, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize(("make", "given"), cases())
@pytest.mark.parametrize("name", CONVERTED)
def test_converted_or_refused(name: str, make: Any, given: Any, tmp_path: Path) -> None:
    check(name, CONVERTED[name], make, given, tmp_path)


@pytest.mark.parametrize(("make", "given"), cases())
@pytest.mark.parametrize("name", OF_DEVICES)
def test_refused_by_name(name: str, make: Any, given: Any, tmp_path: Path) -> None:
    check(name, None, make, given, tmp_path)


def test_the_options_of_a_call_are_those_of_its_layer() -> None:
    """`of_call` and `of` give a target the same options."""
    layer = ours.LSTM(3, cell_clip=0.5, use_peephole=True)
    arguments = {**op_arguments.attributes(layer), "peephole": tf.ones([3, 3]), "training": True}
    assert _targets.of_call(arguments).keys() == options.of(layer, options.STEP).given.keys()
