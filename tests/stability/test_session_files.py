"""Files of sessions and C programs of earlier versions work, as docs/stability.md promises."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tf_lstm_ops
from tf_lstm_ops.inference import Session

from .golden_session import FILE, HEADER, INCLUDE, RESULTS, session

VERSIONS = sorted(Path(__file__).parent.glob("v*"))
LIBRARIES = Path(tf_lstm_ops.__file__).parent / "_lib"
# float32 through nine small layers; instruction sets and compilers round differently.
CLOSE = {"rtol": 1e-5, "atol": 2e-6}
PROGRAM = """
#include <stdio.h>
#include <string.h>
#include <tf_lstm_ops.h>

int main(int argc, char** argv) {
  tf_lstm_ops_error error;
  tf_lstm_ops_session_options options;
  tf_lstm_ops_session_info info;
  tf_lstm_ops_session* session = 0;
  memset(&error, 0, sizeof error);
  memset(&options, 0, sizeof options);
  memset(&info, 0, sizeof info);
  error.struct_size = sizeof error;
  options.struct_size = sizeof options;
  info.struct_size = sizeof info;
  if (argc != 2 || tf_lstm_ops_api_version() < TF_LSTM_OPS_API_VERSION) return 1;
  if (tf_lstm_ops_session_open(argv[1], &options, &session, &error)) return 2;
  if (tf_lstm_ops_session_get_info(session, &info, &error)) return 3;
  tf_lstm_ops_session_close(session);
  printf("%d %d %d %d\\n", (int)info.threads, (int)info.input_size, (int)info.output_size,
         (int)info.returns_sequence);
  return 0;
}
"""


@pytest.fixture(params=VERSIONS, ids=lambda folder: folder.name)
def folder(request) -> Path:
    return request.param


def declarations(header: Path) -> str:
    """The header without comments and preprocessor lines, with single spaces."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    return " ".join(re.sub(r"^#.*$", "", text, flags=re.MULTILINE).split())


def test_the_file_gives_the_same(folder):
    with np.load(folder / RESULTS) as results:
        x, y = results["x"], results["y"]
    np.testing.assert_allclose(Session.load(folder / FILE)(x), y, **CLOSE)
    np.testing.assert_allclose(session()(x), y, **CLOSE)  # the program beside it wrote it


def test_declarations_stay(folder):
    """Functions and enumerators as they were; members of structs may follow the old ones."""
    old, new = declarations(folder / HEADER), declarations(INCLUDE / HEADER)
    functions = re.findall(r"TF_LSTM_OPS_API [^;]+;", old)
    values = re.findall(r"TF_LSTM_OPS_\w+ = \d+", old)
    structs = re.findall(r"typedef struct \w+ \{[^}]+", old)
    assert (len(functions), len(values), len(structs)) >= (14, 7, 3)
    assert [d for d in (*functions, *values, *structs) if d not in new] == []


def test_a_program_compiled_with_the_header_runs(folder, tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "program.c").write_text(PROGRAM)
    options = ["-std=c11", f"-I{folder}", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}"]
    command = [compiler, *options, "program.c", "-ltf_lstm_ops_inference", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    program = [str(tmp_path / "program"), str(folder / FILE)]
    done = subprocess.run(program, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "1 4 3 1\n"), shlex.join(program)
