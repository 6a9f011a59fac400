"""SavedModels that hold stock CudnnRNNV3 nodes, as one made for a GPU does, served on the CPU.

One new process writes them without this package; it needs no kernel, as it only traces. Then it
loads them: without the package, which TensorFlow refuses to run, and with it. The right values are
the oracle's.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

TIME, BATCH, INPUTS, UNITS, LAYERS, DIRECTIONS = 5, 3, 3, 4, 2, 2
MODES = ["lstm", "gru"]
LENGTHS = [5, 2, 3]
RATE, STEPS = 0.1, 3


def make_model(mode: str):
    from oracle.cudnn_rnn import Model

    return Model(mode, INPUTS, UNITS, LAYERS, DIRECTIONS)


def make_arrays(mode: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "input": rng.normal(size=(TIME, BATCH, INPUTS)),
        "params": rng.normal(size=make_model(mode).params_size) / 2,
    }


# What is saved.


class Recurrent(tf.Module):
    """Two bidirectional layers; prediction, and a step of gradient descent."""

    def __init__(self, mode: str):
        super().__init__()
        self.mode = mode
        self.params = tf.Variable(make_arrays(mode)["params"], name="params")

    def run(self, x):
        state = tf.zeros([LAYERS * DIRECTIONS, BATCH, UNITS], tf.float64)
        return tf.raw_ops.CudnnRNNV3(
            input=x,
            input_h=state,
            input_c=state,
            params=self.params,
            sequence_lengths=LENGTHS,
            rnn_mode=self.mode,
            direction="bidirectional",
        ).output

    @tf.function(input_signature=[tf.TensorSpec([None, BATCH, INPUTS], tf.float64, name="x")])
    def predict(self, x):
        return self.run(x)

    @tf.function(input_signature=[tf.TensorSpec([None, BATCH, INPUTS], tf.float64)])
    def train(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((self.run(x) - 1) ** 2)
        self.params.assign_sub(RATE * tape.gradient(loss, self.params))
        return loss


def save(folder: Path) -> None:
    for mode in MODES:
        module = Recurrent(mode)
        tf.saved_model.save(module, folder / mode, signatures=module.predict)
    assert "tf_lstm_ops" not in sys.modules


# How it is served.


def serve(folder: Path) -> None:
    import tf_lstm_ops  # noqa: F401  (registers the kernels)

    results = {}
    for mode in MODES:
        x = tf.constant(make_arrays(mode)["input"])
        module = tf.saved_model.load(folder / mode)
        (signature,) = module.signatures["serving_default"](x=x).values()
        results |= {f"{mode} signature": signature, f"{mode} prediction": module.predict(x)}
        results[f"{mode} losses"] = [module.train(x) for _ in range(STEPS)]
        results |= {f"{mode} params": module.params, f"{mode} trained": module.predict(x)}
    np.savez(folder / "served.npz", **results)


def serve_without_the_package(folder: Path) -> None:
    for mode in MODES:
        x = tf.constant(make_arrays(mode)["input"])
        module = tf.saved_model.load(folder / mode)
        for function in module.predict, module.train, module.signatures["serving_default"]:
            try:
                function(x)
            except Exception as error:
                print(type(error).__name__, str(error).replace("\n", " "))
    assert "tf_lstm_ops" not in sys.modules


def run(folder: Path) -> None:
    save(folder)
    serve_without_the_package(folder)
    serve(folder)


# What is right.


def expected(mode: str) -> dict[str, np.ndarray]:
    """Prediction and gradient descent of the oracle."""
    from oracle.cudnn_rnn import Arguments, Results, cudnn_rnn, cudnn_rnn_backward

    model = make_model(mode)
    state = np.zeros((LAYERS * DIRECTIONS, BATCH, UNITS))
    arrays = make_arrays(mode)
    arguments = Arguments(arrays["input"], state, state, arrays["params"])

    def predict():
        return cudnn_rnn(model, arguments, np.array(LENGTHS))

    prediction, losses = predict().output, []
    for _ in range(STEPS):
        results = predict()
        losses.append(np.sum((results.output - 1) ** 2))
        zeros = (np.zeros_like(results.output_h), np.zeros_like(results.output_c))
        upstream = Results(2 * (results.output - 1), *zeros)
        gradients = cudnn_rnn_backward(model, arguments, upstream, np.array(LENGTHS))
        arguments = arguments._replace(params=arguments.params - RATE * gradients.params)
    return {
        "signature": prediction,
        "prediction": prediction,
        "losses": np.array(losses),
        "params": arguments.params,
        "trained": predict().output,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cudnn_saved_models")


@pytest.fixture(scope="module")
def printed(folder) -> str:
    """Standard output of the new process, which sees no GPU."""
    process = subprocess.run(
        [sys.executable, __file__, folder],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def served(printed, folder) -> dict[str, np.ndarray]:
    with np.load(folder / "served.npz") as results:
        return dict(results)


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES)
def test_served_on_the_cpu(served, mode):
    want = expected(mode)
    assert want["losses"][-1] < want["losses"][0]
    for name, value in want.items():
        # float64; three steps of training, each of sums over a batch of ten valid steps
        np.testing.assert_allclose(
            served[f"{mode} {name}"], value, rtol=1e-11, atol=1e-12, err_msg=name
        )


@pytest.mark.full
def test_without_the_package_it_does_not_run(printed):
    """TensorFlow loads it, and finds no kernel: for the signature and for both functions."""
    lines = printed.splitlines()
    assert len(lines) == 3 * len(MODES)
    for line in lines:
        assert "CudnnRNN" in line
        assert line.startswith(("InvalidArgumentError", "NotFoundError", "UnimplementedError"))


@pytest.mark.full
def test_the_graph_holds_stock_nodes_only(printed, folder):
    """What was tested is what a GPU would run: no op of this package is in the file."""
    for mode in MODES:
        graph = (folder / mode / "saved_model.pb").read_bytes()
        assert b"CudnnRNNV3" in graph and b"CudnnRNNBackpropV3" in graph
        assert b"TfLstmOps>" not in graph


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # the tests folder instead of this one
    run(Path(sys.argv[1]))
