"""The parts of scripts/release that need no compiler and no network."""

import base64
import hashlib
import importlib.util
import io
import json
import os
import re
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts" / "release"
FILES = {
    "p/b.so": b"\x7fELF",
    "p/a.py": b"a = 1\n",
    "p-1.dist-info/METADATA": b"Name: p\n",
}
EPOCH = 1_700_000_000


@pytest.fixture(autouse=True)
def modules_of_the_scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_same_files_give_the_same_bytes(tmp_path):
    archive = load("archive")
    archive.write(tmp_path / "1.whl", FILES, EPOCH)
    archive.write(tmp_path / "2.whl", dict(reversed(FILES.items())), EPOCH)
    assert (tmp_path / "1.whl").read_bytes() == (tmp_path / "2.whl").read_bytes()
    assert archive.read(tmp_path / "1.whl") == FILES


def test_the_record_lists_every_file(tmp_path):
    load("archive").write(tmp_path / "p.whl", FILES, EPOCH)
    with zipfile.ZipFile(tmp_path / "p.whl") as wheel:
        assert wheel.namelist()[-1] == "p-1.dist-info/RECORD"
        record = wheel.read("p-1.dist-info/RECORD").decode().splitlines()
        assert {info.date_time for info in wheel.infolist()} == {(2023, 11, 14, 22, 13, 20)}
        modes = {info.filename: info.external_attr >> 16 & 0o777 for info in wheel.infolist()}
    assert modes["p/b.so"] == 0o755 and modes["p/a.py"] == 0o644
    assert record[-1] == "p-1.dist-info/RECORD,,"
    for name, data in FILES.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        assert f"{name},sha256={digest},{len(data)}" in record


def test_a_source_distribution_has_the_same_bytes(tmp_path):
    """Whatever the order, the dates and the owners in the file of setuptools are."""
    archive = load("archive")
    for number, names in (("1", ["p/a.py", "p/b.py"]), ("2", ["p/b.py", "p/a.py"])):
        with tarfile.open(tmp_path / f"built{number}.tar.gz", "w:gz") as built:
            for name in names:
                entry = tarfile.TarInfo(name)
                entry.size, entry.mtime, entry.uname = len(name), int(number), number
                built.addfile(entry, io.BytesIO(name.encode()))
        folder = tmp_path / number
        folder.mkdir()
        archive.write_sdist(folder / "p.tar.gz", tmp_path / f"built{number}.tar.gz", EPOCH)
    first, second = ((tmp_path / n / "p.tar.gz").read_bytes() for n in "12")
    assert first == second
    with tarfile.open(tmp_path / "1" / "p.tar.gz") as written:
        assert written.getnames() == ["p/a.py", "p/b.py"]


def test_missing_tools_are_named_with_their_package(monkeypatch):
    targets = load("targets")
    monkeypatch.setenv("PATH", "")
    assert targets.missing_tools([targets.TARGETS["manylinux_2_28_aarch64"]]) == [
        "aarch64-linux-gnu-g++ (apt install g++-aarch64-linux-gnu)",
        "qemu-aarch64-static (apt install qemu-user-static)",
    ]


def test_other_processors_are_emulated(monkeypatch):
    targets = load("targets")
    monkeypatch.setattr(targets.platform, "machine", lambda: "x86_64")
    assert targets.TARGETS["manylinux_2_28_x86_64"].runner == []
    aarch64 = targets.TARGETS["manylinux_2_28_aarch64"]
    assert aarch64.runner == ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]


def test_a_static_library_contains_libcxx(monkeypatch, tmp_path):
    """In place of libstdc++, whose types are not those of zig's objects."""
    linux = load("zig_cxx")
    archives = ["/cache/libc++.a", "/cache/libc++abi.a"]
    monkeypatch.setattr(linux, "libcxx", lambda target, folder: archives)
    options = ["-r", "-Wl,-u,f", "a.o", "-l:libstdc++.a", "-o", "b.o"]
    command = linux.relocatable_command("aarch64-linux-gnu.2.28", options, str(tmp_path))
    assert command == ["aarch64-linux-gnu-g++", *options[:3], *archives, "-o", "b.o"]


def test_licence_files_are_those_in_the_source(root):
    """Each LICENSE is in the metadata of the source distribution."""
    project = (root / "pyproject.toml").read_text()
    found = {
        path.relative_to(root).as_posix()
        for folder in (".", "tests", "tf_lstm_ops", "third_party")
        for path in (root / folder).glob("LICENSE" if folder == "." else "**/LICENSE*")
    }
    [line] = re.findall(r"^license-files = (.*)$", project, re.MULTILINE)
    assert {"LICENSE", "tests/session/rtneural/LICENSE"} <= found
    assert found <= {*json.loads(line)}


def test_bill_of_materials():
    module = load("sbom")
    part = {"name": "libc++", "version": "21.1", "license": "MIT"}
    files = {"p/b.so": FILES["p/b.so"]}
    arguments = ("tf_lstm_ops", "1.2.3", files, {"ziglang": "1"}, [part], EPOCH)
    text = module.sbom(*arguments)
    assert text == module.sbom(*arguments)
    document = json.loads(text)
    assert document["bomFormat"] == "CycloneDX" and document["specVersion"] == "1.6"
    assert document["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert document["metadata"]["component"]["purl"] == "pkg:pypi/tf-lstm-ops@1.2.3"
    assert document["metadata"]["tools"]["components"][0]["name"] == "ziglang"
    file, library = document["components"]
    assert (library["name"], library["version"]) == ("libc++", "21.1")
    assert file["hashes"][0]["content"] == hashlib.sha256(FILES["p/b.so"]).hexdigest()


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_zig_gets_a_processor_for_every_unit(native, machine):
    """zig does not know GCC's names of architectures."""
    linux = load("zig_cxx")
    found = set()
    for unit in [*native.units(machine), *native.cuda_units(machine)]:
        options = linux.processor_options(unit.flags)
        kept = [o for o in unit.flags if not o.startswith(("-march", "-mavx", "-mamx"))]
        assert [o for o in options if not o.startswith("-mcpu")] == kept
        found |= {o for o in options if o.startswith("-mcpu")}
    expected = {
        "x86_64": {
            *("x86_64", "x86_64_v2", "x86_64_v3", "x86_64_v4"),
            *("x86_64_v4+avx512bf16", "x86_64_v4+amx_tile+amx_bf16"),
        },
        "aarch64": {"generic+v8_2a+bf16"},
    }
    assert found == {f"-mcpu={name}" for name in expected[machine]}


def test_stream_libraries_are_those_of_the_supported_releases(root):
    """A wheel has a library for each minor version that pyproject.toml allows and that was
    released; others are compiled on the user's machine."""
    stream = load("stream_libraries")
    project = (root / "pyproject.toml").read_text()
    low, high = map(int, re.search(r'"tensorflow>=2\.(\d+),<2\.(\d+)"', project).groups())
    minors = [int(version.split(".")[1]) for version in stream.VERSIONS]
    assert minors == list(range(low, low + len(minors)))
    assert minors[-1] < high
    assert stream.name("2.18.1") == "tf_lstm_ops_cuda_stream_2.18.so"


def test_the_build_command_can_be_run():
    assert os.access(SCRIPTS / "build", os.X_OK)
