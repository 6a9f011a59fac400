"""LSTM, GRU and RNN in float64, from the text of ONNX's specification of these operators.

The text is that of `onnx.defs.get_schema`, opset 22. It shares no code with the package under test
and none with ``onnx.reference``, which ignores lengths, clips and activations. What the text leaves
open is as in ONNX Runtime: outputs behind a length are zero, and coupled gates are f = 1 - i. A row
without steps ends with its initial states. One row and one step are computed at a time.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Function = Callable[[Array], Array]

# Functions of x, alpha and beta by their names in the text.
FUNCTIONS: dict[str, Callable[[Array, float, float], Array]] = {
    "Relu": lambda x, a, b: np.maximum(x, 0),
    "Tanh": lambda x, a, b: np.tanh(x),
    "Sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)),
    "Affine": lambda x, a, b: a * x + b,
    "LeakyRelu": lambda x, a, b: np.where(x >= 0, x, a * x),
    "ThresholdedRelu": lambda x, a, b: np.where(x >= a, x, 0),
    "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
    "HardSigmoid": lambda x, a, b: np.minimum(np.maximum(a * x + b, 0), 1),
    "Elu": lambda x, a, b: np.where(x >= 0, x, a * (np.exp(x) - 1)),
    "Softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "Softplus": lambda x, a, b: np.log(1 + np.exp(x)),
}
# Those that take a number, with the default of the operator of the name; None: there is no default.
ALPHA = {
    **{"Affine": None, "LeakyRelu": 0.01, "ThresholdedRelu": 1.0},
    **{"ScaledTanh": None, "HardSigmoid": 0.2, "Elu": 1.0},
}
BETA = {"Affine": None, "ScaledTanh": None, "HardSigmoid": 0.5}
DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


def run(
    op: str,
    inputs: Mapping[str, Array],
    attributes: Mapping[str, Any],
    is_of_onnx_runtime: bool = False,
) -> dict[str, Array]:
    """The outputs of a node.

    Args:
      op: "LSTM", "GRU" or "RNN".
      inputs: by their names in the text; those that are absent are missing.
      attributes: by their names.
      is_of_onnx_runtime: True: what ONNX Runtime computes where it differs. It does not clip what
        goes into h, which the text asks for (onnxruntime#27224). A row without steps ends with
        zeros, of which the text says nothing.

    Returns:
      Y, Y_h and, of an LSTM, Y_c.
    """
    wide = {k: v.astype(np.float64) for k, v in inputs.items() if k != "sequence_lens"}
    batch_first = attributes.get("layout", 0) == 1
    x, W, R = wide["X"], wide["W"], wide["R"]
    if batch_first:
        x = x.swapaxes(0, 1)
    (steps, batch, _), (D, _, H) = x.shape, R.shape
    B = wide.get("B", np.zeros((D, 2 * W.shape[1])))
    P = wide.get("P", np.zeros((D, 3 * H)))
    lengths = inputs.get("sequence_lens", np.full(batch, steps))
    initial = {}
    for name in ("initial_h", "initial_c"):
        state = wide.get(name)
        if state is None:
            initial[name] = np.zeros((D, batch, H))
        else:
            initial[name] = state.swapaxes(0, 1) if batch_first else state
    functions = list(functions_of(op, attributes, D))
    Y, Y_h, Y_c = np.zeros((steps, D, batch, H)), np.zeros((D, batch, H)), np.zeros((D, batch, H))
    for d in range(D):
        backwards = attributes.get("direction", "forward") == "reverse" or d == 1
        step = STEPS[op](W[d], R[d], B[d], P[d], functions[d], attributes, not is_of_onnx_runtime)
        for n in range(batch):
            h, c = initial["initial_h"][d, n], initial["initial_c"][d, n]
            order = range(int(lengths[n]))
            for t in reversed(order) if backwards else order:
                h, c = step(x[t, n], h, c)
                Y[t, d, n] = h
            if lengths[n] or not is_of_onnx_runtime:
                Y_h[d, n], Y_c[d, n] = h, c
    if batch_first:
        Y, Y_h, Y_c = Y.transpose(2, 0, 1, 3), Y_h.swapaxes(0, 1), Y_c.swapaxes(0, 1)
    return {"Y": Y, "Y_h": Y_h, **({"Y_c": Y_c} if op == "LSTM" else {})}


def functions_of(op: str, attributes: Mapping[str, Any], directions: int) -> Iterator[Any]:
    """The functions of each direction with their clip. Numbers are consumed in their order."""
    names = attributes.get("activations", DEFAULTS[op] * directions)
    alphas = iter(attributes.get("activation_alpha", ()))
    betas = iter(attributes.get("activation_beta", ()))
    found = []
    for name in names:
        alpha = next(alphas, ALPHA[name]) if name in ALPHA else 0.0
        beta = next(betas, BETA[name]) if name in BETA else 0.0
        found.append(clipped(FUNCTIONS[name], alpha, beta, attributes.get("clip", np.inf)))
    each = len(DEFAULTS[op])
    yield from (found[d * each : (d + 1) * each] for d in range(directions))


def clipped(function: Any, alpha: float, beta: float, clip: float) -> Any:
    """A function of x that clips x, or with clips=False does not."""

    def of(x: Array, clips: bool = True) -> Array:
        return function(np.clip(x, -clip, clip) if clips else x, alpha, beta)

    return of


def lstm_step(W, R, B, P, functions, attributes, clips_cell_state):  # type: ignore[no-untyped-def]
    H = R.shape[1]
    Wi, Wo, Wf, Wc = np.split(W, 4)
    Ri, Ro, Rf, Rc = np.split(R, 4)
    Wbi, Wbo, Wbf, Wbc, Rbi, Rbo, Rbf, Rbc = np.split(B, 8)
    Pi, Po, Pf = P[:H], P[H : 2 * H], P[2 * H :]
    f, g, h = functions

    def step(x: Array, before: Array, cell: Array) -> tuple[Array, Array]:
        it = f(x @ Wi.T + before @ Ri.T + Pi * cell + Wbi + Rbi)
        if attributes.get("input_forget", 0):
            ft = 1 - it
        else:
            ft = f(x @ Wf.T + before @ Rf.T + Pf * cell + Wbf + Rbf)
        ct = g(x @ Wc.T + before @ Rc.T + Wbc + Rbc)
        C = ft * cell + it * ct
        ot = f(x @ Wo.T + before @ Ro.T + Po * C + Wbo + Rbo)
        return ot * h(C, clips_cell_state), C

    return step


def gru_step(W, R, B, P, functions, attributes, clips_cell_state):  # type: ignore[no-untyped-def]
    Wz, Wr, Wh = np.split(W, 3)
    Rz, Rr, Rh = np.split(R, 3)
    Wbz, Wbr, Wbh, Rbz, Rbr, Rbh = np.split(B, 6)
    f, g = functions

    def step(x: Array, before: Array, cell: Array) -> tuple[Array, Array]:
        z = f(x @ Wz.T + before @ Rz.T + Wbz + Rbz)
        r = f(x @ Wr.T + before @ Rr.T + Wbr + Rbr)
        if attributes.get("linear_before_reset", 0):
            ht = g(x @ Wh.T + r * (before @ Rh.T + Rbh) + Wbh)
        else:
            ht = g(x @ Wh.T + (r * before) @ Rh.T + Rbh + Wbh)
        return (1 - z) * ht + z * before, cell

    return step


def rnn_step(W, R, B, P, functions, attributes, clips_cell_state):  # type: ignore[no-untyped-def]
    Wb, Rb = np.split(B, 2)
    (f,) = functions

    def step(x: Array, before: Array, cell: Array) -> tuple[Array, Array]:
        return f(x @ W.T + before @ R.T + Wb + Rb), cell

    return step


STEPS = {"LSTM": lstm_step, "GRU": gru_step, "RNN": rnn_step}
