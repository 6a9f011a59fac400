"""Private names of TensorFlow, Keras and PyTorch are in three files only."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import keras
import pytest
import tensorflow as tf

from tf_lstm_ops import _keras_private

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = ("_tf_private.py", "_keras_private.py", "_torch_private.py")
FILES = [path for path in (ROOT / "tf_lstm_ops").rglob("*.py") if path.name not in ALLOWED]
# Attributes with an underscore of the standard library.
STANDARD = {
    *("_asdict", "_fields", "_replace"),  # namedtuple
    *("_fill_text", "_get_help_string"),  # argparse
    *("_exit", "_getframe"),  # os and sys
}
MODULE = re.compile(r"(tensorflow|keras)\..*")
IN_TEXT = re.compile(r"tensorflow\.(python|lite|core|compiler)\b|keras\.src|__internal__")
PRIVATE = re.compile(r"_[a-zA-Z]\w*")
NOT_DOCUMENTED = {"inner_loop", "get_dropout_mask", "get_recurrent_dropout_mask"}


def names_of_others() -> set[str]:
    """The attributes with an underscore of objects of Keras and TensorFlow."""
    model = keras.Sequential([keras.Input([2, 3]), keras.layers.LSTM(1)])
    model.compile("sgd", "mse")
    graph = tf.Graph()
    objects = [model, model.layers[0], model.layers[0].cell, model.weights[0], model.optimizer]
    objects += [graph, tf.constant(0), tf.Variable(0)]
    return {name for item in objects for name in dir(item) if PRIVATE.fullmatch(name)}


def defined(tree: ast.AST) -> Iterator[str]:
    """The names with an underscore that a file's classes give to their objects."""
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in ast.walk(cls):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield node.name
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                yield node.attr
        for node in cls.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", 0)]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def own_modules(tree: ast.AST) -> set[str]:
    """The names under which a file has modules of the package."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    own = [node for node in imports if (node.module or "").startswith("tf_lstm_ops")]
    return {alias.asname or alias.name for node in own for alias in node.names}


def no_names(tree: ast.AST) -> set[int]:
    """The docstrings, and the parts of formatted texts."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, kinds) and node.body]
    docs = [body[0].value for body in bodies if isinstance(body[0], ast.Expr)]
    formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    return {id(part) for part in (*docs, *(v for node in formatted for v in node.values))}


def found(tree: ast.AST, own: set[str], others: set[str]) -> list[str]:
    """The private names of others in a file, each with its line."""
    modules, skipped, bad = own_modules(tree), no_names(tree), []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if MODULE.fullmatch(alias.name)]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            module = node.module or ""
            names = [module] if re.match(r"tensorflow\b|keras\.", module) else []
        elif isinstance(node, ast.Attribute):
            is_own = isinstance(node.value, ast.Name) and node.value.id in modules
            private = PRIVATE.fullmatch(node.attr) and node.attr not in own | STANDARD
            called = node.attr in NOT_DOCUMENTED and not ast.unparse(node).startswith(
                ("super().", "keras.layers.RNN.")  # within the method that overrides it
            )
            internal = node.attr == "__internal__"
            names = [ast.unparse(node)] if (private or called or internal) and not is_own else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_private = node.value in others - own or IN_TEXT.search(node.value)
            names = [node.value] if is_private and id(node) not in skipped else []
        bad += [f"{node.lineno}: {name}" for name in names]
    return bad


@pytest.fixture(scope="module")
def own() -> set[str]:
    """Names that the package's classes define, but for those that Keras has, too."""
    names = {name for path in FILES for name in defined(ast.parse(path.read_text()))}
    return names - {hook for _, hooks in _keras_private.OVERRIDDEN.values() for hook in hooks}


def test_no_other_file_has_a_private_name(own: set[str]) -> None:
    others = names_of_others()
    overriding = {name.rpartition(".")[0] for name in _keras_private.OVERRIDDEN}
    hooks = {hook for _, names in _keras_private.OVERRIDDEN.values() for hook in names}
    problems = []
    for path in FILES:
        names = own | (hooks if path.stem in overriding else set())
        lines = found(ast.parse(path.read_text()), names, others)
        problems += [f"{path.relative_to(ROOT)}:{line}" for line in lines]
    assert len(FILES) > 100
    assert problems == []


@pytest.mark.parametrize(
    "source",
    [
        "import tensorflow.python.eager.context",
        "from tensorflow.python.eager import context",
        "from tensorflow.core.protobuf import saved_model_pb2",
        "from keras.src.models import Functional",
        "model._flatten_layers()",
        "self._layers",
        "tf.__internal__.tracking",
        "getattr(layer, '_inbound_nodes', None)",
        "importlib.import_module('tensorflow.lite.python.lite')",
        "type(layer).inner_loop(layer)",
        "cell.get_dropout_mask(x)",
    ],
)
def test_the_scan_finds(source: str, own: set[str]) -> None:
    assert found(ast.parse(source), own, names_of_others())


@pytest.mark.parametrize(
    "source",
    [
        "import tensorflow as tf\ntf.compat.v1.get_default_graph()",
        "from keras import ops",
        "from tf_lstm_ops import _library\n_library._private_function()",
        "item._replace(path=path)",
        '"""Keras\' ``keras.src.models``."""',
        "self._drop(sequence)",
    ],
)
def test_the_scan_leaves(source: str, own: set[str]) -> None:
    assert found(ast.parse(source), own, names_of_others()) == []


def test_every_hook_that_is_overridden_is_listed() -> None:
    """No other private method of Keras has a method of ours in its place."""
    overridden: dict[str, set[str]] = {}
    pending = list(keras.layers.Layer.__subclasses__())
    while pending:
        cls = pending.pop()
        pending += cls.__subclasses__()
        if not cls.__module__.startswith("tf_lstm_ops."):
            continue
        module = importlib.import_module(cls.__module__)
        if getattr(module, cls.__name__, None) is not cls:
            continue
        bases = [base for base in cls.__mro__ if base.__module__.startswith("keras.")]
        hidden = {n for n in vars(cls) if PRIVATE.fullmatch(n) or n in NOT_DOCUMENTED}
        if hooks := {n for n in hidden if any(n in vars(base) for base in bases)}:
            overridden[f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}"] = hooks
    assert overridden == {k: {*v} for k, (_, v) in _keras_private.OVERRIDDEN.items()}
