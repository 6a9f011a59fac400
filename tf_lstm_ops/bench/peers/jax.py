"""JAX: a jitted lax.scan over the steps; the input's product stands before it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tf_lstm_ops.bench.cases import WEIGHTS, Problem, Row, gradient_pieces, pieces
from tf_lstm_ops.bench.peers import Prepared
from tf_lstm_ops.bench.peers.layers import run_layers
from tf_lstm_ops.weights import CellWeights
from tf_lstm_ops.weights.arrays import Array


def build(row: Row, problem: Problem, threads: int) -> Prepared:
    """The number of threads is in the environment that the worker got."""
    x, upstream = (jnp.asarray(np.swapaxes(a, 0, 1)) for a in (problem.x, problem.upstream))
    cells = jax.tree.map(jnp.asarray, [cell.arrays() for cell in problem.weights.layers])
    valid = None if problem.valid is None else jnp.asarray(problem.valid.T[..., None])
    step = {"lstm": _lstm_step, "gru": _gru_step}[row.cell]

    def run(x: Any, cell: Any) -> Any:
        bias = cell["bias"] + (cell["recurrent_bias"] if row.cell == "lstm" else 0.0)
        zero = jnp.zeros((row.batch, row.units))

        def body(state: Any, given: Any) -> Any:
            z, keep = given
            new = step(cell, z, state)
            if keep is not None:
                new = tuple(jnp.where(keep, n, old) for n, old in zip(new, state, strict=True))
            return new, new[0]

        start = (zero, zero) if row.cell == "lstm" else (zero,)
        return jax.lax.scan(body, start, (x @ cell["kernel"] + bias, valid))[1]

    stacked = run_layers(run, lambda x: x[::-1], lambda both: jnp.concatenate(both, -1))

    @jax.jit
    def inference(x: Any, cells: Any) -> Any:
        return stacked(x, cells, row.directions)

    @jax.jit
    def training(x: Any, cells: Any) -> Any:
        output, pull_back = jax.vjp(lambda x, cells: stacked(x, cells, row.directions), x, cells)
        return output, pull_back(upstream)

    def output_pieces(output: Any) -> dict[str, Array]:
        return pieces(np.swapaxes(output, 0, 1), problem)

    def gradients(found: Any) -> dict[str, Array]:
        output, (of_x, of_cells) = found
        arrays = [CellWeights(**jax.tree.map(np.asarray, cell)) for cell in of_cells]
        weights = WEIGHTS[row.cell](tuple(arrays), row.directions)
        return {**output_pieces(output), **gradient_pieces(np.swapaxes(of_x, 0, 1), weights)}

    if row.task == "training":
        return Prepared(lambda: jax.block_until_ready(training(x, cells)), gradients)
    return Prepared(lambda: jax.block_until_ready(inference(x, cells)), output_pieces)


def _lstm_step(cell: Any, z: Any, state: Any) -> Any:
    h, c = state
    i, f, g, o = jnp.split(z + h @ cell["recurrent_kernel"], 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def _gru_step(cell: Any, z: Any, state: Any) -> Any:
    (h,) = state
    of_x = jnp.split(z, 3, axis=-1)
    of_h = jnp.split(h @ cell["recurrent_kernel"] + cell["recurrent_bias"], 3, axis=-1)
    update, reset = (jax.nn.sigmoid(a + b) for a, b in zip(of_x[:2], of_h[:2], strict=True))
    candidate = jnp.tanh(of_x[2] + reset * of_h[2])
    return (update * h + (1 - update) * candidate,)
