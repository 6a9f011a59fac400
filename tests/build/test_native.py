"""What setup.py compiles, and how it fails."""

import collections
import fnmatch
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

LEVELS = {
    "x86_64": ["x86_64_v2", "x86_64_v3", "x86_64_v4", "x86_64_v4_bf16", "x86_64_v4_amx"],
    "arm64": ["baseline", "armv8_bf16"],
    "aarch64": ["baseline", "armv8_bf16"],
}


def level(object_name):
    """The place of an object's instruction set in ascending order, 0 without one."""
    return next((k for k, n in enumerate(LEVELS["x86_64"], 1) if f"_{n}.o" in object_name), 0)


def cc_files(root):
    """Every C++ source but CUDA's and Windows', found by another method than a glob."""
    for folder, _, names in os.walk(root / "cc"):
        for name in names:
            source = os.path.relpath(os.path.join(folder, name), root)
            is_other = {"cuda", "windows"} & {*Path(source).parts} or name.endswith("_cuda.cc")
            if name.endswith((".cc", ".cpp", ".cxx")) and not is_other:
                yield source


@pytest.mark.parametrize("machine", LEVELS)
def test_every_source_is_compiled_once_or_once_per_instruction_set(native, root, machine):
    compiled = collections.defaultdict(list)
    units = [*native.units(machine), *native.inference_units(machine)]
    for unit in {unit.object: unit for unit in units}.values():
        [level] = [f.partition("=")[2] for f in unit.flags if "_SIMD=" in f] or [None]
        compiled[unit.source].append(level)
    expected = {
        source: LEVELS[machine] if source.startswith("cc/backends/cpu/simd/") else [None]
        for source in cc_files(root)
    }
    assert compiled == expected
    assert [None] in expected.values() and LEVELS[machine] in expected.values()


def test_cuda_library_has_its_backend_whole_and_no_other(native, root):
    sources = {unit.source for unit in native.cuda_units("x86_64")}
    backend = {p.relative_to(root).as_posix() for p in root.glob("cc/backends/cuda/**/*.cc")}
    kernels = {p.relative_to(root).as_posix() for p in root.glob("cc/dialects/**/*_cuda.cc")}
    assert backend | kernels <= sources
    assert not [s for s in sources if "/backends/" in s and s not in backend]
    assert not [s for s in sources if "kernels_" in s and s not in kernels]
    # The stream library is compiled where TensorFlow is.
    assert not [s for s in sources if "stream_library" in s]


def test_inference_library_has_nothing_of_tensorflow(native):
    sources = {unit.source for unit in native.inference_units("x86_64")}
    folders = {source.rpartition("/")[0] for source in sources}
    backend = {f for f in folders if f.startswith("cc/backends/")}
    assert folders - backend == {
        *("cc/session", "cc/session/layers", "cc/core", "cc/training", "cc/dialects/keras")
    }
    assert {s for s in sources if s.startswith("cc/dialects")} == {"cc/dialects/keras/ops.cc"}
    assert {"/".join(f.split("/")[:3]) for f in backend} == {"cc/backends/cpu"}
    # The others include core/status.h, which needs string streams; sessions only do not.
    core = {s.removeprefix("cc/core/") for s in sources if s.startswith("cc/core/")}
    assert core == {"keras_layer.cc", "packed_sequence.cc", "shape.cc", "signature.cc"}
    assert {"cc/core/shape.cc", "cc/core/signature.cc"} <= {*native.FLAGS["SESSIONS_ONLY_LEFT_OUT"]}


@pytest.mark.parametrize("machine", LEVELS)
def test_libraries_share_objects(native, machine):
    """An object has one source and one command, so that one compilation serves all libraries."""
    libraries = [f(machine) for f in (native.units, native.cuda_units, native.metal_units)]
    inference, by_object = native.inference_units(machine), {}
    for units in [*libraries, inference]:
        assert len({unit.object for unit in units}) == len(units)
        for unit in units:
            assert by_object.setdefault(unit.object, unit) == unit
    sources = [{unit.source for unit in units} for units in libraries]
    shared = set.intersection(*sources)
    assert shared == set(native._glob(native.FLAGS["GPU_SHARED_SOURCES"])) != set()
    own = {unit.source for unit in inference} - sources[0]
    assert own == set(native._glob(native.FLAGS["SESSION_SOURCES"])) != set()


def test_long_compilations_come_first(native):
    """Else one processor would compile the last long one while the others wait."""
    units = native._longest_first([*native.units("x86_64"), *native.cuda_units("x86_64")])
    levels = [level(unit.object) for unit in units]
    assert levels == sorted(levels, reverse=True) and levels[0] == len(LEVELS["x86_64"])
    sizes = [
        os.path.getsize(native.ROOT / u.source) for u in units if u.object.count("_simd_") == 0
    ]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("library", ["tf_lstm_ops.so", "libtf_lstm_ops_inference.so"])
def test_instruction_sets_are_linked_last_and_in_ascending_order(native, cxx, tmp_path, library):
    """Otherwise an inline function of a newer one would run on processors that lack it."""
    objects = [unit.object for unit in native.library_units(library, "x86_64")]
    command = native.link_command(objects, tmp_path, tmp_path / library, "Linux")
    linked = [argument for argument in command if argument.endswith(".o")]
    levels = [level(name) for name in linked]
    assert len(linked) == len(objects)
    assert levels == sorted(levels) and set(levels) == {*range(len(LEVELS["x86_64"]) + 1)}


def test_without_a_compiler_the_error_says_what_to_do(native, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(native.BuildError, match=r"no C\+\+ compiler found: install one"):
        native.compiler()


def test_cxx_may_hold_options(native, monkeypatch):
    monkeypatch.setenv("CXX", "ccache 'my compiler' -m64")
    assert native.compiler() == ["ccache", "my compiler", "-m64"]


@pytest.mark.parametrize(
    ("installed", "cxx", "used"),
    [
        (["c++"], None, ["c++"]),
        (["c++", "ccache"], None, ["ccache", "c++"]),
        (["c++", "ccache"], "my-compiler", ["my-compiler"]),
    ],
)
def test_the_checkout_is_built_with_ccache(native, monkeypatch, tmp_path, installed, cxx, used):
    for name in installed:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", cxx or "")
    compilers = []
    monkeypatch.setattr(native, "build", lambda *_: compilers.append(native.compiler()))
    native.build_checkout()
    assert compilers == [used]


def test_a_failing_compiler_fails_the_build_with_its_own_words(native, monkeypatch, tmp_path):
    complains = [sys.executable, "-c", "import sys; sys.exit('the disk is full')"]
    monkeypatch.setenv("CXX", shlex.join(complains))
    output = tmp_path / "library.so"
    with pytest.raises(native.BuildError, match=r"exit status 1.*\nthe disk is full"):
        native.build([output], tmp_path / "objects", jobs=1)
    assert not output.exists()


def test_warnings_are_errors_in_this_projects_own_runs_only(native, monkeypatch, tmp_path):
    unit = native.units("x86_64")[0]
    for value, strict in ((None, False), ("0", False), ("1", True)):
        monkeypatch.delenv("TF_LSTM_OPS_STRICT_BUILD", raising=False)
        if value:
            monkeypatch.setenv("TF_LSTM_OPS_STRICT_BUILD", value)
        assert ("-Werror" in native.compile_command(unit, tmp_path)) == strict


@pytest.mark.parametrize(
    ("wanted", "flags"),
    [
        (None, set()),
        ("thread", {"-fsanitize=thread"}),
        ("address,undefined", {"-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"}),
        ("coverage", {"--coverage"}),
    ],
)
def test_instrumented_builds(native, monkeypatch, tmp_path, wanted, flags):
    """Sanitizers and counters are for the compiler and for the linker, in no other build."""
    monkeypatch.delenv("TF_LSTM_OPS_INSTRUMENT", raising=False)
    plain = [
        set(native.compile_command(native.units("x86_64")[0], tmp_path)),
        set(native.link_command([], tmp_path, tmp_path / "library.so", "Linux")),
    ]
    if wanted:
        monkeypatch.setenv("TF_LSTM_OPS_INSTRUMENT", wanted)
    compiled = set(native.compile_command(native.units("x86_64")[0], tmp_path))
    linked = set(native.link_command([], tmp_path, tmp_path / "library.so", "Linux"))
    assert flags <= compiled - plain[0] and flags <= linked - plain[1]
    assert wanted or [compiled, linked] == plain


@pytest.mark.parametrize("options", [["--sanitize", "address,undefined"], ["--coverage"]])
def test_instrumented_builds_have_their_own_folder(native, monkeypatch, capsys, options):
    monkeypatch.delenv("TF_LSTM_OPS_INSTRUMENT", raising=False)
    monkeypatch.setenv("TF_LSTM_OPS_INSTRUMENT", "")  # restored afterwards
    monkeypatch.setenv("CXX", "c++")
    built = []
    monkeypatch.setattr(native, "build", lambda outputs, folder, jobs: built.append(outputs))
    native.main(["build", *options])
    [[library]] = built
    folder = native.OBJECTS / options[-1].lstrip("-").replace(",", "_")
    assert library == folder / "tf_lstm_ops.so"
    assert capsys.readouterr().out == f"{library}\n"
    with pytest.raises(SystemExit):
        native.main(options)


def test_the_oldest_macos_is_named(native, monkeypatch, tmp_path):
    oldest = "-mmacosx-version-min=13.0"
    monkeypatch.setattr(native.platform, "system", lambda: "Darwin")
    assert oldest in native.compile_command(native.units("arm64")[0], tmp_path)
    for name in native.libraries("Darwin"):
        assert oldest in native.link_command([], tmp_path, tmp_path / name, "Darwin")


def header_functions(root):
    text = (root / "include" / "tf_lstm_ops.h").read_text()
    return {*re.findall(r"^TF_LSTM_OPS_API [\w\s*]+?\b(tf_lstm_ops_\w+)\(", text, re.MULTILINE)}


def test_session_libraries_export_the_functions_of_the_header(native, root):
    """On macOS by patterns, which match no other function of this package."""
    functions = header_functions(root)
    of_layers = {name for name in functions if name.startswith("tf_lstm_ops_layer_")}
    assert {*native.FLAGS["ARCHIVE_FUNCTIONS"]} == functions - of_layers
    assert of_layers
    option = "-Wl,-exported_symbol,_"
    command = native.link_command([], root, root / native.FLAGS["INFERENCE_LIBRARY"], "Darwin")
    patterns = [part.removeprefix(option) for part in command if part.startswith(option)]
    others = set()
    for header in (root / "cc").rglob("*.h"):
        others |= {*re.findall(r"^TF_LSTM_OPS_EXPORT [\w* ]+?(\w+)\(", header.read_text(), re.M)}
    matched = {
        name for name in functions | others for p in patterns if fnmatch.fnmatchcase(name, p)
    }
    assert matched - functions <= {"tf_lstm_ops_selected_instruction_set"}
    assert functions <= matched


@pytest.mark.parametrize("error", [FileNotFoundError, RuntimeError])
def test_without_a_tool_there_is_no_static_library(native, tmp_path, capsys, error):
    """A missing one or an old one. The package is built nevertheless."""

    def fail(command):
        raise error("no such option")

    library = tmp_path / "_lib" / native.FLAGS["INFERENCE_LIBRARY"]
    library.parent.mkdir()
    archive = library.with_name(native.FLAGS["ARCHIVE_LIBRARY"])
    archive.write_text("of an earlier build")
    built = native.C_FILES["build_archive"](
        [tmp_path / "one.o"], library, ["c++"], native.FLAGS, fail
    )
    assert not built and not archive.exists()
    message = capsys.readouterr().err
    assert f"built without {archive.name}" in message and "no such option" in message
    native.C_FILES["write"](library.parent, False)
    assert [path.name for path in (library.parent / "pkgconfig").iterdir()] == [
        "tf_lstm_ops_inference.pc"
    ]


def test_without_the_metal_library_the_package_is_built(native, monkeypatch, tmp_path, capsys):
    outputs = [tmp_path / name for name in native.libraries("Darwin")]

    def build(outputs, *_):
        if any(output.name == "tf_lstm_ops_metal.so" for output in outputs):
            raise native.BuildError("this SDK is too old")

    monkeypatch.setattr(native, "build", build)
    assert native.build_possible(outputs, tmp_path) == outputs[:-1]
    message = capsys.readouterr().err
    assert "built without tf_lstm_ops_metal.so" in message and "this SDK is too old" in message

    def fail(*_):
        raise native.BuildError("no compiler")

    monkeypatch.setattr(native, "build", fail)
    with pytest.raises(native.BuildError, match="no compiler"):
        native.build_possible(outputs, tmp_path)


def test_a_build_for_sessions_only(native, monkeypatch):
    """One library, compiled without the functions for training; in CMake, too."""
    monkeypatch.delenv("TF_LSTM_OPS_SESSIONS_ONLY", raising=False)
    whole = native.inference_units("x86_64")
    assert len(native.libraries("Linux")) == 3 and not native.sessions_only()
    monkeypatch.setenv("TF_LSTM_OPS_SESSIONS_ONLY", "1")
    units = native.inference_units("x86_64")
    for system in ("Linux", "Darwin", "Windows"):
        assert native.libraries(system) == ["libtf_lstm_ops_inference.so"]
    assert all("-DTF_LSTM_OPS_SESSIONS_ONLY" in unit.flags for unit in units)
    left_out = {unit.source for unit in whole} - {unit.source for unit in units}
    assert left_out == set(native.FLAGS["SESSIONS_ONLY_LEFT_OUT"])
    for value in ("0", ""):
        monkeypatch.setenv("TF_LSTM_OPS_SESSIONS_ONLY", value)
        assert native.inference_units("x86_64") == whole
    monkeypatch.setenv("TF_LSTM_OPS_SESSIONS_ONLY", "yes")
    with pytest.raises(native.BuildError, match="must be 0 or 1, but is yes"):
        native.libraries("Linux")
