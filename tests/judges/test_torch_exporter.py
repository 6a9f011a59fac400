"""The 192 recurrent models of PyTorch's tests of its export to ONNX, by sessions of both exporters'
files, beside the modules in float64.

torch_exporter.py says where the combinations come from.
"""

import importlib.util

import pytest

pytest.importorskip("torch", reason="exports the models")
pytest.importorskip("onnx", reason="reads the models")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

from judges import torch_exporter  # noqa: E402
from judges.cases import REFUSED, RIGHT, ours, verdict  # noqa: E402

COMBINATIONS = torch_exporter.combinations()
UNPACKED = [name for name, options in COMBINATIONS.items() if not options.is_packed]
SAMPLE = slice(0, None, 11)  # each kind, number of layers, direction and way of lengths
needs_onnxscript = pytest.mark.skipif(
    importlib.util.find_spec("onnxscript") is None, reason="the exporter needs onnxscript"
)


def test_there_are_192() -> None:
    assert len(COMBINATIONS) == 192 and len(UNPACKED) == 64


@pytest.mark.parametrize("name", [*COMBINATIONS][SAMPLE])
def test_session(name: str) -> None:
    assert verdict(torch_exporter.case(COMBINATIONS[name]), ours) == (RIGHT, "")


@pytest.mark.full
def test_all_sessions() -> None:
    found = {case.name: verdict(case, ours) for case in torch_exporter.cases()}
    assert len(found) == 192
    assert not {name: each for name, each in found.items() if each.kind != RIGHT}


@needs_onnxscript
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if k % 5 else pytest.mark.full)
        for k, name in enumerate(UNPACKED)
    ],
)
def test_session_of_the_newer_exporter(name: str) -> None:
    """Its files have the number of steps of the example."""
    case = torch_exporter.case(COMBINATIONS[name], dynamo=True)
    assert verdict(case, ours) == (RIGHT, "")


@pytest.mark.full
@needs_onnxscript
@pytest.mark.parametrize("name", ["lstm-1_layers", "gru-3_layers-initial"])
def test_no_wrong_steps_of_the_newer_exporter(name: str) -> None:
    """A file that fixes the number of steps refuses another one."""
    case = torch_exporter.case(COMBINATIONS[name], dynamo=True, other_steps=True)
    assert verdict(case, ours).kind == REFUSED
