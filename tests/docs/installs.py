"""The commands of README, guides and examples that install something, for test_installs.py."""

from typing import NamedTuple


class Chain(NamedTuple):
    """What a reader types in one folder, without anything installed before.

    Attributes:
      commands: lines, in order.
      folder: where, in a copy of the repository.
      is_in_environment: they run in an active new environment, which the page assumes.
    """

    commands: tuple[str, ...]
    folder: str = "."
    is_in_environment: bool = True


NEW = "python3 -m venv .venv && . .venv/bin/activate"
ALL = "pip install ."
SESSIONS_ONLY = "TF_LSTM_OPS_SESSIONS_ONLY=1 pip install ."
OP = (
    *(NEW, "pip install '.[test]'", "pytest"),
    *("pip install 'setuptools>=77'", "pip install --no-build-isolation '.[test]'"),
)
CHAINS = {
    "readme": Chain(
        (
            "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/tf-lstm-ops demo",
            "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/pytest",
        ),
        is_in_environment=False,
    ),
    "op": Chain(
        (
            "cp -r examples/c_api_op ../my_op && cd ../my_op && python3 -m venv .venv",
            ".venv/bin/pip install '.[test]' && .venv/bin/pytest",
        ),
        is_in_environment=False,
    ),
    "sessions": Chain((SESSIONS_ONLY,)),
    "op of the guide": Chain(
        (*OP, "pip wheel --no-build-isolation --no-deps ."), "examples/c_api_op", False
    ),
    "guides": Chain((NEW, ALL, "pip install '.[onnx]'"), is_in_environment=False),
    "packages": Chain(
        (
            SESSIONS_ONLY,
            *("pip install onnx onnxruntime", "pip install onnxruntime"),
            *("pip install onnx onnxruntime tf2onnx", "pip install ai-edge-litert"),
            *("pip install safetensors", "pip install onnx onnxscript onnxruntime"),
        )
    ),
    "benchmarks": Chain(("pip install '.[bench]' && python benchmarks/peers",)),
    "keras on pytorch": Chain(("pip install --no-deps . && pip install numpy keras torch",)),
    "notebooks": Chain(("pip install jupyterlab matplotlib",)),
    "silero_vad": Chain(
        (
            *("pip install --no-deps silero-vad", "pip install onnx"),
            "python silero_vad.py speech.wav",
        ),
        "examples",
    ),
}
# Not run here, and why.
OTHERS = {
    "pip install './tf_lstm_ops-0.1.0-py3-none-manylinux_2_28_x86_64.whl[tensorflow]'": (
        "build/test_release_install.py installs the wheel with this extra"
    ),
    "pip install 'tensorflow[and-cuda]'": "gigabytes for a GPU",
    "pip install tensorflow-metal": "for macOS",
    "pip install tensorflow-metal-plugin": "for macOS",
}
# What would take too long after the installation, and in a chain what the page assumes before.
INSTEAD = {
    "tf-lstm-ops demo": "tf-lstm-ops info",
    ".[test]' && .venv/bin/pytest": (
        ".[test]' && if [ -d src ]; then .venv/bin/pytest; "
        "else .venv/bin/pytest -n 0 tests/package/test_import.py; fi"
    ),
    # PyTorch's stock build is gigabytes.
    "pip install numpy keras torch": (
        "pip install numpy keras && python -c 'import tf_lstm_ops.inference'"
    ),
    "python benchmarks/peers": "python benchmarks/peers --help",
    "pip install --no-deps silero-vad": (
        "TF_LSTM_OPS_SESSIONS_ONLY=1 pip install .. && pip install --no-deps silero-vad"
    ),
    "python silero_vad.py speech.wav": (
        "python -c \"import wave; f = wave.open('speech.wav', 'wb'); f.setnchannels(1); "
        'f.setsampwidth(2); f.setframerate(16000); f.writeframes(bytes(64000))"\n'
        "python silero_vad.py speech.wav"
    ),
}
