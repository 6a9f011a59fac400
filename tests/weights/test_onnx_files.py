"""from_onnx of files and models: which node, its options, and what is refused."""

import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tf_lstm_ops.weights import GRUWeights, LSTMWeights, RNNWeights

from .formats import KINDS, Shape, Weights, assert_equal, random_weights

onnx = pytest.importorskip("onnx", reason="onnx, whose files these are, is not installed")
from onnx import helper, inliner, numpy_helper  # noqa: E402

from onnx_graph import models  # noqa: E402


def made(rng: np.random.Generator, kind: str = "lstm", **shape: Any) -> Any:
    return random_weights(Shape(kind, **shape), rng, "float32")


@pytest.mark.parametrize("opset", [7, 13, 14, 22])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_one_node(
    kind: str, directions: int, opset: int, rng: np.random.Generator, tmp_path: Path
) -> None:
    weights = made(rng, kind, directions=directions)
    model = models.one_layer(weights, opset)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    for source in (path, str(path), bytes(path), model):
        found = KINDS[kind].from_onnx(source)
        assert_equal(found, weights)
        for cell in found.cells:
            assert all(array.flags.writeable for array in cell.arrays().values())


def test_options_of_the_node(rng: np.random.Generator) -> None:
    """Peepholes, reset_after=False and relu."""
    weights = made(rng, peephole=True, directions=2)
    assert_equal(LSTMWeights.from_onnx(models.one_layer(weights)), weights)
    for said in (0, 1):
        gru = models.one_layer(made(rng, "gru"), linear_before_reset=said)
        assert GRUWeights.from_onnx(gru).reset_after == bool(said)
        assert GRUWeights.from_onnx(gru, linear_before_reset=said).reset_after == bool(said)
        with pytest.raises(ValueError, match=f"linear_before_reset must be {said}, that of the"):
            GRUWeights.from_onnx(gru, linear_before_reset=1 - said)
    rnn = models.one_layer(made(rng, "rnn_tanh"), activations=["RELU"])
    assert RNNWeights.from_onnx(rnn).activation == "relu"
    assert RNNWeights.from_onnx(rnn, activation="relu").activation == "relu"
    with pytest.raises(ValueError, match="activation must be that of the source, 'relu'"):
        RNNWeights.from_onnx(rnn, activation="tanh")


def test_an_rnn_of_other_functions(rng: np.random.Generator) -> None:
    for names in (["Sigmoid", "Sigmoid"], ["Tanh", "Relu"]):
        model = models.one_layer(made(rng, "rnn_tanh", directions=2), activations=names)
        with pytest.raises(ValueError, match=r"node layer \(RNN\) must have one activation, tanh"):
            RNNWeights.from_onnx(model)


# --- what is not in the weights ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (
            "lstm",
            {"activations": ["HardSigmoid", "Tanh", "Tanh"]},
            r"node layer \(LSTM\) has the activations hardsigmoid, tanh, tanh \(a layer has acti",
        ),
        (
            "lstm",
            {"activations": ["Relu", "Softsign", "Softsign"]},
            'the layer needs activation="softsign", recurrent_activation="relu"',
        ),
        (
            "lstm",
            {"activations": ["Sigmoid", "Tanh", "Relu"]},
            r"sigmoid, tanh, relu \(a layer has activation and recurrent_activation; compare",
        ),
        ("gru", {"activations": ["Sigmoid", "Relu"]}, 'activation="relu", recurrent_activation="s'),
        ("gru", {"clip": 2.5}, r"node layer \(GRU\) has clip=2.5, a limit of what goes into the"),
        ("rnn_tanh", {"clip": 2.5}, "No argument of a layer computes it: cell_clip limits the"),
    ],
)
def test_a_warning(
    kind: str, options: dict[str, Any], message: str, rng: np.random.Generator
) -> None:
    weights = made(rng, kind)
    model = models.one_layer(weights, **options)
    with pytest.warns(UserWarning, match=message) as seen:
        assert_equal(KINDS[kind].from_onnx(model), weights)
    assert [warning.filename for warning in seen] == [__file__]


def test_names_of_the_usual_functions_are_no_warning(rng: np.random.Generator) -> None:
    model = models.one_layer(made(rng), activations=["sigmoid", "TANH", "Tanh"], input_forget=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LSTMWeights.from_onnx(model)


def test_coupled_gates(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=r"node layer \(LSTM\) has input_forget=1, which no layer"):
        LSTMWeights.from_onnx(models.one_layer(made(rng), input_forget=1))


# --- which node ----------------------------------------------------------------------------------


def chain(
    layers: list[Any], between: Callable[[int], list[onnx.NodeProto]], **options: Any
) -> onnx.ModelProto:
    """Layers in a row. `between(k)` makes xk of yk."""
    nodes, arrays, source = [], {"axes": np.array([1])}, "x"
    for k, weights in enumerate(layers):
        node, more = models.layer(weights, f"L{k}", source, f"y{k}", **options)
        nodes += [node, *between(k)]
        arrays |= more
        source = f"x{k}"
    return models.model(models.graph(nodes, arrays))


def squeeze(k: int) -> list[onnx.NodeProto]:
    return [helper.make_node("Squeeze", [f"y{k}", "axes"], [f"x{k}"])]


def merge(k: int) -> list[onnx.NodeProto]:
    """[T, D, N, H] becomes [T, N, D*H]."""
    shape = numpy_helper.from_array(np.array([0, 0, -1]))
    return [
        helper.make_node("Transpose", [f"y{k}"], [f"t{k}"], perm=[0, 2, 1, 3]),
        helper.make_node("Constant", [], [f"s{k}"], value=shape),
        helper.make_node("Reshape", [f"t{k}", f"s{k}"], [f"r{k}"]),
        helper.make_node("Dropout", [f"r{k}"], [f"x{k}"]),
    ]


def single_layers(weights: Weights) -> list[Any]:
    d = weights.directions
    cells = [weights.cells[k : k + d] for k in range(0, len(weights.cells), d)]
    options = {k: v for k, v in vars(weights).items() if k not in ("cells", "directions")}
    return [type(weights)(part, d, **options) for part in cells]


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_a_stack(kind: str, directions: int, rng: np.random.Generator) -> None:
    weights = made(rng, kind, layers=3, directions=directions)
    between = squeeze if directions == 1 else merge
    assert_equal(KINDS[kind].from_onnx(chain(single_layers(weights), between)), weights)


def test_a_stack_with_batches_first(rng: np.random.Generator) -> None:
    """Y is [N, T, D, H], or X is transposed for each layer."""
    weights = made(rng, layers=2)

    def squeeze_2(k: int) -> list[onnx.NodeProto]:
        axes = numpy_helper.from_array(np.array([2]))
        return [
            helper.make_node("Constant", [], [f"a{k}"], value=axes),
            helper.make_node("Squeeze", [f"y{k}", f"a{k}"], [f"x{k}"]),
        ]

    def there_and_back(k: int) -> list[onnx.NodeProto]:
        return [
            helper.make_node("Squeeze", [f"y{k}", "axes"], [f"s{k}"]),
            helper.make_node("Transpose", [f"s{k}"], [f"b{k}"], perm=[1, 0, 2]),
            helper.make_node("Transpose", [f"b{k}"], [f"x{k}"], perm=[1, 0, 2]),
        ]

    layers = single_layers(weights)
    assert_equal(LSTMWeights.from_onnx(chain(layers, squeeze_2, layout=1)), weights)
    assert_equal(LSTMWeights.from_onnx(chain(layers, there_and_back)), weights)


@pytest.mark.parametrize("target", [[0, -1, 4], [-1, 1, 4], [1, -1, 4], [0, 0, -1], [0, -1, 2]])
def test_reshapes_between_layers(target: list[int], rng: np.random.Generator) -> None:
    """Only the first one keeps steps and rows for sure."""
    weights = made(rng, layers=2)
    units = weights.units
    shape = [units if size == 4 else size for size in target]

    def reshape(k: int) -> list[onnx.NodeProto]:
        tensor = numpy_helper.from_array(np.array(shape))
        return [
            helper.make_node("Constant", [], [f"s{k}"], value=tensor),
            helper.make_node("Reshape", [f"y{k}", f"s{k}"], [f"x{k}"]),
        ]

    model = chain(single_layers(weights), reshape)
    if target == [0, -1, 4]:
        assert_equal(LSTMWeights.from_onnx(model), weights)
    else:
        with pytest.raises(ValueError, match="there are 2 nodes for LSTMWeights"):
            LSTMWeights.from_onnx(model)


@pytest.mark.parametrize("axis", [0, 2])
def test_another_axis_squeezed_between_layers(axis: int, rng: np.random.Generator) -> None:
    model = chain(single_layers(made(rng, layers=2)), squeeze)
    tensor = next(each for each in model.graph.initializer if each.name == "axes")
    tensor.CopyFrom(numpy_helper.from_array(np.array([axis]), "axes"))
    with pytest.raises(ValueError, match="there are 2 nodes for LSTMWeights"):
        LSTMWeights.from_onnx(model)


def test_an_attribute_that_is_not_read(rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=r"node layer \(LSTM\): it has the attribute speed"):
        LSTMWeights.from_onnx(models.one_layer(made(rng), speed=1))


def neg(k: int) -> list[onnx.NodeProto]:
    """Something is computed between the layers."""
    return [
        helper.make_node("Squeeze", [f"y{k}", "axes"], [f"s{k}"]),
        helper.make_node("Neg", [f"s{k}"], [f"x{k}"]),
    ]


def swapped(k: int) -> list[onnx.NodeProto]:
    """[T, 1, N, H] becomes [N, T, H]."""
    return [
        helper.make_node("Squeeze", [f"y{k}", "axes"], [f"s{k}"]),
        helper.make_node("Transpose", [f"s{k}"], [f"x{k}"], perm=[1, 0, 2]),
    ]


def beside(k: int) -> list[onnx.NodeProto]:
    """Each layer reads x."""
    return [helper.make_node("Identity", ["x"], [f"x{k}"])]


@pytest.mark.parametrize("between", [neg, swapped, beside])
def test_no_stack(
    between: Callable[[int], list[onnx.NodeProto]], rng: np.random.Generator, tmp_path: Path
) -> None:
    layers = [made(rng, inputs=4), made(rng, inputs=4)]
    path = tmp_path / "m.onnx"
    onnx.save(chain(layers, between), path)
    listed = "'L0' (LSTM, I=4, H=4, D=1), 'L1' (LSTM, I=4, H=4, D=1)"
    message = f"{path}: there are 2 nodes for LSTMWeights; pass node=, one of {listed}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        LSTMWeights.from_onnx(path)
    for k, weights in enumerate(layers):
        assert_equal(LSTMWeights.from_onnx(path, node=f"L{k}"), weights)
        assert_equal(LSTMWeights.from_onnx(path, node=f"y{k}"), weights)


def test_layers_with_other_sizes_and_options_are_no_stack(rng: np.random.Generator) -> None:
    layers = [made(rng), made(rng, inputs=4, units=5)]
    with pytest.raises(ValueError, match=r"'L0' \(LSTM, I=3, H=4, D=1\), 'L1' \(LSTM, I=4, H=5"):
        LSTMWeights.from_onnx(chain(layers, squeeze))
    model = chain([made(rng), made(rng, inputs=4)], squeeze)
    model.graph.node[0].attribute.append(helper.make_attribute("direction", "reverse"))
    with pytest.raises(ValueError, match="there are 2 nodes for LSTMWeights"):
        LSTMWeights.from_onnx(model)


def test_of_another_kind(rng: np.random.Generator) -> None:
    model = models.one_layer(made(rng))
    with pytest.raises(
        ValueError, match=r"no node for GRUWeights.*LSTMWeights\.from_onnx.*'layer'"
    ):
        GRUWeights.from_onnx(model)
    with pytest.raises(ValueError, match=r"'layer' \(LSTM, .*\) is read by LSTMWeights.from_onnx"):
        RNNWeights.from_onnx(model, node="layer")


def test_of_two_kinds(rng: np.random.Generator) -> None:
    layers = [made(rng), made(rng, "gru", inputs=4)]
    model = chain(layers, squeeze)
    assert_equal(LSTMWeights.from_onnx(model), layers[0])
    assert_equal(GRUWeights.from_onnx(model), layers[1])


def test_no_recurrent_node(rng: np.random.Generator) -> None:
    graph = models.graph([helper.make_node("Neg", ["x"], ["y"])])
    model = models.model(graph)
    with pytest.raises(
        ValueError, match="the model: there is no node LSTM, GRU or RNN; an exporter"
    ):
        LSTMWeights.from_onnx(model)
    weights = made(rng)
    node, arrays = models.layer(weights, "L", "x", "y")
    constants = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))
        for name, array in arrays.items()
    ]
    domains = [helper.make_opsetid("", 17)]
    function = helper.make_function("f", "F", ["x"], ["y"], [*constants, node], domains)
    model.functions.append(function)
    model.graph.node[0].op_type, model.graph.node[0].domain = "F", "f"
    model.opset_import.append(helper.make_opsetid("f", 1))
    with pytest.raises(ValueError, match=r"onnx\.inliner\.inline_local_functions"):
        LSTMWeights.from_onnx(model)
    assert_equal(LSTMWeights.from_onnx(inliner.inline_local_functions(model)), weights)


def test_many_nodes_are_listed_in_part(rng: np.random.Generator) -> None:
    model = chain([made(rng, inputs=4) for _ in range(23)], neg)
    with pytest.raises(ValueError, match=r"'L19' \(.*\) and 3 more$") as error:
        LSTMWeights.from_onnx(model)
    assert "'L20'" not in str(error.value)
    with pytest.raises(ValueError, match="there is no node 'L23'; pass node=, one of 'L0'"):
        LSTMWeights.from_onnx(model, node="L23")


def test_nodes_of_one_name(rng: np.random.Generator) -> None:
    layers = [made(rng), made(rng)]
    (first, arrays), (second, more) = (
        models.layer(w, "L", output=f"y{k}") for k, w in enumerate(layers)
    )
    model = models.model(models.graph([first, second], arrays | more))
    with pytest.raises(ValueError, match=r"several nodes 'L'; pass node=, one of 'L#1' .*'L#2' "):
        LSTMWeights.from_onnx(model, node="L")
    for k, weights in enumerate(layers):
        for name in (f"L#{k + 1}", f"y{k}"):
            assert_equal(LSTMWeights.from_onnx(model, node=name), weights)


def test_weights_of_run_time_are_named_in_the_list(rng: np.random.Generator) -> None:
    model = chain([made(rng, inputs=4), made(rng, inputs=4)], neg)
    model.graph.node[0].input[1] = "x"
    with pytest.raises(ValueError, match=r"'L0' \(LSTM, whose weights cannot be read\), 'L1' \(LS"):
        LSTMWeights.from_onnx(model)
    with pytest.raises(ValueError, match=r"node L0 \(LSTM\): its W \(x\) is computed at run time"):
        LSTMWeights.from_onnx(model, node="L0")


# --- arguments -----------------------------------------------------------------------------------


def test_arrays_beside_a_file_and_a_node_beside_arrays(rng: np.random.Generator) -> None:
    weights = made(rng)
    model, arrays = models.one_layer(weights), weights.to_onnx()
    with pytest.raises(ValueError, match="W is a file or a model, which has R, B; leave"):
        LSTMWeights.from_onnx(model, arrays.R, arrays.B)
    with pytest.raises(ValueError, match="W is a file or a model, which has P; leave"):
        LSTMWeights.from_onnx("m.onnx", P=arrays.R)
    for kind in (LSTMWeights, GRUWeights, RNNWeights):
        with pytest.raises(ValueError, match="node must be None if W is an array but is 'a'"):
            kind.from_onnx(arrays.W, arrays.R, node="a")
    with pytest.raises(ValueError, match="R must be an array but is None"):
        LSTMWeights.from_onnx(arrays.W)
    with pytest.raises(ValueError, match="node must be a text but is 3"):
        LSTMWeights.from_onnx(model, node=3)
    with pytest.raises(ValueError, match=r"W must be .* but is a GraphProto"):
        LSTMWeights.from_onnx(model.graph)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        LSTMWeights.from_onnx(tmp_path / "m.onnx")


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays do not need it."""
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"an ONNX file needs onnx.*\npip install 'onnx>="):
        LSTMWeights.from_onnx(tmp_path / "m.onnx")
    weights = random_weights(Shape(), np.random.default_rng(0))
    assert_equal(LSTMWeights.from_onnx(*weights.to_onnx()), weights)
