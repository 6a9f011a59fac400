"""How tf.vectorized_map, tape.jacobian and batch_jacobian run the ops for all iterations at once.

TensorFlow calls a converter for each op of the loop body ("pfor"). Every dialect's module has a
table ``CONVERTERS`` by the op's name; dialects.py registers them. The derivatives of gradient ops
need no converters: they are plain TensorFlow ops (`composite`).
"""
