"""Finds speech with Silero VAD: weights of the installed package, no PyTorch, no ONNX Runtime.

The package and a library that reads its file:

    pip install --no-deps silero-vad
    pip install onnx

The times of speech in a WAV file of 16 kHz, or in synthetic speech:

    python silero_vad.py speech.wav
    python silero_vad.py

A file for `Session.load` and for silero_vad.c:

    python silero_vad.py --save silero_vad.session

The time of a chunk of 32 ms with one thread, beside ONNX Runtime and, if PyTorch is installed, the
package's TorchScript model:

    python silero_vad.py --benchmark
"""

import argparse
import importlib.util
import time
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tf_lstm_ops.inference import Session, layers
from tf_lstm_ops.weights import LSTMWeights

Array = npt.NDArray[Any]

RATE = 16000
CONTEXT, CHUNK = 64, 512  # samples; a chunk follows the last samples of the chunk before it


def main() -> None:
    arguments = parse_arguments()
    session = make_session(read_weights(folder() / "silero_vad.onnx"))
    if arguments.save:
        session.save(arguments.save)
    elif arguments.benchmark:
        benchmark(session)
    else:
        audio = read_wave(arguments.audio) if arguments.audio else synthetic_speech(20)
        for begin, end in segments(probabilities(session, audio)):
            print(f"{begin:.2f} s to {end:.2f} s")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("audio", nargs="?", help="a WAV file of 16 kHz; default: synthetic speech")
    parser.add_argument("--save", metavar="FILE", help="write the session and end")
    parser.add_argument("--benchmark", action="store_true", help="measure and end")
    return parser.parse_args()


def folder() -> Path:
    """The models in the package, which is not imported: it would import PyTorch."""
    spec = importlib.util.find_spec("silero_vad")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("silero-vad is not installed: pip install --no-deps silero-vad")
    return Path(spec.submodule_search_locations[0]) / "data"


def read_weights(path: Path) -> dict[str, Array]:
    """The arrays of the model for 16 kHz, by the names of the package's modules."""
    import onnx

    for arrays in _branches(onnx.load(path).graph):
        basis = arrays.get("stft.forward_basis_buffer")
        if basis is not None and basis.shape[2] == 256:  # that for 8 kHz has 128 samples
            return arrays
    raise SystemExit(f"{path} is not a model of this version: it has no model for 16 kHz")


def _branches(graph: Any) -> Iterator[dict[str, Array]]:
    """The constants of a graph of ONNX and of the branches in it."""
    from onnx import numpy_helper

    arrays = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _branches(attribute.g)
            elif attribute.HasField("t"):
                arrays[node.output[0]] = attribute.t
    yield {
        name.split("__")[-1].replace("reparam_conv.", ""): numpy_helper.to_array(tensor)
        for name, tensor in arrays.items()
    }


def make_session(weights: dict[str, Array], threads: int = 1) -> Session:
    """The model for 16 kHz: [B, chunks, 576] samples to [B, chunks, 1] probabilities."""

    def convolution(name: str, **options: Any) -> Any:
        kernel = weights[f"{name}.weight"].transpose(2, 1, 0)
        return layers.Conv1D(kernel, weights[f"{name}.bias"], **options)

    def encoder(k: int, strides: int) -> list[Any]:
        options = {"strides": strides, "activation": "relu"}
        return [layers.ZeroPadding1D(1), convolution(f"encoder.{k}", **options)]

    spectrum = weights["stft.forward_basis_buffer"].transpose(2, 1, 0)
    chunk = [
        layers.Reshape((CONTEXT + CHUNK, 1)),
        layers.ReflectPadding1D((0, 64)),
        layers.Conv1D(spectrum, strides=128),
        layers.Magnitude(),
        *(layer for k, strides in enumerate((1, 2, 2, 1)) for layer in encoder(k, strides)),
        layers.Flatten(),
    ]
    lstm = LSTMWeights.from_torch(
        {name: array for name, array in weights.items() if name.startswith("decoder.rnn.")},
        prefix="decoder.rnn.",
    )
    return Session.from_layers(
        [
            layers.Input((None, CONTEXT + CHUNK)),
            layers.TimeDistributed(chunk),
            layers.LSTM(lstm, return_sequences=True),
            layers.Activation("relu"),
            layers.Dense(
                weights["decoder.decoder.2.weight"][:, :, 0].T,
                weights["decoder.decoder.2.bias"],
                "sigmoid",
            ),
        ],
        threads=threads,
    )


def read_wave(path: str) -> Array:
    """The first channel of a WAV file of 16 bits."""
    with wave.open(path) as file:
        if (file.getframerate(), file.getsampwidth()) != (RATE, 2):
            raise SystemExit(f"{path} must have {RATE} samples a second of 16 bits")
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return samples[:: file.getnchannels()].astype(np.float32) / 32768


def synthetic_speech(seconds: int, seed: int = 0) -> Array:
    """Vowels with pauses between them: harmonics, louder near three formants, and noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(seconds * RATE) / RATE

    def track(values: Any, step: float) -> Array:
        return np.interp(t, np.arange(len(values)) * step, values)

    vowels = np.array([[730, 1090, 2440], [270, 2290, 3010], [300, 870, 2240], [530, 1840, 2480]])
    syllables = seconds * 5 + 1  # one in 0.2 s
    formants = vowels[rng.integers(0, len(vowels), syllables)].T
    pitch = track(120 * np.exp(0.12 * rng.standard_normal(syllables)), 0.2)
    loudness = track(np.resize([0.02, 0.1], 2 * syllables), 0.1)
    loudness *= track(rng.integers(0, 2, seconds + 1), 1.0)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    tracks = [track(formant, 0.2) for formant in formants]
    y = 0.002 * rng.standard_normal(len(t))
    for k in range(1, 40):
        gains = [(1, 60), (0.6, 90), (0.3, 120)]
        gain = sum(
            loud / (1 + ((k * pitch - formant) / width) ** 2)
            for formant, (loud, width) in zip(tracks, gains, strict=True)
        )
        y += loudness * gain / np.sqrt(k) * np.sin(k * phase)
    return y.astype(np.float32)


def chunks(audio: Array) -> Array:
    """The input [chunks, 576] of whole audio, whose last chunk is filled with zeros."""
    new = np.pad(audio, (0, -len(audio) % CHUNK)).reshape(-1, CHUNK).astype(np.float32)
    before = np.concatenate([np.zeros((1, CONTEXT), np.float32), new[:-1, -CONTEXT:]])
    return np.concatenate([before, new], axis=1)


def probabilities(session: Session, audio: Array) -> Array:
    """The probability of speech in each chunk, computed one by one as they come in."""
    stream = session.stream()
    out = np.empty((1, 1), np.float32)
    return np.array([stream(chunk[np.newaxis], out=out)[0, 0] for chunk in chunks(audio)])


def segments(
    speech: Array, threshold: float = 0.5, pause: float = 0.3
) -> list[tuple[float, float]]:
    """The begin and end in seconds of speech; shorter pauses belong to it."""
    found: list[tuple[float, float]] = []
    for k in np.flatnonzero(speech > threshold):
        begin, end = k * CHUNK / RATE, (k + 1) * CHUNK / RATE
        if found and begin - found[-1][1] < pause:
            begin = found.pop()[0]
        found.append((float(begin), float(end)))
    return found


def onnx_runtime(path: Path) -> Callable[[Array], Array]:
    """A function of audio that computes the package's model chunk by chunk with one thread."""
    model = _onnx_session(path)

    def run(audio: Array) -> Array:
        state, rate = np.zeros((2, 1, 128), np.float32), np.array(RATE)
        speech = []
        for chunk in chunks(audio):
            inputs = {"input": chunk[np.newaxis], "state": state, "sr": rate}
            output, state = model.run(None, inputs)
            speech.append(output[0, 0])
        return np.array(speech)

    return run


def onnx_runtime_of_sequences(path: Path) -> Callable[[Array], Array]:
    """Likewise the package's model of 512 chunks in a call."""
    model = _onnx_session(path)

    def run(audio: Array) -> Array:
        x, h, c = chunks(audio), *np.zeros((2, 1, 1, 128), np.float32)
        speech = []
        for first in range(0, len(x), 512):
            inputs = {"input": x[first : first + 512], "h": h, "c": c}
            output, h, c = model.run(["speech_probs", "hn", "cn"], inputs)
            speech.append(output.reshape(-1))
        return np.concatenate(speech)

    return run


def _onnx_session(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def torch_script(path: Path) -> Callable[[Array], Array]:
    """Likewise the package's TorchScript model."""
    import torch

    torch.set_num_threads(1)
    model = torch.jit.load(path)

    def run(audio: Array) -> Array:
        model.reset_states()
        pieces = chunks(audio)[:, CONTEXT:]  # it keeps the context
        with torch.no_grad():
            return np.array([model(torch.from_numpy(piece), RATE).item() for piece in pieces])

    return run


def benchmark(session: Session) -> None:
    """Prints the time of a chunk, one by one, and of an hour of audio with few calls."""
    audio = synthetic_speech(60)
    models: dict[str, Callable[[Array], Array]] = {
        "session": lambda audio: probabilities(session, audio),
        "ONNX Runtime": onnx_runtime(folder() / "silero_vad.onnx"),
    }
    if importlib.util.find_spec("torch"):
        models["TorchScript"] = torch_script(folder() / "silero_vad.jit")
    for name, model in models.items():
        elapsed = least_time(model, audio)
        print(f"a chunk, {name}: {elapsed / len(chunks(audio)) * 1e6:.1f} us")
    models = {
        "session, one call": lambda audio: session.stream()(chunks(audio)[np.newaxis]),
        "ONNX Runtime, a call for each chunk": models["ONNX Runtime"],
    }
    sequence = folder() / "silero_vad_16k_sequence.onnx"
    if sequence.exists():
        models["ONNX Runtime, 512 chunks in a call"] = onnx_runtime_of_sequences(sequence)
    for name, model in models.items():
        print(f"an hour, {name}: {least_time(model, np.tile(audio, 60), 2):.2f} s")


def least_time(model: Callable[[Array], Array], audio: Array, repeats: int = 5) -> float:
    """In seconds."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        model(audio)
        times.append(time.perf_counter() - begin)
    return min(times)


if __name__ == "__main__":
    main()
