"""Kernels for Metal whose self-test has not passed on this machine are never used."""

from pathlib import Path

import pytest

from devices import gate
from metal import build
from metal.test_suites import environment

pytestmark = pytest.mark.metal


@pytest.fixture(params=build.PLUGINS)
def machine(
    request: pytest.FixtureRequest, tmp_path: Path, plugins: dict[str, Path], kernels: Path
) -> gate.Machine:
    device = environment(plugins[request.param], kernels)
    return gate.Machine(tmp_path, device, plain_ops=False)


def test_all_states_of_the_record(machine):
    gate.check_states(machine)


def test_the_variable_overrides_the_record(machine):
    gate.check_variable(machine)


def test_errors_are_those_of_the_kernels(machine):
    gate.check_errors(machine)
