"""Each example of a public docstring gives what it shows.

Each public class and function has one, but of the ops only those in OPS need one.
"""

import doctest
import inspect

import pytest

from tf_lstm_ops import export, keras, raw_ops, stock, weights

MODULES = (export, keras, raw_ops, stock, weights)
PUBLIC = {
    f"{module.__name__.partition('.')[2]}.{name}": getattr(module, name)
    for module in MODULES
    for name in module.__all__
}
OPS = {
    *("BlockLSTM", "BlockLSTMV2", "LSTMBlockCell", "MPSGraphLSTM"),
    *("CudnnRNNParamsSize", "CudnnRNNParamsToCanonicalV2", "CudnnRNNV3"),
}


def examples(obj: object) -> list[doctest.DocTest]:
    """Those of a class and of its own methods, or of a function."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = finder.find(obj, obj.__name__, module=inspect.getmodule(obj), globs={})
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", PUBLIC)
def test_examples(name: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # some examples write files
    if name == "stock.override":
        pytest.skip("it changes the process: tests/stock calls it")
    found = examples(PUBLIC[name])
    if not name.startswith("raw_ops") or name.removeprefix("raw_ops.") in OPS:
        assert found, f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in found:
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
