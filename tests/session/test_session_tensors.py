"""Tensors of PyTorch and TensorFlow, types of ml_dtypes, arrays of other libraries: read without
copies where they are plain, with the right values, or refused."""

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from session import layers, native_program
from tf_lstm_ops.inference import Session, arrays

SHAPE = (2, 7, layers.INPUTS)  # as many steps as units


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session.load(native_program.write(tmp_path_factory.mktemp("tensors"), "lstm"))


@pytest.fixture
def x(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=SHAPE).astype(np.float32)


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    return pytest.importorskip("torch")


def check(session: Session, tensor: Any, floats: np.ndarray) -> None:
    """A tensor gives what these numbers give, in each argument that takes it."""
    want = session(floats)
    np.testing.assert_array_equal(session(tensor), want)
    np.testing.assert_array_equal(session.stream(2)(tensor), want)
    np.testing.assert_array_equal(session(floats, tensor[..., 0]), session(floats, floats[..., 0]))
    by_tensor, by_floats = session.stream(2), session.stream(2)
    by_tensor.set_state([tensor[..., k] for k in range(2)])
    by_floats.set_state([floats[..., k] for k in range(2)])
    for got, state in zip(by_tensor.state, by_floats.state, strict=True):
        np.testing.assert_array_equal(got, state)


def check_refused(session: Session, wrong: Any) -> None:
    """Each argument that takes a tensor refuses this one, and the stream is free again."""
    stream, floats = session.stream(2), np.zeros(SHAPE, np.float32)
    state = stream.state
    calls: dict[str, Callable[[], object]] = {
        "x must": lambda: session(wrong),
        "mask must": lambda: session(floats, wrong),
        "x must be": lambda: stream(wrong),
        r"state\[1\] must": lambda: stream.set_state([state[0], wrong]),
        "out must be a NumPy array": lambda: session(floats, out=wrong),
    }
    for text, call in calls.items():
        with pytest.raises((TypeError, ValueError), match=text):
            call()
    np.testing.assert_array_equal(stream(floats), session(floats))


def test_plain_tensors_are_not_copied(x: np.ndarray, torch: ModuleType) -> None:
    tensor = torch.from_numpy(x)
    assert np.shares_memory(arrays.as_array("x", tensor), x)
    eager = tf.constant(x)
    assert np.shares_memory(arrays.as_array("x", eager), arrays.as_array("x", eager))


@pytest.mark.parametrize(
    "name", [name for name in dir(ml_dtypes) if name.startswith(("bfloat", "float", "int", "uint"))]
)
def test_types_of_ml_dtypes(session: Session, x: np.ndarray, name: str) -> None:
    numbers = np.clip(x, 0, 1).astype(getattr(ml_dtypes, name))
    check(session, numbers, numbers.astype(np.float32))


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "bfloat16", "int8", "bool"])
def test_tensors_of_tensorflow(session: Session, x: np.ndarray, name: str) -> None:
    tensor = tf.cast(x, name)
    check(session, tensor, tf.cast(tensor, tf.float32).numpy())
    if name != "bool":
        variable = tf.Variable(tensor)
        np.testing.assert_array_equal(session(variable), session(tensor))
    for element in tf.data.Dataset.from_tensors(tensor):
        np.testing.assert_array_equal(session(element), session(tensor))


def refused_by_tensorflow() -> dict[str, Callable[[], Any]]:
    ones = np.ones(SHAPE, np.float32)
    return {
        "string": lambda: tf.constant([[["a"]]]),
        "no strings": lambda: tf.zeros(SHAPE, tf.string),
        "variant": lambda: tf.raw_ops.EmptyTensorList(
            element_shape=-1, max_num_elements=3, element_dtype=tf.float32
        ),
        "resource": lambda: tf.Variable(ones).handle,
        "complex": lambda: tf.complex(ones, ones),
        "quantized": lambda: tf.quantization.quantize(ones, 0.0, 1.0, tf.qint8).output,
        "ragged": lambda: tf.ragged.constant([[[1.0]], [[1.0], [2.0]]]),
        "sparse": lambda: tf.sparse.from_dense(ones),
        "slices": lambda: tf.IndexedSlices(ones, tf.constant([0, 1])),
        "data": lambda: tf.data.Dataset.from_tensors(ones),
    }


@pytest.mark.parametrize("kind", refused_by_tensorflow())
def test_refused_by_tensorflow(session: Session, kind: str) -> None:
    """DLPack of most of these ends the process."""
    check_refused(session, refused_by_tensorflow()[kind]())


@pytest.mark.full
def test_symbolic_tensors(session: Session) -> None:
    import keras

    check_refused(session, keras.Input(SHAPE[1:], batch_size=2))

    @tf.function
    def trace(x: tf.Tensor) -> tf.Tensor:
        check_refused(session, x)
        return x

    trace(tf.zeros(SHAPE))


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "bfloat16", "int16", "bool"])
def test_tensors_of_torch(session: Session, x: np.ndarray, torch: ModuleType, name: str) -> None:
    tensor = torch.from_numpy(x).to(getattr(torch, name))
    check(session, tensor, tensor.to(torch.float32).numpy())
    turned = tensor.transpose(0, 2).contiguous().transpose(0, 2)
    np.testing.assert_array_equal(session(turned), session(tensor))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_small_types_of_torch(session: Session, torch: ModuleType, x: np.ndarray, name: str):
    tensor = torch.from_numpy(x).to(getattr(torch, name))
    np.testing.assert_array_equal(session(tensor), session(tensor.to(torch.float32).numpy()))


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
def test_negated_views(session: Session, x: np.ndarray, torch: ModuleType, name: str) -> None:
    """Their memory has the numbers of the other sign."""
    tensor = torch.from_numpy(x).to(getattr(torch, name))
    check(session, torch._neg_view(tensor), -tensor.to(torch.float32).numpy())
    if name != "bfloat16":
        imaginary = torch.complex(tensor, tensor).conj().imag
        np.testing.assert_array_equal(session(imaginary), session(-x))


def test_parameters_and_subclasses(session: Session, x: np.ndarray, torch: ModuleType) -> None:
    class Plain(torch.Tensor):
        pass

    class Doubles(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs)
            return 2 * np.asarray(result) if func is torch.Tensor.__array__ else result

    class Refuses(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("none of its data")

    tensor = torch.from_numpy(x)
    want = session(x)
    np.testing.assert_array_equal(session(tensor.as_subclass(Plain)), want)
    fixed = torch.nn.Parameter(tensor, requires_grad=False)
    np.testing.assert_array_equal(session(fixed), want)
    np.testing.assert_array_equal(session(tensor.as_subclass(Doubles)), session(2 * x))
    check_refused(session, tensor.as_subclass(Refuses))


def refused_by_torch(torch: ModuleType) -> dict[str, Callable[[], Any]]:
    x = torch.ones(SHAPE)
    return {
        "gradient": lambda: x.clone().requires_grad_(),
        "bfloat16 gradient": lambda: x.bfloat16().requires_grad_(),
        "parameter": lambda: torch.nn.Parameter(x),
        "conjugate": lambda: torch.complex(x, x).conj(),
        "complex": lambda: torch.complex(x, x),
        "sparse": x.to_sparse,
        "rows": lambda: torch.eye(3).to_sparse_csr(),
        "quantized": lambda: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
        "nested": lambda: torch.nested.nested_tensor([x[0], x[1]]),
        "jagged": lambda: torch.nested.nested_tensor([x[0], x[1, :1]], layout=torch.jagged),
        "meta": lambda: x.to("meta"),
        "bfloat16 meta": lambda: x.bfloat16().to("meta"),
        "zero": lambda: torch._efficientzerotensor(SHAPE),
        "masked": lambda: torch.masked.masked_tensor(x, x > 0),
    }


@pytest.mark.filterwarnings("ignore")  # of prototypes in PyTorch
@pytest.mark.parametrize(
    "kind",
    [
        *("gradient", "bfloat16 gradient", "parameter", "conjugate", "complex", "sparse", "rows"),
        *("quantized", "nested", "meta", "bfloat16 meta", "zero", "masked"),
        pytest.param("jagged", marks=pytest.mark.full),  # PyTorch imports its compiler
    ],
)
def test_refused_by_torch(session: Session, torch: ModuleType, kind: str) -> None:
    check_refused(session, refused_by_torch(torch)[kind]())


@pytest.mark.full
def test_wrappers_of_torch(session: Session, torch: ModuleType) -> None:
    def use(x: Any) -> Any:
        check_refused(session, x)
        return x.sum()

    x = torch.ones((2, *SHAPE))
    torch.vmap(use)(x)
    torch.vmap(use)(x.bfloat16())
    torch.func.grad(use)(x[0])
    torch.func.functionalize(use)(x[0])


class Exporter:
    """An array of another library, by the interfaces that it has."""

    def __init__(self, dlpack: np.ndarray) -> None:
        self.dlpack = dlpack

    def __dlpack__(self, **options: object) -> object:
        return self.dlpack.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.dlpack.__dlpack_device__()


class WithArray(Exporter):
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return -self.dlpack


class OnGpu(Exporter):
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def test_both_interfaces(session: Session, x: np.ndarray) -> None:
    """NumPy's is the first: DLPack cannot say what a library computes late."""
    np.testing.assert_array_equal(session(Exporter(x)), session(x))
    np.testing.assert_array_equal(session(WithArray(x)), session(-x))
    with pytest.raises(ValueError, match=r"x must be an array on the CPU .* Implicit conversion"):
        session(OnGpu(x))
    check_refused(session, OnGpu(x))


@pytest.mark.parametrize("dtype", ["V4", "U3", "S3", "O", "M8[s]", "m8[s]", "c8", [("a", "f4")]])
def test_refused_types(session: Session, dtype: Any) -> None:
    check_refused(session, np.zeros(SHAPE, dtype))


def test_orders_of_types(session: Session, x: np.ndarray) -> None:
    """The arrays that a stream keeps serve each type after each other one."""
    stream, half = session.stream(2), x.astype(np.float16)
    same = [half, half.astype(np.float32), tf.constant(half), half.astype(float)]
    want = stream(half)
    for first, second in itertools.permutations(same, 2):
        for tensor in (first, second):
            stream.reset()
            np.testing.assert_array_equal(stream(tensor), want)
