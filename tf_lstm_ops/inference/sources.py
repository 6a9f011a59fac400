"""How sessions are made without Keras: the class methods of `Session`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tf_lstm_ops import _files
from tf_lstm_ops.inference import arguments, file, of_arrays, opened, weight_types
from tf_lstm_ops.inference.graph import lower
from tf_lstm_ops.inference.weight_types import Weights


def _of_graph(cls: type[Any], model: file.Graph, threads: int) -> Any:
    session = object.__new__(cls)
    session._start(opened.of_graph(model, threads))
    return session


def from_layers(
    cls: type[Any], layers: Sequence[Any], threads: int = 1, *, weights: Weights = "float32"
) -> Any:
    """Makes a session of a chain of layers. It needs neither TensorFlow nor Keras.

    >>> import numpy as np
    >>> from tf_lstm_ops.inference import Session, layers
    >>> chain = [layers.Embedding(np.ones((50, 8))), layers.Dense(np.ones((8, 2)))]
    >>> Session.from_layers(chain)([[3, 7, 1]]).shape
    (1, 3, 2)

    Args:
      layers: layers of `tf_lstm_ops.inference.layers`, one or more. The first element may be
        an `Input`. Without it the input is [B, T] of type int32 if the first layer is an
        Embedding, else [B, T, any size]. An element may also be `LSTMWeights`, `GRUWeights` or
        `RNNWeights`, whose layer returns all steps, or the pair of a kernel [I, units] and a
        bias [units] of a dense layer.
      threads: see `Session`.
      weights: see `Session`.

    Returns:
      The session.

    Raises:
      ValueError: the layers do not fit each other; or threads is out of range.
      TypeError: an element is no layer.
    """
    threads = arguments.checked_threads(threads)
    return _of_graph(cls, weight_types.applied(of_arrays.graph_of(layers), weights), threads)


def from_graph(
    cls: type[Any], inputs: Any, outputs: Any, threads: int = 1, *, weights: Weights = "float32"
) -> Any:
    """Makes a session of layers that are called on values.

    >>> import numpy as np
    >>> from tf_lstm_ops.inference import Session, layers
    >>> x = layers.Input((None, 3))
    >>> y = layers.Add()(x, layers.Dense(np.ones((3, 3)))(x))
    >>> Session.from_graph(x, y)(np.ones((1, 2, 3)))[0, 0]
    array([4., 4., 4.], dtype=float32)

    Args:
      inputs: values of `layers.Input`: one, a list or a dictionary of them by names. A call
        takes the same structure.
      outputs: values: one, a list or a dictionary of them. A call returns the same structure.
      threads: see `Session`.
      weights: see `Session`.

    Returns:
      The session.

    Raises:
      ValueError: a shape does not fit, or an output depends on another input.
      TypeError: inputs or outputs are not values.
    """
    threads = arguments.checked_threads(threads)
    return _of_graph(cls, weight_types.applied(lower(inputs, outputs), weights), threads)


def from_onnx(
    cls: type[Any],
    source: Any,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    constants: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    check: bool = True,
    threads: int = 1,
    weights: Weights = "float32",
) -> Any:
    """Makes a session of an ONNX model. It needs the package onnx, not TensorFlow.

    The first axis of each input and output of the session is the batch, and the others follow
    in the order of the model; axes of size 1 that the model adds may be missing. A model with
    several inputs or outputs takes and returns a dictionary by their names, or a list if a name
    has more than 63 bytes. The reference page "Models of other programs in sessions" lists the
    operators.

    Args:
      source: the path of the file, or an ``onnx.ModelProto``.
      inputs: names of values within the graph, where the session begins; None: the inputs of the
        model.
      outputs: names of outputs, or of values within the graph, where the session ends; None:
        the outputs of the model.
      constants: the values of inputs that stay the same, by name, such as a sampling rate. A
        number stands for an array of it: 0 for an initial state leaves it out.
      shapes: the sizes of axes, by the names of inputs, such as {"audio": [None, 512]}. A
        number is a size that the model leaves open. None: any; it also opens the batch or the
        time of a model that fixes it, whose constants must not depend on this size.
      check: whether the session is compared with the model on random inputs. ONNX Runtime runs
        the model where it is installed, else ``onnx.reference``. The comparison is that of a
        session of float32, also with other weights.
      threads: see `Session`.
      weights: see `Session`.

    Returns:
      The session.

    Raises:
      ImportError: the package onnx is not installed.
      OSError: the file cannot be read.
      ValueError: the file is damaged, or has a node that a session does not compute; the
        message names the node and the reason. Or the session computes something else.
      TypeError: source is neither a path nor a model.
    """
    threads = arguments.checked_threads(threads)
    from tf_lstm_ops.inference import from_onnx

    found = from_onnx.read(source, outputs, constants, shapes, inputs)
    return _of_source(cls, *found, check, threads, weights)


def _of_source(
    cls: type[Any], model: file.Graph, source: Any, check: bool, threads: int, weights: Weights
) -> Any:
    """A session that is compared with a model of ONNX, or a module."""
    typed = weight_types.applied(model, weights)
    session = _of_graph(cls, model, threads)
    if check:
        source.compare(session)
    if typed is not model:
        session = _of_graph(cls, typed, threads)
    session._opened.advice = source.advice
    return session


def from_torch(
    cls: type[Any],
    source: Any,
    layers: Any = None,
    *,
    example: Any = None,
    check: Any = True,
    threads: int = 1,
    weights: Weights = "float32",
) -> Any:
    """Makes a session of modules of PyTorch, or of a state dict. It needs no TensorFlow.

    The session takes and returns [B, T, features], also of modules with batch_first=False and
    of convolutions. The reference page "Models of other programs in sessions" lists the
    classes.

    Args:
      source: a module of torch.nn; a list of modules, one after the other, in which layers of
        `tf_lstm_ops.inference.layers` stand for what a forward method does between them, and
        an `Input` may be the first element; a state dict; or the path of one, a file of
        safetensors or of ``torch.save``. A pair (module, {"return_sequences": False}) is the
        last h of a recurrent module, of both directions.
      layers: of a state dict: a list of pairs (prefix, class in torch.nn), such as
        ("encoder.lstm", "LSTM"), of triples with a dictionary of the arguments of the class, of
        names of classes without weights, such as "ReLU", and of layers as above.
      example: what ``forward`` of the module takes: a tensor, a tuple of tensors, or a
        dictionary of them by the names of its arguments. PyTorch's exporter follows ``forward``
        with it, and the session is that of `from_onnx`: its axes follow in the order of the
        module, the batch first. The first two axes of a tensor may have any size later if they
        have more than 1 here. It needs the packages onnx and onnxscript. None: source is as
        above.
      check: whether the session is compared with PyTorch on random inputs; or what computes
        the whole model: a module or function that takes a tensor [B, T, features], of an
        Embedding [B, T] of type int64. If a module of the list has batch_first=False, it may
        also take and return [T, B, features]. The comparison is that of a session of float32,
        also with other weights.
      threads: see `Session`.
      weights: see `Session`.

    Returns:
      The session.

    Raises:
      ImportError: a package that reads the file is missing.
      OSError: the file cannot be read.
      ValueError: a session does not compute a module, the message names it and the reason; the
        state dict has other names or shapes; or the session computes something else.
      TypeError: source, layers or an element has another type.
    """
    threads = arguments.checked_threads(threads)
    if not isinstance(check, bool) and not callable(check):
        raise TypeError(f"check must be True, False or a module. Received: check={check!r}")
    from tf_lstm_ops.inference import from_torch

    if example is not None:
        if layers is not None or not isinstance(check, bool):
            raise ValueError("with example, layers must be None, and check True or False")
        from tf_lstm_ops.inference.from_torch import whole

        return _of_source(cls, *whole.read(source, example), check, threads, weights)
    model, reference = from_torch.read(source, layers)
    typed = weight_types.applied(model, weights)
    if check is not False:
        session = _of_graph(cls, model, threads)
        reference.compare(session, check)
        if typed is model:
            return session
    return _of_graph(cls, typed, threads)


def from_rtneural(
    cls: type[Any], path: _files.Path, threads: int = 1, *, weights: Weights = "float32"
) -> Any:
    """Makes a session of a JSON file of RTNeural, AIDA-X or GuitarML, without TensorFlow.

    The reference page "Models of other programs in sessions" lists the layers and options.

    Args:
      path: the file, a regular one: a string, bytes or a path.
      threads: see `Session`.
      weights: see `Session`.

    Returns:
      The session, whose input is [B, T, I].

    Raises:
      OSError: the file cannot be read, or is not a regular one.
      ValueError: the file is no such JSON, a layer or option is unknown, or an array has the
        wrong shape; or threads is out of range. The message names the layer.
      TypeError: path has another type.
    """
    from tf_lstm_ops.inference.from_rtneural import graph_of

    return from_graph(cls, *graph_of(path), threads, weights=weights)
