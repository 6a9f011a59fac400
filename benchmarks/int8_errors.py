"""Prints the errors of sessions with weights in bfloat16 and int8, beside float32, as Markdown.

    python benchmarks/int8_errors.py [--model FILE] [--weights bfloat16,int8]

* demo: the model and the test data of `tf-lstm-ops demo`.
* RTNeural: the recurrent models of tests/session/rtneural with their recorded inputs. All their
  layers get the type. With weights="int8" layers of fewer than 4096 weights would stay float32.
* language model: Embedding, LSTM of 256 units, Dense. It is trained on the bytes of docs/ without
  the last 10,001, which it then predicts in one sequence. This takes a few minutes. --model keeps
  the trained model in FILE, or takes it from there.

Each row compares an output with that of the session in float32, as `Session.compare` does. "ONNX
Runtime" is its dynamic quantization, with a scale for each column of a weight, of the exported
model. It quantizes LSTM and MatMul: of a model with a GRU only the dense layers. "OpenVINO" is the
exported model with its hint for bfloat16, where OpenVINO is installed.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))  # the layers of RTNeural's models

SEED, DEMO_EPOCHS = 0, 30
UNITS, BATCH, STEPS, EPOCHS, RATE = 256, 32, 100, 20, 3e-3  # of the language model
TEST_STEPS, RANGES = 10_000, [(0, 100), (900, 1000), (4900, 5000), (9900, 10_000)]
Array = np.ndarray


class Model(NamedTuple):
    """A model, which `session` opens with options, and its test data."""

    name: str
    keras_model: Any
    session: Callable[..., Any]
    x: Array


def errors(y: Array, expected: Array) -> list[str]:
    """The cells of a row: largest, mean, relative norm, share of equal argmax."""
    from tf_lstm_ops.inference.compare import output_errors

    found = output_errors("", y, expected)
    equal = found.equal_argmax
    numbers = [f"{value:.1e}" for value in (found.largest, found.mean, found.relative_norm)]
    return [*numbers, "–" if equal is None else f"{equal:.2%}"]


def demo() -> Model:
    """The demo's model after as many epochs as `loss_curves.py` trains it."""
    from tf_lstm_ops.cli import training, vowels
    from tf_lstm_ops.inference import Session
    from tf_lstm_ops.keras import LSTM

    train, test = vowels.standardise(*vowels.load())
    count = len(train.speakers)
    steps = DEMO_EPOCHS * -(-count // training.BATCH_SIZE)
    found = training.Training(training.build_model(LSTM, steps, SEED))
    rng = np.random.default_rng(SEED)
    for _ in range(DEMO_EPOCHS):
        training.run_epoch(found, train, test, rng.permutation(count))
    name, session = f"demo, LSTM {training.UNITS}", functools.partial(Session, found.model)
    return Model(name, found.model, session, test.features)


def rtneural() -> Iterator[Model]:
    """The recurrent ones of the models that RTNeural recorded."""
    from session import rtneural_models
    from session.test_rtneural_models import keras_model
    from tf_lstm_ops.inference import Session

    for name in rtneural_models.NAMES:
        found = rtneural_models.read(name)
        if {"lstm", "gru"} & {layer["type"] for layer in found.layers}:
            session = functools.partial(_with_type, Session.from_rtneural, found.path)
            yield Model(f"RTNeural {name}", keras_model(found), session, found.x)


def _with_type(make: Callable[..., Any], path: Path, weights: str = "float32") -> Any:
    """A session all of whose layers have a type, small ones too."""
    return make(path, weights=lambda layer: weights)


def language_model(file: Path | None) -> tuple[Model, Array]:
    """The model, and the bytes that it should predict."""
    import keras

    from tf_lstm_ops.inference import Session

    pages = sorted((ROOT / "docs").rglob("*.md"))
    text = np.frombuffer(b"".join(page.read_bytes() for page in pages), np.uint8).astype(np.int32)
    text, test = text[: -TEST_STEPS - 1], text[-TEST_STEPS - 1 :]
    is_kept = file is not None and file.exists()
    model = keras.models.load_model(file) if is_kept else _trained(text)
    if file and not is_kept:
        model.save(file)
    session = functools.partial(Session, model)
    return Model(f"language model, LSTM {UNITS}", model, session, test[None, :-1]), test[1:]


def _built(shape: tuple[int | None, int | None], stateful: bool = False) -> Any:
    from keras import Input, Sequential
    from keras.layers import Dense, Embedding

    from tf_lstm_ops.keras import LSTM

    lstm = LSTM(UNITS, return_sequences=True, stateful=stateful)
    x = Input(batch_shape=shape, dtype="int32")
    return Sequential([x, Embedding(256, UNITS), lstm, Dense(256)])


def _trained(text: Array) -> Any:
    """A model. In its training the states were kept from batch to batch, as in the test."""
    import keras

    keras.utils.set_random_seed(SEED)
    model = _built((BATCH, STEPS), stateful=True)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(), loss, jit_compile=False)
    size = (len(text) - 1) // BATCH // STEPS * STEPS  # of each row
    where = np.arange(BATCH)[:, None] * size + np.arange(STEPS)
    for epoch in range(EPOCHS):
        model.layers[1].reset_states()
        model.optimizer.learning_rate = RATE * (1 - epoch / EPOCHS)
        for k in range(0, size, STEPS):
            loss = model.train_on_batch(text[where + k], text[where + k + 1])
        print(f"epoch {epoch + 1}/{EPOCHS}: loss {loss:.3f}", file=sys.stderr, flush=True)
    found = _built((None, None))
    found.set_weights(model.get_weights())
    return found


def by_onnx_runtime(model: Model) -> Array | None:
    """The output of the quantized model; None if ONNX Runtime quantizes none of it."""
    import onnxruntime
    from onnx import load_from_string
    from onnxruntime.quantization import QuantType, quantize_dynamic

    from tf_lstm_ops import export

    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("float32.onnx", "int8.onnx")]
        export.onnx(model.keras_model, paths[0])
        kinds = ["LSTM", "MatMul", "Gemm"]  # not Gather, the embedding, which is no product
        quantize_dynamic(*paths, kinds, per_channel=True, weight_type=QuantType.QInt8)
        content = paths[1].read_bytes()
    nodes = load_from_string(content).graph.node
    if not any(part in node.op_type for node in nodes for part in ("Quantize", "Integer")):
        return None
    run = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return run.run(None, {run.get_inputs()[0].name: model.x})[0]


def by_openvino(model: Model) -> Array | None:
    """The output in bfloat16; None if OpenVINO is not installed."""
    if importlib.util.find_spec("openvino") is None:
        return None
    import openvino

    from tf_lstm_ops import export

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        export.onnx(model.keras_model, path)
        settings = {"INFERENCE_PRECISION_HINT": "bf16"}
        compiled = openvino.Core().compile_model(path, "CPU", settings)
        return compiled(model.x)[0]


def outputs(model: Model, weights: Sequence[str]) -> tuple[Array, dict[str, Array]]:
    """The output in float32, and those of sessions of other types, by what `repr` says of them."""
    from tf_lstm_ops.inference import weight_types

    sessions = [model.session(weights=name) for name in weights]
    found = {weight_types.summary(each.weights): each(model.x) for each in sessions}
    if (other := by_onnx_runtime(model)) is not None:
        found["ONNX Runtime, int8"] = other
    if (other := by_openvino(model)) is not None:
        found["OpenVINO, bfloat16"] = other
    return model.session()(model.x), found


def bits_per_byte(logits: Array, text: Array) -> float:
    """The mean cross-entropy of logits [T, 256]."""
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    chosen = shifted[np.arange(len(text)), text] - np.log(np.exp(shifted).sum(-1))
    return float(-chosen.mean() / np.log(2))


def table(heads: str, rows: Iterable[list[str]]) -> None:
    """Prints a table whose first two columns are texts."""
    print(f"\n| {heads} |\n|---|---|{'---:|' * (heads.count('|') - 1)}")
    print("\n".join(f"| {' | '.join(row)} |" for row in rows), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", metavar="FILE", type=Path, help="a .keras file, kept or loaded")
    parser.add_argument("--weights", default="bfloat16,int8", help="types; default: %(default)s")
    arguments = parser.parse_args()
    last, text = language_model(arguments.model)
    found = {m.name: outputs(m, arguments.weights.split(",")) for m in (demo(), *rtneural(), last)}
    heads = "weights | largest | mean | relative norm | equal argmax"
    pairs = [(n, k, y, exact) for n, (exact, ys) in found.items() for k, y in ys.items()]
    table(f"model | {heads}", ([n, k, *errors(y, exact)] for n, k, y, exact in pairs))
    exact, others = found[last.name]
    ranges = [(f"{a:,} to {b:,}", slice(a, b)) for a, b in RANGES]
    of_steps = ([s, k, *errors(y[:, r], exact[:, r])] for s, r in ranges for k, y in others.items())
    table(f"steps of the language model | {heads}", of_steps)
    bits = {k: bits_per_byte(y[0], text) for k, y in {"float32": exact, **others}.items()}
    table("model | weights | bits per byte", ([last.name, k, f"{b:.4f}"] for k, b in bits.items()))


if __name__ == "__main__":
    main()
