"""Session: a graph of layers with frozen weights."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tf_lstm_ops import _files, _tensorflow
from tf_lstm_ops._constructors import constructor
from tf_lstm_ops.inference import (
    arguments,
    compare,
    file,
    native,
    of_arrays,
    opened,
    sources,
    weight_types,
)
from tf_lstm_ops.inference.compare import Comparison
from tf_lstm_ops.inference.opened import Opened
from tf_lstm_ops.inference.stream import Stream
from tf_lstm_ops.inference.weight_types import LayerWeights, Weights

_Shapes = tuple[arguments.Shape, ...]
_KEPT_SHAPES = 64  # of inputs, for each of which a session keeps a _Call


class _Call(NamedTuple):
    """What calls with inputs of the same shapes have in common."""

    inputs: list[bytes]  # structs without addresses
    outputs: list[bytes]
    output_shapes: list[arguments.Shape]
    has_output: bool  # an element of it


class Session:
    """Computes a model of recurrent layers on the CPU, without TensorFlow.

    A session computes LSTM, GRU and SimpleRNN of this package and of ``keras.layers``, StackedLSTM,
    StackedGRU, Bidirectional, Masking; Dense, Embedding, Conv1D, SeparableConv1D, DepthwiseConv1D;
    BatchNormalization, LayerNormalization, RMSNormalization, UnitNormalization, GroupNormalization;
    MaxPooling1D, AveragePooling1D and their Global forms; Flatten, Reshape, Permute, RepeatVector,
    UpSampling1D, ZeroPadding1D, Cropping1D; Concatenate, Add, Subtract, Multiply, Average, Maximum,
    Minimum; Activation, ReLU, LeakyReLU, PReLU, ELU, Softmax; TimeDistributed of any of them; and
    layers that do nothing in inference, such as Dropout. Functional models may have operations,
    such as ``2 * x - y`` and ``keras.ops.concatenate``. Models may have branches, several inputs
    and outputs, and nested models. `from_layers` and `from_graph` make sessions without Keras.

    Recurrent layers of this package equal ``model(x)`` bit for bit. A stock layer equals the layer
    of this package with its weights bit for bit. Other layers agree within float rounding.

    The weights are copied: later changes of the model do not change the session. Each call starts
    from the initial states of the layers, zeros in most of them, also of a layer with
    ``stateful=True``; a `stream` keeps the states.

    Any number of threads may call a session at the same time. A call releases the interpreter's
    lock. With ``out`` a call allocates no array for the result. If ``x`` is not contiguous
    float32, it is copied.

    >>> import keras, numpy as np
    >>> from tf_lstm_ops.inference import Session
    >>> from tf_lstm_ops.keras import LSTM
    >>> model = keras.Sequential([keras.Input((None, 8)), LSTM(4), keras.layers.Dense(2)])
    >>> session = Session(model)
    >>> session(np.ones((32, 10, 8))).shape
    (32, 2)

    Args:
      model: a built ``keras.Model``, Sequential or functional, or a list of built layers; or what
        `from_layers` takes, which needs no Keras.
      threads: the number of threads of a call, from 1 to 256. They share the work of large batches
        and layers; results do not depend on their number.
      weights: the type of the weights of products: "float32", "bfloat16", "bfloat16_storage" or
        "int8". With "int8" a layer of fewer than 16,384 weights stays float32. With "bfloat16"
        processors that multiply bfloat16 also round what is multiplied; "bfloat16_storage" has the
        same bits on all processors. Or a dictionary from types to lists of
        names of layers, such as ``{"int8": ["lstm", "dense_1"]}``; the other layers are float32.
        "lstm" also stands for the layers "lstm (layer 0)" and "lstm (layer 1)" of several layers in
        one. Or a function that is called with `LayerWeights` for each layer with products, and
        returns a type.

    Raises:
      ValueError: the model is not built, or has a layer that a session does not compute; threads
        is out of range; weights has an unknown type or name; or weights that become int8 are not
        finite. The message names the layer and the reason.
      TypeError: model is neither a model nor a list of layers, threads is not an integer, or
        weights is neither a type, a dictionary nor a function.
      ImportError: TensorFlow or Keras is missing. `load` does not need them.

    Attributes:
      input_size: I, the number of features of the first input; 1 for indices.
      output_size: O, the number of features of the first output; 0 if it depends on the call.
      returns_sequence: whether the first output has an axis of time.
      can_stream: whether `stream` is possible: no layer needs more than the steps so far.
      state_shapes: the shape of each state without B: h of each recurrent layer, and c after it for
        an LSTM; the last steps of the input of a causal convolution; empty if the session cannot
        stream.
      threads: the argument.
    """

    def __init__(self, model: Any, threads: int = 1, weights: Weights = "float32") -> None:
        threads = arguments.checked_threads(threads)
        if of_arrays.is_chain(model):
            graph = of_arrays.graph_of(model)
        else:
            opened.require_keras(model)
            _tensorflow.check()
            from tf_lstm_ops.inference import from_keras

            graph = from_keras.graph_of(model)
        self._start(opened.of_graph(weight_types.applied(graph, weights), threads))

    def _start(self, found: Opened) -> None:
        self._opened, info = found, found.info
        self.input_size, self.output_size = info.input_size, info.output_size
        self.returns_sequence, self.can_stream = bool(info.returns_sequence), bool(info.can_stream)
        self.threads, self.state_shapes = info.threads, found.state_shapes
        self._calls: dict[_Shapes, _Call] = {}

    from_layers = constructor(sources.from_layers)
    from_graph = constructor(sources.from_graph)
    from_onnx = constructor(sources.from_onnx)
    from_torch = constructor(sources.from_torch)
    from_rtneural = constructor(sources.from_rtneural)

    @property
    def inputs(self) -> tuple[arguments.Spec, ...]:
        """The name, type and shape of each input; None in a shape: any size."""
        return self._opened.inputs.specs

    @property
    def outputs(self) -> tuple[arguments.Spec, ...]:
        """The name, type and shape of each output; None in a shape: it depends on the call."""
        return self._opened.outputs.specs

    @property
    def weights(self) -> tuple[LayerWeights, ...]:
        """The type of the weights of each layer that has products, in the order of the file."""
        return weight_types.layers(file.records(self._opened.content), self._opened.names)

    @classmethod
    def load(cls, path: _files.Path, threads: int = 1) -> Session:
        """Opens a file that `save` wrote. It needs neither TensorFlow nor Keras.

        The file is mapped into memory; no file descriptor stays open. It must not be written to
        while the session exists; `save` replaces it, which is allowed.

        Args:
          path: the file, a regular one: a string, bytes or a path.
          threads: see `Session`.

        Returns:
          The session.

        Raises:
          OSError: the file cannot be read, or is not a regular one.
          ValueError: the file is not valid, or of a later version; or threads is out of range.
          TypeError: path has another type.
        """
        session = cls.__new__(cls)
        session._start(opened.of_file(path, arguments.checked_threads(threads)))
        return session

    def save(self, path: _files.Path) -> None:
        """Writes the session to a file, for `load` and for the C library.

        A file at `path` is replaced when the new one is complete. After an error it is unchanged.
        The new file has the permissions of the old one, and its owner where the system allows it.
        At a symbolic link the target is replaced. Other hard links keep the old file.

        If the folder takes no new file, the old one is written to. No session may have it open
        then, and an error may leave it incomplete.

        Args:
          path: the file: a string, bytes or a path.

        Raises:
          OSError: the file cannot be written, or is not a regular one, such as a device or a FIFO.
          TypeError: path has another type.
        """
        _files.write(_files.checked(path), self._opened.content)

    def __call__(self, x: Any, mask: Any = None, out: Any = None, *, lengths: Any = None) -> Any:
        """Computes whole sequences from the initial states.

        A session of a model with several inputs takes a list or a dictionary of them, as the model
        does, and so for masks and lengths. It returns and takes several outputs likewise.

        >>> import numpy as np
        >>> from tf_lstm_ops.inference import Session, layers
        >>> weights = [np.ones((8, 16)), np.ones((4, 16)), np.zeros(16)]
        >>> session = Session.from_layers([layers.LSTM(weights)])
        >>> x = np.ones((2, 5, 8), "float32")
        >>> same = session(x, lengths=[3, 5])[0] == session(x[:1, :3])[0]
        >>> bool(same.all())
        True

        Args:
          x: an array of the shape in `inputs`, such as [B, T, I]: anything that NumPy converts to
            an array of real numbers, such as a list or a tensor on the CPU; also an array on the
            CPU with ``__dlpack__`` only. The indices of an embedding are integers, also of a type
            of floats.
          mask: boolean [B, T], False at steps that do not count; None: all count.
          out: float32, C-contiguous, of the shape of the result, which is written to it. Without it
            the call allocates a new array.
          lengths: integers [B], the number of the first steps of each row that count, from 0 to T:
            a mask that is True for them, with the same results. None: see mask.

        Returns:
          [B, T, O] if `returns_sequence`, else [B, O]; or what the layers make of it. With T = 0
          and without `returns_sequence`, the output of zero states.

        Raises:
          ValueError: a shape is wrong, x is not an array that NumPy can read, an index is out of
            range, out is not contiguous or shares memory with x, a length is out of range, or
            there are a mask and lengths.
          TypeError: x or mask has no real numbers, lengths are not integers, or out is not float32.
          MemoryError: there is no memory.
        """
        own = self._opened
        specs = own.inputs.specs
        inputs = [
            arguments.numbers(spec, label, value)
            for spec, label, value in zip(specs, own.inputs.labels, own.inputs.flat(x), strict=True)
        ]
        shapes = tuple([array.shape for array in inputs])
        call = self._calls.get(shapes) or self._prepare(shapes)
        inputs = [
            arguments.contiguous(spec, array) for spec, array in zip(specs, inputs, strict=True)
        ]
        if out is None:
            results = [np.empty(shape, np.float32) for shape in call.output_shapes]
        else:
            results = own.checked_out(out, call.output_shapes, inputs)
        has_lengths = lengths is not None
        masks = () if mask is None and not has_lengths else self._valid(mask, lengths, shapes)
        if call.has_output:
            given = arguments.structs(call.inputs, inputs, masks, has_lengths)
            native.call(
                "session_run_arrays",
                *(own.handle, given, len(inputs)),
                *(arguments.structs(call.outputs, results, ()), len(results)),
                names=own.names,
            )
        return out if out is not None else own.outputs.packed(results)

    def _prepare(self, shapes: _Shapes) -> _Call:
        """Makes what a call with inputs of these shapes needs."""
        own = self._opened
        for spec, label, shape in zip(self.inputs, own.inputs.labels, shapes, strict=True):
            if not spec.fits(shape):
                raise ValueError(
                    f"{label} must have the shape [{spec.axes}]. Received: {shape}{own.advice}"
                )
        inputs = [arguments.struct(*each) for each in zip(self.inputs, shapes, strict=True)]
        found = native.inferred(own.handle, inputs, len(self.outputs), own.names)
        outputs = [arguments.struct(*each) for each in zip(self.outputs, found, strict=True)]
        call = _Call(inputs, outputs, found, any(math.prod(shape) for shape in found))
        if len(self._calls) >= _KEPT_SHAPES:
            self._calls.clear()
        self._calls[shapes] = call
        return call

    def _valid(self, mask: Any, lengths: Any, shapes: _Shapes) -> list[file.Array | None]:
        """The masks or the lengths as the library reads them."""
        if mask is not None and lengths is not None:
            raise ValueError("a call has a mask or lengths, not both")
        own = self._opened
        given, value = (own.lengths, lengths) if mask is None else (own.masks, mask)
        check = arguments.checked_lengths if mask is None else arguments.checked_mask
        return [
            None if each is None else check(label, each, shape[:2])
            for label, each, shape in zip(given.labels, given.flat(value), shapes, strict=True)
        ]

    def stream(self, batch: int = 1) -> Stream:
        """Opens a stream, which computes the model step by step and keeps the states.

        Args:
          batch: B, the number of rows.

        Returns:
          The stream, which begins with the initial states. Sessions may have any number of streams.

        Raises:
          ValueError: batch is not positive, or a layer needs more than the steps so far.
          MemoryError: there is no memory.
        """
        try:
            return Stream(self, batch)
        except ValueError as error:
            raise ValueError(f"{error}{self._opened.advice}") from None

    def compare(self, model_or_session: Any, x: Any, mask: Any = None) -> Comparison:
        """Compares the session with a reference, prints the errors and times, and returns them.

        The reference is the first result of ``model_or_session(x)``, with ``mask=mask`` if there is
        a mask. Both are called in turn, at least seven times and for at least 0.2 seconds; the
        first two calls are not timed. A Keras model is called in a ``tf.function``. The time of a
        call includes the conversion of its result to NumPy arrays.

        >>> import numpy as np
        >>> from tf_lstm_ops.inference import Session, layers
        >>> session = Session.from_layers([layers.Dense([[0.5, 1], [1.5, 2]], name="dense")])
        >>> def rounded(x):
        ...     return x @ np.array([[0.5, 1], [1.75, 2]])
        >>> x = np.ones((3, 4, 2), "float32")
        >>> errors = session.compare(rounded, x).outputs[0]  # doctest: +NORMALIZE_WHITESPACE
        output  elements  largest error  mean error  relative norm  equal argmax
        output 0      24       2.50e-01    1.25e-01       6.67e-02       100.00%
        time of a call: ... ms; other: ... ms, ... times as long
        >>> errors.largest, errors.mean
        (0.25, 0.125)

        Args:
          model_or_session: another session, a Keras model, or a function. It gets x as it is, but
            lists of numbers as arrays, and masks as boolean NumPy arrays. Its result has the
            structure of the session's: an array or tensor that NumPy can read, or a list or a
            dictionary of them.
          x: see a call of the session.
          mask: see a call of the session.

        Returns:
          The errors of each output, and the median times.

        Raises:
          ValueError: the results have different shapes, another number of arrays or other names; or
            x or mask is wrong.
          TypeError: model_or_session cannot be called, or its result has another structure.
        """
        own = self._opened
        taken = own.inputs, own.masks
        report = compare.compare(self, model_or_session, x, mask, taken, own.outputs)
        print(report)
        return report

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Session cannot be copied or pickled. Use Session.save and Session.load")

    def __repr__(self) -> str:
        return (
            f"Session(layers={self._opened.layers}, input_size={self.input_size}, "
            f"output_size={self.output_size}, returns_sequence={self.returns_sequence}, "
            f"threads={self.threads}, weights={weight_types.summary(self.weights)!r})"
        )
