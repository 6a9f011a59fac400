"""Silero VAD for 16 kHz: its equations in NumPy, and examples/silero_vad.py and silero_vad.c."""

import importlib.util
import os
import runpy
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tf_lstm_ops import inference
from zoo import reference

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "silero_vad.py"
STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror"]

Array = np.ndarray


def load_example() -> Any:
    """The example as a module. Its name is not that of the package."""
    spec = importlib.util.spec_from_file_location("silero_vad_example", EXAMPLE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def random_weights(rng: np.random.Generator) -> dict[str, Array]:
    """Arrays with the names and shapes of the package's."""
    shapes = {
        "stft.forward_basis_buffer": (258, 1, 256),
        **{
            f"encoder.{k}.weight": shape
            for k, shape in enumerate([(128, 129, 3), (64, 128, 3), (64, 64, 3), (128, 64, 3)])
        },
        **{f"encoder.{k}.bias": (units,) for k, units in enumerate([128, 64, 64, 128])},
        **{f"decoder.rnn.weight_{which}": (512, 128) for which in ("ih", "hh")},
        **{f"decoder.rnn.bias_{which}": (512,) for which in ("ih", "hh")},
        **{"decoder.decoder.2.weight": (1, 128, 1), "decoder.decoder.2.bias": (1,)},
    }
    return {
        name: (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        for name, shape in shapes.items()
    }


def convolution(x: Array, kernel: Array, stride: int, bias: Any = 0.0) -> Array:
    """[N, T, C] to [N, T', U], with a kernel [U, C, k] and without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[2], axis=1)[:, ::stride]
    return np.einsum("ntck,uck->ntu", windows, kernel, optimize=True) + bias


def probabilities(weights: dict[str, Array], audio: Array) -> Array:
    """Of each chunk of 512 samples, in float64. The last 64 samples before it belong to it."""
    w = {name: array.astype(np.float64) for name, array in weights.items()}
    audio = np.concatenate([np.zeros(64), audio, np.zeros(-len(audio) % 512)])
    chunks = np.lib.stride_tricks.sliding_window_view(audio, 576)[::512]
    x = np.pad(chunks, [(0, 0), (0, 64)], mode="reflect")[..., np.newaxis]
    real, imaginary = np.split(convolution(x, w["stft.forward_basis_buffer"], 128), 2, axis=-1)
    x = np.hypot(real, imaginary)
    for k, stride in enumerate((1, 2, 2, 1)):
        x = np.pad(x, [(0, 0), (1, 1), (0, 0)])
        x = convolution(x, w[f"encoder.{k}.weight"], stride, w[f"encoder.{k}.bias"]).clip(0)
    assert x.shape[1] == 1
    kernel, recurrent = w["decoder.rnn.weight_ih"].T, w["decoder.rnn.weight_hh"].T
    bias = w["decoder.rnn.bias_ih"] + w["decoder.rnn.bias_hh"]
    h = reference.lstm(x.swapaxes(0, 1), kernel, recurrent, bias)[0].clip(0)
    kernel = w["decoder.decoder.2.weight"][0]
    return reference.sigmoid(h @ kernel + w["decoder.decoder.2.bias"])[:, 0]


def build_program(language: str, folder: Path) -> Path:
    """Compiles examples/silero_vad.c."""
    native = runpy.run_path(str(ROOT / "build_defs" / "native.py"))
    try:
        compiler = native["compiler"]()
    except native["BuildError"] as error:
        pytest.skip(str(error))
    library = Path(inference.get_library_dir()) / "libtf_lstm_ops_inference.so"
    source = ["-x", {"c11": "c", "c++17": "c++"}[language], f"-std={language}", *STRICT]
    command = [*compiler, *source, str(EXAMPLE.with_suffix(".c")), "-x", "none", str(library)]
    command += ["-I", inference.get_include(), f"-Wl,-rpath,{library.parent}"]
    program = folder / "silero_vad"
    done = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def run_program(program: Path, session: Any, audio: Array, folder: Path) -> tuple[Array, str]:
    """The probabilities that examples/silero_vad.c prints, and the line with the time."""
    session.save(folder / "silero_vad.session")
    audio.astype("<f4").tofile(folder / "audio.f32")
    command = [program, folder / "silero_vad.session", folder / "audio.f32"]
    done = subprocess.run([*map(os.fspath, command)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return np.array(done.stdout.split(), np.float64), done.stderr
