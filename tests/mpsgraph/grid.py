"""How to run a case on the package, and the oracle beside it."""

from typing import Any

import numpy as np
import tensorflow as tf

from block_cell.grid import tf_dtype
from oracle.block_cell import Array
from oracle.mpsgraph import Arguments, Results, mpsgraph_lstm, mpsgraph_lstm_backward
from tf_lstm_ops import raw_ops

from .cases import Case, Outputs


def tensor(value: Any, dtype: str = "float64") -> Any:
    """None stays None."""
    return None if value is None else tf.constant(value, tf_dtype(dtype))


def tensors(values: Any, dtype: str = "float64") -> Any:
    return type(values)(*(tensor(a, dtype) for a in values))


def call(case: Case, arguments: Arguments, mask: Any, **options: Any) -> Any:
    """The op, with all its outputs unless the options say otherwise."""
    options = {"produce_cell": True, "training": True, **options}
    return raw_ops.MPSGraphLSTM(**arguments._asdict(), mask=mask, **{**case.attributes, **options})


def call_grads(
    case: Case, arguments: Arguments, mask: Any, saved: Any, upstream: Results, **options: Any
) -> Any:
    """The gradient op, which takes no gradients of cell and z_state. `saved` are the outputs."""
    return raw_ops.MPSGraphLSTMGradients(
        **arguments._asdict(),
        mask=mask,
        source_gradient=upstream.output,
        z_state=saved.z_state,
        cell_output_fwd=saved.cell,
        state_gradient=upstream.state,
        cell_gradient=upstream.final_cell,
        **{**case.attributes, **options},
    )


def reference(case: Case, arguments: Arguments, mask: Array | None) -> Results:
    """The oracle's results, in the precision of the arguments."""
    return mpsgraph_lstm(arguments, case.options(mask))


def reference_backward(
    case: Case,
    arguments: Arguments,
    mask: Array | None,
    upstream: Results,
    saved: Any = None,
) -> Arguments:
    """The oracle's gradients, from its own forward pass or what another one has saved."""
    saved = reference(case, arguments, mask) if saved is None else saved
    options = case.options(mask)
    return mpsgraph_lstm_backward(arguments, saved.cell, saved.z_state, upstream, options)


def outputs_of(results: Results) -> Outputs:
    """Those of the oracle's results that the op returns."""
    return Outputs(results.output, results.cell, results.z_state)


def zeros_but(upstream: Results, *names: str) -> Results:
    """Upstream gradients with zeros for all but these."""
    return Results(
        *(
            u if name in names else np.zeros_like(u)
            for name, u in zip(upstream._fields, upstream, strict=True)
        )
    )


def tape_grads(
    case: Case, arguments: Arguments, mask: Any, upstream: Results, **options: Any
) -> Arguments:
    """Gradients of Σ upstream∘outputs, on tensors; None where an argument is absent."""
    watched = [a for a in arguments if a is not None]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        outputs = call(case, arguments, mask, **options)
    returned = [name for name in Outputs._fields if getattr(outputs, name) is not None]
    found = iter(
        tape.gradient(
            [getattr(outputs, name) for name in returned],
            watched,
            [getattr(upstream, name) for name in returned],
        )
    )
    return Arguments(*(None if a is None else next(found) for a in arguments))
