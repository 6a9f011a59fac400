"""What runs each command line of the documentation, for test_commands.py."""

from typing import NamedTuple


class Run(NamedTuple):
    """test_commands runs it, with `new` in place of `old`; of pytest it collects the tests only."""

    old: str = ""
    new: str = ""


class RunOnPage(NamedTuple):
    """test_commands_that_read_files_of_the_examples runs it, after the examples of the page."""


class By(NamedTuple):
    """A file has it, or a function of the file runs it; the words stand in both."""

    file: str
    function: str
    words: tuple[str, ...]


class Not(NamedTuple):
    """It is not run."""

    reason: str


TESTS = ".venv/bin/pytest"
SERVE = "saved_model_cli run --dir portable --tag_set serve --signature_def serving_default"
DEMO = "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/tf-lstm-ops demo"
ASAN = ("ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1", "python -m tests.fuzz")
NATIVE = "python3 build_defs/native.py"
SANITIZE = f"{NATIVE} build --sanitize address,undefined"
PRELOAD = 'LD_PRELOAD="$(c++ -print-file-name=libasan.so) $(c++ -print-file-name=libstdc++.so.6)"'
LIBRARY = "TF_LSTM_OPS_LIBRARY=$PWD/.build/address_undefined/tf_lstm_ops.so"
CUDA, STREAM = "TF_LSTM_OPS_CUDA_LIBRARY", "TF_LSTM_OPS_CUDA_STREAM_LIBRARY"
METAL, PLUGIN = "TF_LSTM_OPS_METAL_LIBRARY", "TF_LSTM_OPS_TEST_PLUGIN"
WHEEL = "tf_lstm_ops-0.1.0-py3-none-manylinux_2_28_x86_64.whl"
NIGHTLY, COMMUNITY = ".ci/nightly", "tests/build/test_community.py"
GUIDE = "tests/session/test_guide.py"
FOLDERS = "from tf_lstm_ops import inference; print(inference"
STEP = By(GUIDE, "run_commands", ())
CMAKE = By("tests/build/test_session_cmake.py", "test_builds_and_installs_the_library", ("cmake",))
TUTORIAL = By("tests/docs/test_tutorial.py", "test_commands_of_the_tutorial", ())
FRAMEWORKS = By("tests/docs/test_other_frameworks.py", "test_a_program_in_c", ())
C_API_OP = By("tests/build/test_c_api_op.py", "test_commands_of_the_page", ())
INSTALLS = By("tests/docs/test_installs.py", "test_commands_in_a_bare_environment", ())
C_API_COMPILER = By("tests/build/test_c_api_op.py", "test_the_command_of_the_compiler", ())
IMPORT = "import tensorflow as tf"

COMMANDS: dict[str, Run | RunOnPage | By | Not] = {
    # README.md, CONTRIBUTING.md
    DEMO: By("tests/cli/test_demo.py", "test_full_run", ("demo",)),
    f"python3 -m venv .venv && .venv/bin/pip install '.[test]' && {TESTS}": By(
        COMMUNITY, "test_ci_runs_the_command_of_the_readme", ("python3 -m venv ",)
    ),
    "python3 -m venv .venv": By(NIGHTLY, "prepare", ("python3 -m venv .venv",)),
    ".venv/bin/pip install --editable '.[test]' -r .ci/requirements.txt": By(
        NIGHTLY, "prepare", (".venv/bin/pip install", "--editable '.[test]'")
    ),
    ".venv/bin/pre-commit install": Not("changes the hooks of the clone"),
    TESTS: By(COMMUNITY, "test_ci_runs_the_command_of_the_readme", ("venv/bin/pytest",)),
    f"{TESTS} -m full": By(NIGHTLY, "full", (".venv/bin/pytest -m", "full")),
    f"{TESTS} tests/block_cell": Run(),
    f"{TESTS} -m slow tests/core": Run(),
    f"{TESTS} -n 0 tests/keras/test_masks.py::test_every_mask_of_one_sequence": Run(),
    f"{NATIVE} build && {TESTS} -n 0 tests/block_cell/test_forward.py": Run(
        "native.py build",
        "native.py >/dev/null",  # which does not compile
    ),
    # docs/testing.md
    "sphinx-build -W --keep-going docs .build/site": By(
        "tests/site/conftest.py", "site", ("-W", "--keep-going", "docs")
    ),
    "python -m tests.fuzz --calls 10000 --seed 0": Run("10000", "10"),
    "python -m tests.fuzz.files --calls 10000 --seed 0": Run("10000", "10"),
    "python -m tests.fuzz.sessions --calls 10000 --seed 0": Run("10000", "10"),
    "python -m tests.fuzz.models --calls 10000 --seed 0": By(
        NIGHTLY, "files", ("python -m tests.fuzz.models",)
    ),
    SANITIZE: By(NIGHTLY, "build_sanitized", (SANITIZE,)),
    f"export {LIBRARY}": By(NIGHTLY, "sanitized", tuple(LIBRARY.split("$PWD/"))),
    f"export {PRELOAD}": By(NIGHTLY, "sanitized", (PRELOAD,)),
    f"{ASAN[0]} python -m tests.fuzz --calls 1000000": By(NIGHTLY, "", ASAN),
    "python tests/metal/build.py /tmp/metal": Not("needs the packages that .ci/metal installs"),
    f"export {METAL}=/tmp/metal/tf_lstm_ops_metal.so": By(
        "tests/metal/test_suites.py", "environment", (METAL,)
    ),
    f"{PLUGIN}=/tmp/metal/apple.so pytest -n 0 tests/mpsgraph": By(
        "tests/metal/build.py", "", ("apple.so",)
    ),
    "python tests/cuda/build.py /tmp/cuda": Not("needs the packages that .ci/cuda installs"),
    f"export LD_LIBRARY_PATH=/tmp/cuda {CUDA}=/tmp/cuda/tf_lstm_ops_cuda.so": By(
        "tests/cuda/build.py", "", ("LD_LIBRARY_PATH", CUDA)
    ),
    f"export {STREAM}=/tmp/cuda/stream.so FAKE_PROGRAMS=/tmp/cuda/programs": By(
        "tests/cuda/build.py", "", (STREAM, "stream.so", "FAKE_PROGRAMS", "programs")
    ),
    f"{PLUGIN}=/tmp/cuda/host_address.so pytest -n 0 tests/block_cell": By(
        "tests/cuda/build.py", "", (PLUGIN, "host_address")
    ),
    # docs/reference
    (
        "apt install g++ g++-aarch64-linux-gnu lld-19 qemu-user-static"
        " g++-mingw-w64-x86-64-posix wine"
    ): By(COMMUNITY, "test_a_release_installs_the_packages_that_its_page_names", ("apt install",)),
    "scripts/release/build dist": By(
        ".github/workflows/release.yml", "", ("scripts/release/build dist",)
    ),
    # docs/guide
    "python3 -m venv .venv && . .venv/bin/activate": By(NIGHTLY, "prepare", ("python3 -m venv",)),
    "pip install .": By("README.md", "", ("pip install .",)),
    f"pip install './{WHEEL}[tensorflow]'": By(
        "tests/build/test_release_install.py", "test_an_extra_brings_tensorflow", ("tensorflow",)
    ),
    'cc -std=c11 stream.c -I"$INCLUDE" -L"$LIB" -Wl,-rpath,"$LIB" -ltf_lstm_ops_inference -lm '
    "-o stream": FRAMEWORKS,
    "./stream net.session 1 1000": FRAMEWORKS,
    "pip install '.[test]'": INSTALLS,
    "pip install 'setuptools>=77'": INSTALLS,
    "pip install --no-build-isolation '.[test]'": C_API_OP,
    "cp -r examples/c_api_op ../my_op && cd ../my_op && python3 -m venv .venv": INSTALLS,
    ".venv/bin/pip install '.[test]' && .venv/bin/pytest": INSTALLS,
    "pytest": C_API_OP,
    "TF_LSTM_OPS_SESSIONS_ONLY=1 pip install .": INSTALLS,
    "pip install --no-deps . && pip install numpy keras torch": INSTALLS,
    f'python -c "{IMPORT}; print(*tf.sysconfig.get_link_flags())" > link_flags': C_API_COMPILER,
    f"python -c \"{IMPORT}; print('-isystem', tf.sysconfig.get_include())\" > headers": (
        C_API_COMPILER
    ),
    "c++ -std=c++17 -O2 -shared -fPIC @headers src/*.cc -Wl,--no-as-needed @link_flags "
    "-o libclip_rows.so": C_API_COMPILER,
    f'INCLUDE=$(python -c "{FOLDERS}.get_include())")': STEP,
    f'LIB=$(python -c "{FOLDERS}.get_library_dir())")': STEP,
    'cc -std=c11 -O2 -Wall -Wextra -pedantic step.c -I"$INCLUDE" -L"$LIB" -Wl,-rpath,"$LIB" '
    "-ltf_lstm_ops_inference -o step": STEP,
    "./step": STEP,
    "pip install '.[bench]' && python benchmarks/peers": By(
        "tests/bench/test_command.py", "run", ("benchmarks", "peers")
    ),
    "tf-lstm-ops run train.py": By(
        "tests/docs/test_readme.py", "test_a_program_of_keras_is_run", ("run", "train.py")
    ),
    "KERAS_BACKEND=torch tf-lstm-ops run train.py": By(
        "tests/torch_backend/test_in_own_process.py", "test_command_accelerates", ("run",)
    ),
    "tf-lstm-ops run train.py --epochs 10": By(
        "tests/cli/test_run.py", "test_a_program_sees_what_it_sees_in_python", ("run",)
    ),
    "tf-lstm-ops run -m package.train --epochs 10": By(
        "tests/cli/test_run.py", "test_a_program_sees_what_it_sees_in_python", ("-m",)
    ),
    "tf-lstm-ops doctor model.keras --batch 32 --steps 100": By(
        "tests/docs/test_commands.py", "test_doctor_prints_what_is_shown", ("doctor",)
    ),
    f"{SERVE} --inputs keras_tensor=sequences.npy --outdir predictions": RunOnPage(),
    "python -m tf2onnx.convert --saved-model portable --output model.onnx": RunOnPage(),
    # docs/api/c.md
    "cmake -S cc/session -B .build/session": CMAKE,
    "cmake --build .build/session --parallel": CMAKE,
    "cmake --install .build/session --prefix installed": CMAKE,
    "tf-lstm-ops doctor speakers.keras --batch 27 --steps 29": TUTORIAL,
    "INCLUDE=$(tf-lstm-ops info --include-dir)": TUTORIAL,
    "LIB=$(tf-lstm-ops info --library-dir)": TUTORIAL,
    'cc -std=c11 speaker.c -I"$INCLUDE" -L"$LIB" -Wl,-rpath,"$LIB" -ltf_lstm_ops_inference '
    "-o speaker": TUTORIAL,
    "./speaker < recording.txt": TUTORIAL,
    "tf-lstm-ops selftest --device GPU": Not("needs a GPU; tests/devices/gate.py emulates one"),
}

TEXTS = {  # by page and language; for each block what compares it
    ("docs/guide/tensorflow_op.md", "cpp"): [
        *[By("tests/build/test_c_api_op.py", "test_page_shows_the_files", ())] * 2
    ],
    ("docs/guide/tutorial.md", "c"): [TUTORIAL],
    ("docs/guide/serve_one_step.md", "c"): [
        By(GUIDE, "test_the_c_program_prints_the_outputs_of_python", ())
    ],
    ("docs/guide/serve_one_step.md", "text"): [
        By(GUIDE, "test_the_c_program_prints_the_error_of_the_page", ())
    ],
    ("docs/guide/small_weights.md", "text"): [
        By("tests/docs/test_small_weights_page.py", "test_the_comparison_is_printed_as_shown", ())
    ],
    ("docs/guide/keras.md", "text"): [
        By("tests/docs/test_commands.py", "test_doctor_prints_what_is_shown", ())
    ],
    ("docs/guide/tutorial.md", "text"): [
        By("tests/docs/test_tutorial.py", "test_commands_of_the_tutorial", ())
    ],
    ("CONTRIBUTING.md", "text"): [By("tests/docs/test_commands.py", "test_folders_exist", ())],
}
