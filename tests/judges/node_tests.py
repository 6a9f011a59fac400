"""ONNX's own node tests of LSTM, GRU and RNN, as cases.

They are those of the installed package onnx (onnx/backend/test/case/node, Apache-2.0): 18 from
version 1.23 on. The weights are inputs of their models.
"""

import importlib

import onnx.defs
from onnx.backend.test.case import node as onnx_nodes

from judges.cases import Case, of_node

OPERATORS = ("LSTM", "GRU", "RNN")
WEIGHTS = frozenset("WRBP")


def cases() -> list[Case]:
    """The node tests, in the order of onnx."""
    for op in OPERATORS:  # the import makes them; all the others would take seconds
        importlib.import_module(f"{onnx_nodes.__name__}.{op.lower()}")
    return [case_of(test) for test in onnx_nodes._NodeTestCases if is_recurrent(test.model.graph)]


def is_recurrent(graph) -> bool:  # type: ignore[no-untyped-def]
    return graph.node[0].op_type in OPERATORS


def case_of(test) -> Case:  # type: ignore[no-untyped-def]
    ((inputs, outputs),) = test.data_sets
    names = [value.name for value in test.model.graph.input]
    given = dict(zip(names, inputs, strict=True))
    (node,) = test.model.graph.node
    schema = [each.name for each in onnx.defs.get_schema(node.op_type).inputs]
    pairs = zip(schema, node.input, strict=False)
    named = {name: given[own] for name, own in pairs if own}
    return of_node(test.name, test.model, given, [*outputs], named, WEIGHTS & given.keys())
