"""A release of one wheel: two builds, and what scripts/release/check says of wrong wheels."""

import hashlib
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.downloads("TensorFlow, and tools of a release")]
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts" / "release"
TAG = "manylinux_2_28_x86_64"
LIBRARY = "tf_lstm_ops/_lib/tf_lstm_ops.so"


def check(folder: Path) -> tuple[int, str]:
    """The exit status of the command, and what it prints."""
    done = subprocess.run([str(SCRIPTS / "check"), str(folder)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def changed(release, tmp_path):
    """Writes a release whose wheel has other files, under another tag if wanted."""

    def write(change, tag: str = TAG) -> Path:
        [wheel] = release.glob("*.whl")
        target = tmp_path / wheel.name.replace(TAG, tag)
        with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(target, "w") as written:
            for name in source.namelist():
                written.writestr(name, change(name, source.read(name)))
        digest = hashlib.sha256(target.read_bytes()).hexdigest()
        (tmp_path / "SHA256SUMS").write_text(f"{digest}  {target.name}\n")
        return tmp_path

    return write


def test_two_builds_give_the_same_files(release, build_release, tmp_path):
    again = build_release(tmp_path)
    assert (again / "SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()


def test_a_right_release(release):
    status, printed = check(release)
    assert status == 0, printed


def test_a_wrong_hash(release, tmp_path):
    shutil.copytree(release, tmp_path, dirs_exist_ok=True)
    [wheel] = tmp_path.glob("*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"0")
    status, printed = check(tmp_path)
    assert status == 1 and "does not have the hash" in printed


def test_a_tag_that_lies(changed):
    other = "manylinux_2_28_aarch64"
    status, printed = check(
        changed(lambda _, data: data.replace(TAG.encode(), other.encode()), other)
    )
    assert status == 1, printed


def test_a_library_that_does_not_load(changed):
    """A function that neither glibc nor TensorFlow has."""
    status, printed = check(changed(replaced("void missing(void); void f(void) { missing(); }")))
    assert status == 1 and "does not load" in printed and "missing" in printed


def test_symbols_that_are_too_new(changed):
    """This machine's pthread_create is newer than that of glibc 2.28."""
    source = "#include <pthread.h>\nvoid* f(void) { return pthread_create; }"
    status, printed = check(changed(replaced(source)))
    assert status == 1 and "auditwheel gives it the tag" in printed


def test_a_second_tensorflow(changed):
    def require(name: str, data: bytes) -> bytes:
        if not name.endswith("METADATA"):
            return data
        return data.replace(b"Requires-Dist", b"Requires-Dist: tensorflow\nRequires-Dist", 1)

    status, printed = check(changed(require))
    assert status == 1 and "not NumPy alone" in printed


def replaced(source: str):
    """A change that puts another library into the wheel."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "library.so"
        command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(output)]
        subprocess.run(command, input=source, text=True, check=True)
        library = output.read_bytes()
    return lambda name, data: library if name == LIBRARY else data
