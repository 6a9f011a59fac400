"""What each private name of TensorFlow must do; tf_lstm_ops/_tf_private.py has them all."""

import importlib
import inspect
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import _library, _tf_private, op_definitions, raw_ops
from tf_lstm_ops.keras import LSTM

OP = "TfLstmOps>LSTMBlockCell"


def public_functions() -> set[str]:
    items = vars(_tf_private).items()
    own = {n for n, item in items if getattr(item, "__module__", "") == _tf_private.__name__}
    return {name for name in own if not name.startswith("_")}


def test_every_name_is_tested() -> None:
    source = inspect.getsource(sys.modules[__name__])
    assert len(public_functions()) > 20
    assert [
        name for name in sorted(public_functions()) if f"_tf_private.{name}(" not in source
    ] == []


def step(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """A call of a fused op of a batch of 1 with one unit."""
    ones = tf.ones([1, 1])
    peephole = tf.zeros([1])
    return raw_ops.LSTMBlockCell(
        x=x, cs_prev=ones, h_prev=ones, w=w, wci=peephole, wcf=peephole, wco=peephole, b=tf.zeros(4)
    ).h


# Ops and kernels.


def test_op_definition() -> None:
    found = _tf_private.op_definition(OP)
    assert found.name == OP
    assert [argument.name for argument in found.input_arg][:2] == ["x", "cs_prev"]
    assert "forget_bias" in [attribute.name for attribute in found.attr]
    assert _tf_private.op_definition("NoSuchOp") is None


def test_op_names() -> None:
    assert {"MatMul", OP} <= set(_tf_private.op_names())


def test_op_function_takes_positions() -> None:
    function = _tf_private.op_function(_library.load(), "TfLstmOps_LSTMBlockCell")
    assert [*inspect.signature(function).parameters][:2] == ["x", "cs_prev"]
    one, zero = tf.ones([1, 1]), tf.zeros([1])
    assert function(one, one, one, tf.ones([2, 4]), zero, zero, zero, tf.zeros(4)).h.shape == [1, 1]


def test_registered_kernels() -> None:
    found = [kernel for kernel in _tf_private.registered_kernels(OP) if kernel.device_type == "CPU"]
    types_ = {t for kernel in found for c in kernel.constraint for t in c.allowed_values.list.type}
    assert tf.float32.as_datatype_enum in types_
    assert list(_tf_private.registered_kernels("NoSuchOp")) == []


def test_saved_model_from(tmp_path) -> None:
    module = tf.Module()
    module.f = tf.function(lambda x: tf.tanh(x), input_signature=[tf.TensorSpec([1])])
    tf.saved_model.save(module, str(tmp_path))
    found = _tf_private.saved_model_from((tmp_path / "saved_model.pb").read_bytes())
    library = found.meta_graphs[0].graph_def.library
    assert "Tanh" in {node.op for function in library.function for node in function.node_def}


# Devices.


def test_clear_kernel_cache() -> None:
    """A stateful random op with a seed of its own begins again, as its kernel is made again."""

    def draw() -> float:
        return float(
            tf.raw_ops.RandomUniform(
                shape=tf.zeros([0], tf.int32), seed=3, seed2=5, dtype=tf.float32
            )
        )

    _tf_private.clear_kernel_cache()
    first, second = draw(), draw()
    _tf_private.clear_kernel_cache()
    assert draw() == first != second


def test_eager_place() -> None:
    context, device = _tf_private.eager_place()
    assert device in (None, "")
    with tf.device("CPU:0"):
        again, device = _tf_private.eager_place()
    assert again is context
    assert device.endswith("CPU:0")


@pytest.mark.parametrize("eager", [True, False])
def test_device_type(eager: bool) -> None:
    with tf.init_scope() if eager else tf.Graph().as_default():
        assert _tf_private.device_type() is None
        with tf.device("GPU:0"):
            assert _tf_private.device_type() == "GPU"
            with tf.device("CPU:0"):
                assert _tf_private.device_type() == "CPU"
            with tf.device(None):
                assert _tf_private.device_type() is None


# XLA.


def test_traces_for_xla_are_separate() -> None:
    _tf_private.separate_xla_traces()  # again; the import of the package calls it
    traces = []

    @tf.function
    def inner(x):
        traces.append(_tf_private.is_traced_for_xla())
        return x + 1

    compiled = tf.function(lambda x: inner(x), jit_compile=True)
    for function in (inner, compiled, inner, compiled):
        function(tf.constant(1.0))
    assert traces == [False, True]


# Gradients. package/test_import_again.py and stock/ test `offer_gradients` with other code.


def test_offer_gradients() -> None:
    """`_tf_private.offer_gradients(…)` is called by the import of the package."""
    x = tf.ones([1, 1])
    with tf.GradientTape() as tape:
        tape.watch(x)
        h = step(x, tf.ones([2, 4]))
    assert tape.gradient(h, x) is not None
    with pytest.raises(LookupError):
        importlib.import_module("tensorflow.python.framework.ops").gradient_registry.lookup("No")


def test_may_record_and_is_watched() -> None:
    x, variable = tf.constant(1.0), tf.Variable(1.0)
    fixed = tf.Variable(1.0, trainable=False)
    assert not _tf_private.may_record()
    with tf.GradientTape() as tape:
        assert _tf_private.may_record()
        assert not _tf_private.is_watched(x)
        assert _tf_private.is_watched(variable)
        assert not _tf_private.is_watched(fixed)
        tape.watch(x)
        assert _tf_private.is_watched(x)
        with tape.stop_recording():
            assert not _tf_private.may_record()
            assert not _tf_private.is_watched(x)

    @tf.function
    def traced() -> None:
        seen.append(_tf_private.may_record())

    seen: list[bool] = []
    with tf.GradientTape():
        traced()
    assert seen == [True]


def test_the_functions_and_the_tape_of_a_trace() -> None:
    names: list[str] = []
    tapes: list[bool] = []

    def inner() -> tf.Tensor:
        names[:] = [name for _, name in _tf_private.callers_in_trace()]
        tapes.append(_tf_private.trace_has_own_tape())
        return tf.constant(0)

    def loop() -> tf.Tensor:
        return tf.while_loop(lambda k: k < 1, lambda k: inner() + k + 1, [tf.constant(0)])

    def outer() -> tf.Tensor:
        return tf.function(loop, autograph=False)()

    outer()
    assert "inner" in names and "loop" in names and "outer" not in names

    def with_tape() -> tf.Tensor:
        with tf.GradientTape() as tape:
            x = inner()
        del tape
        return x

    def without() -> tf.Tensor:
        return inner()

    for traced, wanted in ((with_tape, True), (without, False)):
        with tf.GradientTape() as around:
            tf.function(traced, autograph=False)()
        assert tapes.pop() is wanted
        tf.function(traced, autograph=False).get_concrete_function()
        assert tapes.pop() is False
        del around


def test_what_gradient_functions_get() -> None:
    """An eager call has its attributes by name, and the inputs that no tape watches."""
    found = []

    @tf.RegisterGradient("PrivateNamesMul")
    def gradient(op, grad):
        found.append((_tf_private.eager_attributes(op), _tf_private.needs_gradient(op, 1)))
        return [grad, None]

    with tf.Graph().as_default() as graph, graph.gradient_override_map({"Mul": "PrivateNamesMul"}):
        a, b = tf.zeros([2]), tf.zeros([2])
        tf.gradients(tf.raw_ops.Mul(x=a, y=b), a)
    assert found == [(None, True)]
    op = types.SimpleNamespace(attrs=("T", 1, "transpose_a", False), skip_input_indices=[1])
    assert _tf_private.eager_attributes(op) == {"T": 1, "transpose_a": False}
    assert not _tf_private.needs_gradient(op, 1)
    assert _tf_private.needs_gradient(op, 0)


def test_eager_gradients_of_a_fused_op(monkeypatch) -> None:
    """TensorFlow gives these attributes to a gradient function of an eager call."""
    found = {}
    attributes, is_needed = _tf_private.eager_attributes, _tf_private.needs_gradient

    def noted(op):
        found["attributes"] = attributes(op)
        found["needs"] = [is_needed(op, number) for number in range(len(op.inputs))]
        return found["attributes"]

    monkeypatch.setattr(_tf_private, "eager_attributes", noted)
    layer, x = LSTM(1, go_backwards=True), tf.ones([1, 2, 3])
    with tf.GradientTape() as tape:
        output = layer(x)
    assert tape.gradient(output, layer.cell.kernel.value) is not None
    assert found["attributes"]["go_backwards"] == 1
    needs = dict(zip(op_definitions.inputs("KerasLSTM"), found["needs"], strict=True))
    assert needs["x"] is False
    assert needs["kernel"] is True


# tf.vectorized_map.


def test_pfor() -> None:
    """`register_pfor` converts an op that TensorFlow cannot; a second converter has no effect."""
    calls = []

    def convert(pfor_input):
        op = pfor_input.op
        calls.append(_tf_private.iterations(pfor_input))
        (value, is_stacked, _), *others = pfor_input.inputs
        assert is_stacked
        assert not any(stacked for _, stacked, _ in others)
        (result,) = _tf_private.call_like(op, [value, *(v for v, _, _ in others)])
        return [_tf_private.pfor_output(result, True)]

    _tf_private.register_pfor("Betainc", convert)
    _tf_private.register_pfor("Betainc", lambda _: pytest.fail("the second converter"))
    name = "UnicodeScript"  # without a converter in TensorFlow
    _tf_private.register_pfor(name, convert)
    code = tf.constant([65, 1041, 945])
    found = tf.vectorized_map(
        lambda c: tf.raw_ops.UnicodeScript(input=c), code, fallback_to_while_loop=False
    )
    np.testing.assert_array_equal(found, tf.raw_ops.UnicodeScript(input=code))
    assert len(calls) == 1


# TensorFlow Lite.


def test_lite_modules() -> None:
    schema, files = _tf_private.lite_schema(), _tf_private.lite_files()
    model = schema.ModelT()
    model.description, model.subgraphs = b"d", [schema.SubGraphT()]
    model.subgraphs[0].operators, model.buffers = [], [schema.BufferT()]
    again = files.read_model_from_bytearray(bytearray(files.convert_object_to_bytearray(model)))
    assert again.description == b"d"
    assert len(again.subgraphs) == 1


def test_lite() -> None:
    lite = _tf_private.lite()
    assert callable(lite.TFLiteConverter.from_saved_model)
    assert lite.OpsSet.TFLITE_BUILTINS_INT8
    module = importlib.import_module(_tf_private.LITE_CONVERTER)
    assert lite.TFLiteConverter.__module__ == module.__name__
    assert callable(_tf_private.lite_interpreter())


def test_tensorflow_without_lite(monkeypatch) -> None:
    """The message says what to install. Without an interpreter, that of ai-edge-litert runs."""
    monkeypatch.setattr(_tf_private, "tf", types.SimpleNamespace(__version__="2.99.0"))
    with pytest.raises(ImportError, match=r"TensorFlow 2\.99\.0 does not have(.|\n)*pip install"):
        _tf_private.lite()
    assert _tf_private.lite_interpreter() is None


# Traced functions.


def test_arguments_and_captured_resources() -> None:
    """Values that a function captures are no arguments; variables have values, tables have none."""
    tensor, variable = tf.constant(2.0), tf.Variable(3.0)
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)

    @tf.function(input_signature=[tf.TensorSpec([], name="x"), tf.TensorSpec([], tf.string)])
    def read(x, word):
        return x * tensor * variable, table.lookup(word)

    function = read.get_concrete_function()
    names = [argument.op.name for argument in _tf_private.arguments(function)]
    assert names == ["x", "word"]
    [handle] = _tf_private.captured_resources(function)
    assert handle is table.resource_handle
