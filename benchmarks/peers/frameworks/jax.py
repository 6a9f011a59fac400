"""JAX: the input's product, then a jitted lax.scan over the steps."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from peers.cases import WEIGHTS, Problem, Row, compared_grads, compared_output
from peers.frameworks import Prepared
from peers.frameworks.layers import run_layers
from tf_lstm_ops._arrays import Array
from tf_lstm_ops.weights import CellWeights


def build(row: Row, problem: Problem, threads: int) -> Prepared:
    """Makes a jitted call. JAX takes the number of threads from the worker's environment.

    Args:
      row: the row.
      problem: its data.
      threads: the number of threads; not read.

    Returns:
      The call to time.
    """
    x, output_grad = (jnp.asarray(np.swapaxes(a, 0, 1)) for a in (problem.x, problem.output_grad))
    cells = jax.tree.map(jnp.asarray, [cell.arrays() for cell in problem.weights.cells])
    valid = None if problem.valid is None else jnp.asarray(problem.valid.T[..., None])
    step = {"lstm": _lstm_step, "gru": _gru_step}[row.cell]

    def run(x: Any, cell: Any) -> Any:
        bias = cell["bias"] + (cell["recurrent_bias"] if row.cell == "lstm" else 0.0)
        h, c = (jnp.zeros((row.batch, size)) for size in (row.hidden, row.units))

        def body(state: Any, given: Any) -> Any:
            z, keep = given
            new = step(cell, z, state)
            if keep is not None:
                new = tuple(jnp.where(keep, n, old) for n, old in zip(new, state, strict=True))
            return new, new[0]

        start = (h, c) if row.cell == "lstm" else (h,)
        return jax.lax.scan(body, start, (x @ cell["kernel"] + bias, valid))[1]

    run_all = run_layers(run, lambda x: x[::-1], lambda both: jnp.concatenate(both, -1))

    @jax.jit
    def inference(x: Any, cells: Any) -> Any:
        return run_all(x, cells, row.directions)

    @jax.jit
    def training(x: Any, cells: Any) -> Any:
        output, pull_back = jax.vjp(lambda x, cells: run_all(x, cells, row.directions), x, cells)
        return output, pull_back(output_grad)

    if row.task == "training":
        return Prepared(
            lambda: jax.block_until_ready(training(x, cells)),
            lambda found: _training_results(row, problem, *found),
        )
    return Prepared(
        lambda: jax.block_until_ready(inference(x, cells)),
        lambda output: _results(problem, output),
    )


def _results(problem: Problem, output: Any) -> dict[str, Array]:
    return compared_output(np.swapaxes(output, 0, 1), problem)


def _training_results(row: Row, problem: Problem, output: Any, grads: Any) -> dict[str, Array]:
    x_grad, cell_grads = grads
    arrays = [CellWeights(**jax.tree.map(np.asarray, cell)) for cell in cell_grads]
    weights = WEIGHTS[row.cell](tuple(arrays), row.directions)
    return {
        **_results(problem, output),
        **compared_grads(np.swapaxes(x_grad, 0, 1), weights),
    }


def _lstm_step(cell: Any, z: Any, state: Any) -> Any:
    h, c = state
    i, f, g, o = jnp.split(z + h @ cell["recurrent_kernel"], 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return h @ cell["projection"] if "projection" in cell else h, c


def _gru_step(cell: Any, z: Any, state: Any) -> Any:
    (h,) = state
    x_terms = jnp.split(z, 3, axis=-1)
    h_terms = jnp.split(h @ cell["recurrent_kernel"] + cell["recurrent_bias"], 3, axis=-1)
    update, reset = (jax.nn.sigmoid(a + b) for a, b in zip(x_terms[:2], h_terms[:2], strict=True))
    candidate = jnp.tanh(x_terms[2] + reset * h_terms[2])
    return (update * h + (1 - update) * candidate,)
