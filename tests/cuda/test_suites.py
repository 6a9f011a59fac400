"""The dialects' own suites on the CUDA kernels and the fakes of CUDA's libraries, and errors that
they must notice."""

import pytest

from cuda import build
from devices import suites

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize("suite", suites.SUITES)
def test_suite(tmp_path, built, suite):
    suites.check(suite, tmp_path, build.environment(built), has_cuda=True)


@pytest.mark.parametrize(
    ("macro", "chosen"),
    [
        ("-Dtanhf=sinf", ("tests/block_cell/test_forward.py", "-k", "test_outputs and float32")),
        ("-Dexpf=sinf", ("tests/mpsgraph/test_gradients.py",)),
    ],
)
def test_wrong_device_code_is_noticed(tmp_path, built, macro, chosen):
    """The same device code, with a wrong function."""
    environment = build.environment(built) | {"FAKE_CXX": f"c++ {macro}"}
    outcome = suites.run(tmp_path, environment, *chosen, "--maxfail=1")
    assert outcome.returncode == 1, outcome.output[-10000:]
    assert "AssertionError" in outcome.output
