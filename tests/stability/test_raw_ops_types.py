"""The types in the signatures of `raw_ops` are those of the op definitions."""

import inspect
import runpy
import typing
from pathlib import Path

import pytest

from tf_lstm_ops import raw_ops
from tf_lstm_ops.raw_ops import types

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "raw_ops_types.py"))
DEFINITIONS = SCRIPT["definitions"]()
OF_ATTRIBUTES = {
    "bool": "bool", "float": "float", "int": "int", "string": "str", "type": "DTypeLike"
}  # fmt: skip


def test_file_is_the_written_one():
    """If not: python scripts/raw_ops_types.py writes it."""
    assert SCRIPT["FILE"].read_text("utf-8") == SCRIPT["render"]()


def test_all_ops_have_a_definition():
    assert set(raw_ops.__all__) == {*DEFINITIONS, "MPSGraphLSTM", "MPSGraphLSTMGradients"}


@pytest.mark.parametrize("op", DEFINITIONS)
def test_result_has_the_outputs(op):
    outputs = [output.name for output in DEFINITIONS[op].output_arg]
    annotation = inspect.signature(getattr(raw_ops, op)).return_annotation
    if len(outputs) == 1:
        assert annotation == "Tensor"
    else:
        assert annotation == f"{op}Results"
        result = typing.get_type_hints(getattr(raw_ops, op), localns=vars(types))["return"]
        assert result is getattr(types, annotation)
        assert list(result._fields) == outputs


@pytest.mark.parametrize("op", DEFINITIONS)
def test_arguments_have_the_types_of_the_definition(op):
    """Editors show what inspect.signature returns."""
    definition = DEFINITIONS[op]
    expected = {
        i.name: "Sequence[TensorLike]" if i.number_attr else "TensorLike"
        for i in definition.input_arg
    }
    implied = {n for i in definition.input_arg for n in (i.type_attr, i.number_attr)}
    expected |= {a.name: OF_ATTRIBUTES[a.type] for a in definition.attr if a.name not in implied}
    given = inspect.signature(getattr(raw_ops, op)).parameters
    annotations = {name: parameter.annotation for name, parameter in given.items()}
    assert annotations.pop("name") == "str | None"
    assert annotations == expected


def test_completion_lists_the_arguments():
    """IPython and jedi list the names that inspect.signature returns."""
    parameters = inspect.signature(raw_ops.LSTMBlockCell).parameters
    assert list(parameters) == [
        "x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b",
        "forget_bias", "cell_clip", "use_peephole", "name",
    ]  # fmt: skip
