"""The same computation on any number of threads in one process: in sessions of TensorFlow 1, each
of which has its own number. In eager mode the number is fixed when TensorFlow starts."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2


class OnThreads:
    """A function, traced once, with the values that its variables have now.

    Args:
      function: takes the arguments by name and returns tensors, in any structure.
      arguments: arrays. They are fed, so that TensorFlow does not compute any result beforehand.
    """

    def __init__(
        self, function: Callable[..., Any], arguments: Mapping[str, np.ndarray | tf.Tensor]
    ) -> None:
        self.arguments = {name: np.asarray(value) for name, value in arguments.items()}
        specs = {k: tf.TensorSpec(a.shape, a.dtype, k) for k, a in self.arguments.items()}
        traced = tf.function(lambda values: function(**values)).get_concrete_function(specs)
        self.structure = traced.structured_outputs
        frozen = convert_variables_to_constants_v2(traced)
        self.definition = frozen.graph.as_graph_def()
        self.inputs = [tensor.name for tensor in frozen.inputs]
        self.outputs = [tensor.name for tensor in frozen.outputs]

    def run(self, threads: int) -> Any:
        """The results, as arrays in the function's structure, on so many threads."""
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads)
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(self.definition, name="")
            with tf.compat.v1.Session(graph=graph, config=config) as session:
                values = tf.nest.flatten(self.arguments)
                fed = dict(zip(self.inputs, values, strict=True))
                return tf.nest.pack_sequence_as(self.structure, session.run(self.outputs, fed))
