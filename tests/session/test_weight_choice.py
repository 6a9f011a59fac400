"""Which layers of a session get which type of weights, by the argument weights."""

import warnings
from typing import Any

import numpy as np
import pytest

from tf_lstm_ops.inference import LayerWeights, Session, file, layers, weight_types
from tf_lstm_ops.inference.graph import lower
from tf_lstm_ops.weights import LSTMWeights

Array = np.ndarray


def normal(*shape: int) -> Array:
    values = np.random.default_rng(0).standard_normal(shape) / np.sqrt(shape[0])
    return values.astype(np.float32)


def gates(inputs: int, units: int, count: int, hidden: int | None = None) -> list[Array]:
    width, hidden = count * units, hidden or units
    rest = [normal(units, hidden)] if hidden < units else []
    return [normal(inputs, width), normal(hidden, width), normal(width), *rest]


def model() -> Any:
    """Input and output of a graph with a layer of each kind."""
    x = layers.Input((None,), "int32")
    y = layers.Embedding(normal(400, 48), name="words")(x)
    y = layers.Conv1D(normal(3, 24, 240), groups=2, padding="causal", name="window")(y)
    y = layers.LSTM(gates(240, 32, 4, 16), return_sequences=True, name="lstm")(y)
    both = [
        layers.GRU(
            gates(16, 20, 3), return_sequences=True, go_backwards=backwards, name=f"gru {backwards}"
        )
        for backwards in (False, True)
    ]
    y = layers.Bidirectional(*both, name="both")(y)
    y = layers.SimpleRNN(gates(40, 30, 1), return_sequences=True, name="rnn")(y)
    y = layers.LayerNormalization(30, name="norm")(y)
    return x, layers.Dense(normal(30, 2), name="last")(y)


DESCRIBED = [  # name, kind, depth, columns, weights
    ("words", "Embedding", 400, 48, 400 * 48),
    ("window", "Conv1D", 3 * 24, 240, 3 * 24 * 240),
    ("lstm", "LSTM", 240 + 16, 4 * 32, (240 + 16) * 4 * 32 + 32 * 16),
    ("both", "GRU", 16 + 20, 3 * 20, 2 * (16 + 20) * 3 * 20),
    ("rnn", "SimpleRNN", 40 + 30, 30, (40 + 30) * 30),
    ("last", "Dense", 30, 2, 30 * 2),
]
LARGE = ["words", "window", "lstm"]  # of 16384 weights or more


def types(weights: Any) -> dict[str, str]:
    """The type of each layer that is not float32."""
    made = weight_types.applied(lower(*model()), weights)
    names = {node.layer.name: file.WEIGHT_TYPES[node.layer.weights] for node in made.nodes}
    return {name: value for name, value in names.items() if value != "float32"}


def test_a_type_for_all() -> None:
    assert types("float32") == {}
    assert types("bfloat16") == {name: "bfloat16" for name, *_ in DESCRIBED}
    assert types("int8") == dict.fromkeys(LARGE, "int8")


def test_int8_of_small_layers_alone_warns() -> None:
    x = layers.Input((None, 4))
    made = lower(x, layers.Dense(normal(4, 2))(x))
    with pytest.warns(UserWarning, match="'int8' changes no layer: all have fewer than 16384"):
        assert weight_types.applied(made, "int8") is made
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weight_types.applied(made, "bfloat16")
        weight_types.applied(lower(*model()), "int8")


def test_float32_is_the_same_graph() -> None:
    made = lower(*model())
    for weights in ("float32", {}, {"float32": ["last"]}, lambda layer: "float32"):
        assert weight_types.applied(made, weights) is made


def test_types_by_names() -> None:
    """Layers of few weights too; a layer may be in two lists of one type, not of two."""
    given = {"int8": ("last", "both"), "bfloat16": {"lstm"}, "float32": ["words"]}
    assert types(given) == {"last": "int8", "both": "int8", "lstm": "bfloat16"}
    assert types({"int8": ["last", "last"]}) == {"last": "int8"}


def test_types_by_a_function() -> None:
    seen = []

    def choice(layer: LayerWeights) -> str:
        seen.append(layer)
        return "int8" if layer.kind in ("GRU", "Dense") else "bfloat16"

    want = {name: "bfloat16" for name, *_ in DESCRIBED} | {"both": "int8", "last": "int8"}
    assert types(choice) == want
    assert seen == [LayerWeights(*each) for each in DESCRIBED]


def test_two_layers_of_one_name() -> None:
    chain = [layers.Dense(normal(4, 4)), layers.Dense(normal(4, 4))]
    x = layers.Input((4,))
    made = weight_types.applied(lower(x, layers.Chain(chain)(x)), {"int8": ["Dense"]})
    assert [node.layer.weights for node in made.nodes] == [2, 2]


def test_one_name_for_several_layers_of_a_module() -> None:
    """The name before the parenthesis, and no other beginning of a name."""
    names = ("lstm (LSTM) (layer 0)", "lstm (LSTM) (layer 1)", "lstm2 (LSTM)")
    chain = [layers.Dense(normal(4, 4), name=name) for name in names]
    x = layers.Input((4,))
    made = lower(x, layers.Chain(chain)(x))

    def typed(name: str) -> list[int]:
        return [n.layer.weights for n in weight_types.applied(made, {"int8": [name]}).nodes]

    assert typed("lstm") == typed("lstm (LSTM)") == [2, 2, 0]
    assert typed(names[1]) == [0, 2, 0]
    with pytest.raises(ValueError, match="Received: 'lst'"):
        typed("lst")
    exact = [layers.Dense(normal(4, 4), name=name) for name in ("a", "a (b)")]
    made = lower(x, layers.Chain(exact)(x))
    assert typed("a") == [2, 0]
    made = lower(x, layers.Chain(chain)(x))
    with pytest.raises(ValueError, match=r"once. Received: 'lstm \(LSTM\)' for int8"):
        weight_types.applied(made, {"int8": ["lstm"], "bfloat16": ["lstm (LSTM)"]})


@pytest.mark.parametrize(
    ("weights", "error", "text"),
    [
        (
            "int4",
            ValueError,
            "or 'int8', a dictionary .* Received: 'int4'",
        ),
        (8, TypeError, "must be 'float32'.* Received: 8"),
        (None, TypeError, "must be 'float32'.* Received: None"),
        (["lstm"], TypeError, "must be 'float32'.* Received: list"),
        ({"lstm": ["int8"]}, ValueError, "Received: 'lstm' as a key"),
        ({8: ["lstm"]}, TypeError, "Received: 8 as a key"),
        ({"int8": "lstm"}, TypeError, r"weights\['int8'\] must be a list of names.*: 'lstm'"),
        ({"int8": 3}, TypeError, r"weights\['int8'\] must be a list of names.*: 3"),
        (
            {"int8": ["lstm", "norm"]},
            ValueError,
            "such weights: both, last, lstm, rnn, window, words. Received: 'norm'",
        ),
        ({"int8": [["lstm"]]}, TypeError, r"weights\['int8'\] must be a list of names.*: list"),
        ({"int8": [8]}, TypeError, r"weights\['int8'\] must be a list of names.*: 8"),
        ({"int8": ["lstm"], "bfloat16": ["lstm"]}, ValueError, "once. Received: 'lstm' for int8"),
        (lambda layer: "int4", ValueError, "Received: 'int4', returned for layer words"),
        (lambda layer: None, TypeError, "Received: None, returned for layer words"),
    ],
)
def test_errors(weights: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Session.from_graph(*model(), weights=weights)


def deep() -> Any:
    x = layers.Input((65537,))
    return x, layers.Dense(np.ones((65537, 1)), name="deep")(x)


def test_int8_of_long_sums() -> None:
    """More than 65536 products do not fit in an int32."""
    made = lower(*deep())
    assert weight_types.applied(made, "int8") is made
    for weights in ({"int8": ["deep"]}, lambda layer: "int8"):
        with pytest.raises(ValueError, match=r"layer deep must sum at most 65536 .*: 65537"):
            weight_types.applied(made, weights)
    assert weight_types.applied(made, "bfloat16").nodes[0].layer.weights == 3


def test_int8_of_long_tables() -> None:
    """A row of an Embedding is no sum."""
    x = layers.Input((None,), "int32")
    made = lower(x, layers.Embedding(np.ones((65537, 1)))(x))
    assert weight_types.applied(made, {"int8": ["Embedding"]}).nodes[0].layer.weights == 2


def test_weights_of_a_session(tmp_path: Any) -> None:
    """A file has no names."""
    session = Session.from_graph(*model())
    assert session.weights == tuple(LayerWeights(*each) for each in DESCRIBED)
    session.save(tmp_path / "model")
    loaded = Session.load(tmp_path / "model")
    numbers = (0, 1, 2, 3, 4, 6)  # layer 5 is the normalisation
    want = [(f"layer {k}", *rest) for k, (_, *rest) in zip(numbers, DESCRIBED, strict=True)]
    assert loaded.weights == tuple(LayerWeights(*each) for each in want)
    assert repr(session).endswith("threads=1, weights='float32')") and repr(loaded) == repr(session)


def test_weights_of_version_1(tmp_path: Any) -> None:
    stack = LSTMWeights.from_keras([*gates(3, 5, 4)])
    session = Session([stack, (normal(5, 2), normal(2))])
    want = [("LSTM", "LSTM", 8, 20, 160), ("Dense", "Dense", 5, 2, 10)]
    assert session.weights == tuple(LayerWeights(*each) for each in want)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ([], "float32"),
        (["int8"] * 3, "int8"),
        (["int8", "float32", "int8"], "int8: 2 of 3 layers, float32: layer 1"),
        (["int8", "bfloat16"], "int8: 1 of 2 layers, bfloat16: 1 of 2 layers"),
        (
            ["float32"] * 5 + ["bfloat16"],
            "bfloat16: 1 of 6 layers, float32: layer 0, layer 1, layer 2 and 2 more",
        ),
    ],
)
def test_summary(given: list[str], want: str) -> None:
    described = [LayerWeights(f"layer {k}", "Dense", 1, 1, 1, each) for k, each in enumerate(given)]
    assert weight_types.summary(described) == want
