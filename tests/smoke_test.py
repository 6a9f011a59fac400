"""One step of an LSTM cell against its equations: `bazel test //tests:smoke_test` runs this."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

import tf_lstm_ops


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def main() -> None:
    library = str(tf_lstm_ops._library.path())
    assert library.startswith(os.environ["TEST_SRCDIR"]), f"{library} is not the one under test"

    batch, inputs, units = 3, 2, 5
    rng = np.random.default_rng(0)
    x, cs, h, w = (
        rng.standard_normal(shape)
        for shape in [(batch, inputs), (batch, units), (batch, units), (inputs + units, 4 * units)]
    )
    peephole, bias = np.zeros(units), np.zeros(4 * units)

    got = tf_lstm_ops.raw_ops.LSTMBlockCell(
        x=x, cs_prev=cs, h_prev=h, w=w, wci=peephole, wcf=peephole, wco=peephole, b=bias,
        forget_bias=1.0, cell_clip=-1.0,
    )  # fmt: skip

    i, ci, f, o = np.split(np.concatenate([x, h], 1) @ w, 4, axis=1)
    want_cs = sigmoid(f + 1) * cs + sigmoid(i) * np.tanh(ci)
    want_h = sigmoid(o) * np.tanh(want_cs)
    # Sums of seven products of order one, in float64.
    np.testing.assert_allclose(got.cs, want_cs, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(got.h, want_h, rtol=1e-12, atol=1e-14)
    print(f"TensorFlow {tf.__version__}: {tf_lstm_ops.__file__} agrees with the equations")


if __name__ == "__main__":
    main()
