"""The reference: LSTM equations in NumPy, written from the mathematics.

Nothing here imports tf_lstm_ops or TensorFlow, so that an error of theirs cannot hide here.
All functions calculate in the precision of their arguments: float64 for the reference, float32
for the plain evaluation that error bounds are measured against, complex128 for the complex step
(`derivatives`).
"""
