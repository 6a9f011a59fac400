"""Cases for engine_program.cc: what the engine is asked for, and what the float64 oracle expects.

The oracle of each dialect stands for what only its op has: cudnn_rnn for all cells, projections and
schedules; keras_lstm and keras_gru for dropout, peepholes and clip; block_cell for the gradients of
all outputs; mpsgraph for the general LSTM.
"""

import itertools
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from block_cell.accuracy import bounds
from block_cell.grid import round_to
from mpsgraph.cases import PAIRS, present
from mpsgraph.cases import Case as GeneralLstm
from mpsgraph.cases import random_arguments as general_arguments
from oracle import block_cell, keras_gru, keras_lstm, mpsgraph
from oracle import cudnn_rnn as cudnn

Array = np.ndarray
Arrays = dict[str, Array]
Cast = Callable[[Array], Array]

CELLS = {"lstm": 0, "general": 1, "gru": 2, "rnn_tanh": 3, "rnn_relu": 4}
ACTIVATIONS = ["none", "relu", "tanh", "sigmoid", "hard_sigmoid"]
# Where the parts of the engine's own order stand in the weights.
ICFO, IFCO, RUN, URN, PLAIN = [0, 1, 2, 3], [0, 2, 1, 3], [2, 0, 1, 2], [2, 1, 0, 2], [0] * 4


class Sizes(NamedTuple):
    time: int
    batch: int
    inputs: int
    units: int


# Ones, one below and above the vectors of every instruction set and the blocks of rows, one more
# than a chain of products, and the last two large enough for a team of threads.
SIZES = [
    Sizes(1, 1, 1, 1),
    Sizes(3, 2, 3, 5),
    Sizes(2, 7, 1, 3),
    Sizes(4, 5, 9, 15),
    Sizes(3, 6, 16, 16),
    Sizes(3, 13, 7, 17),
    Sizes(9, 1, 129, 33),
    Sizes(2, 25, 5, 31),
    Sizes(2, 3, 8, 130),
    Sizes(5, 12, 70, 65),
    Sizes(6, 33, 20, 129),
]
BITS = {"bfloat16": 16, "float32": 32, "float64": 64}

# Products of bfloat16 may err by what it costs to move every input by a unit of roundoff: h and the
# gradients of pre-activations are rounded to it too, all else is float.
#
# The rule of block_cell.accuracy, and half as much again: of some six thousand tensors, six plain
# evaluations of each are not the worst that there is. The largest error found was 1.12 times the
# rule's, the next 0.93.
SLACK = 1.5


@dataclass
class Problem:
    """One call forward and one backward, in the terms of engine_program.cc."""

    config: dict[str, Any]  # beside DEFAULTS
    # What the engine reads, and what it should write, of arrays in any precision.
    drawn: Arrays
    given: Callable[[Arrays], Arrays]
    want: Callable[[Arrays], Arrays]
    # Of results of which only a part is written: which.
    written: Arrays = field(default_factory=dict)


DEFAULTS = {
    "forget_bias": 0,
    "cell_clip": 0,
    "x_gate_stride": 0,
    "activations": [0] * 5,
    "by_unit": 0,
    "keeps_h": 1,
}


class Case(NamedTuple):
    name: str
    given: Arrays
    want: Arrays
    allowed: dict[str, float]  # the largest error of each result
    written: Arrays


def make_case(name: str, dtype: str, problem: Problem) -> Case:
    drawn = {k: round_to(dtype)(v) for k, v in problem.drawn.items()}
    names = list(problem.want(drawn))

    def evaluate(cast: Cast, _store: Any) -> list[Array]:
        return [np.ravel(a) for a in problem.want({k: cast(v) for k, v in drawn.items()}).values()]

    want, allowed = bounds(evaluate, dtype)
    given = {**DEFAULTS, **problem.config, **problem.given(drawn), "bits": BITS[dtype]}
    return Case(
        f"{name}-{dtype}",
        given,
        dict(zip(names, want, strict=True)),
        dict(zip(names, SLACK * np.array(allowed), strict=True)),
        problem.written,
    )


def errors(case: Case, got: Arrays) -> list[str]:
    """What is wrong with the results, in words."""
    if got.keys() != case.want.keys():
        return [f"{case.name}: {sorted(got)} in place of {sorted(case.want)}"]
    found = []
    for name, want in case.want.items():
        written = np.ravel(case.written.get(name, np.ones(want.shape, bool)))
        if (np.isnan(got[name]) == written).any():
            found.append(f"{case.name}: {name}: wrong elements are written")
            continue
        error = np.max(np.abs(got[name] - want), where=written, initial=0)
        if error > case.allowed[name]:
            allowed = case.allowed[name]
            found.append(f"{case.name}: {name}: error {error:.3g}, allowed {allowed:.3g}")
    return found


# --- schedules -------------------------------------------------------------------------------


class Plan(NamedTuple):
    """Which steps are valid, and how they lie in memory."""

    kind: str
    valid: Array  # [T, B]
    time_major: bool
    reversed: bool

    @property
    def config(self) -> dict[str, Any]:
        time, batch = self.valid.shape
        config = {"sequence": [batch, time, self.time_major, self.reversed]}
        if self.kind == "lengths":
            config["lengths"] = self.valid.sum(0)
        elif not self.time_major:
            config["mask"] = self.valid.T
        return config

    def rows(self, values: Array) -> Array:
        """[T, B, ...] as the rows of the input."""
        return values if self.time_major else values.swapaxes(0, 1)

    def output_rows(self, values: Array) -> Array:
        """A mask's output stands in the order of the steps."""
        flips = self.reversed and "mask" in self.config
        return self.rows(values[::-1] if flips else values)


PLANS = ["all", "lengths", "holes"]


def make_plan(rng: np.random.Generator, kind: str, sizes: Sizes, turned: int) -> Plan:
    time, batch = sizes.time, sizes.batch
    valid = np.ones((time, batch), bool)
    if kind == "lengths":
        valid = np.arange(time)[:, None] < rng.integers(0, time + 1, batch)
        valid[0, -1] = True
    if kind == "holes":
        valid = rng.random((time, batch)) < 0.6
    time_major = kind == "all" or (kind == "lengths" and turned % 2 == 0)
    return Plan(kind, valid, time_major, turned // 2 % 2 == 1)


# --- weights ---------------------------------------------------------------------------------


def laid_out(w: Array, by_unit: bool) -> Array:
    """[gates, H, K], cuDNN's layout, as it is or as Keras' [K, gates * H]."""
    return w if by_unit else np.concatenate(w.swapaxes(1, 2), axis=1)


def draw(rng: np.random.Generator, **shapes: tuple[int, ...]) -> Arrays:
    """Pre-activations are of size one: matrices "w", "r" and "p" are scaled by their inputs."""
    return {
        name: rng.normal(size=shape) / (np.sqrt(shape[-1]) if name in ("w", "r", "p") else 1)
        for name, shape in shapes.items()
    }


# --- all cells, in all schedules and both layouts --------------------------------------------


def any_cell(rng: np.random.Generator, sizes: Sizes, mode: str, kind: str, turned: int) -> Problem:
    """mode: a cell, "lstm projected", or with "skipped" x in the place of x W."""
    cell, _, form = mode.partition(" ")
    plan, by_unit = make_plan(rng, kind, sizes, turned), turned // 4 % 2 == 0
    time, batch, inputs, units = sizes
    inputs = units if form == "skipped" else inputs
    hidden = units // 2 + 1 if form == "projected" else units
    gates = cudnn.GATES[cell]
    model = cudnn.Model(cell, inputs, units, 1, 2, hidden, form == "skipped")
    drawn = draw(
        rng,
        x=(time, batch, inputs),
        h0=(batch, hidden),
        c0=(batch, units),
        w=(gates, units, 0 if form == "skipped" else inputs),
        r=(gates, units, hidden),
        p=(hidden if model.is_projected else 0, units),
        bw=(gates, units),
        br=(gates, units),
        h_grad=(time, batch, hidden),
        final_h_grad=(batch, hidden),
        final_c_grad=(batch, units),
        d_x_before=(time, batch, inputs),
    )
    has_state, adds, stride = cell == "lstm", turned % 2 == 1, hidden + 3 * (turned % 3)
    turn = [1, 0, 2] if cell == "gru" and not by_unit else list(range(gates))  # Keras' order

    def matrices(layer: cudnn.Layer) -> Arrays:
        found = {"recurrent": laid_out(layer.r[turn], by_unit)}
        if form != "skipped":
            found["input"] = laid_out(layer.w[turn], by_unit)
        if model.is_projected:
            found["projection"] = layer.projection if by_unit else layer.projection.T
        return found | {"input_bias": layer.bw[turn], "recurrent_bias": layer.br[turn]}

    def wide(rows: Array, fill: float = 0.0) -> Array:
        """Rows that lie `stride` apart."""
        return np.pad(rows, [(0, 0), (0, 0), (0, stride - hidden)], constant_values=fill)

    def given(a: Arrays) -> Arrays:
        found = matrices(cudnn.Layer(a["w"], a["r"], a["p"], a["bw"], a["br"]))
        found |= {"x": plan.rows(a["x"]), "h0": a["h0"], "final_h_grad": a["final_h_grad"]}
        found["h_grad"] = wide(plan.output_rows(a["h_grad"]))
        found |= {"d_x_before": plan.rows(a["d_x_before"])} if adds else {}
        return found | ({k: a[k] for k in ("c0", "final_c_grad")} if has_state else {})

    def want(a: Arrays) -> Arrays:
        layer = cudnn.Layer(a["w"], a["r"], a["p"], a["bw"], a["br"])
        valid, k = plan.valid[:, :, None], int(plan.reversed)
        saved = cudnn.run_layer(model, k, layer, a["x"], a["h0"], a["c0"], valid, block_cell.keep)
        by = cudnn.Results(a["h_grad"], a["final_h_grad"], a["final_c_grad"])
        dx, dh, dc, found = cudnn.run_layer_backward(model, k, layer, saved, by, valid)
        dx = np.where(valid, dx, 0) + (a["d_x_before"] if adds else 0)
        results = {"h": wide(plan.output_rows(saved.output)), "d_x": plan.rows(dx), "d_h0": dh}
        results |= {f"d_{name}": value for name, value in matrices(found).items()}
        return results | ({"final_c": saved.c, "d_c0": dc} if has_state else {})

    seen = plan.valid[:, :, None]
    written = {"h": wide(plan.output_rows(np.broadcast_to(seen, (time, batch, hidden))), False)}
    if not adds:
        written["d_x"] = plan.rows(np.broadcast_to(seen, (time, batch, inputs)))
    order = {"lstm": IFCO, "gru": RUN if by_unit else URN}.get(cell, PLAIN)
    config = {"cell": CELLS[cell], "sizes": [inputs, units, hidden], "gate_order": order}
    config |= {"by_unit": by_unit, "h_stride": stride, **plan.config}
    return Problem(config, drawn, given, want, written)


# --- Keras: dropout of each gate, peepholes, clip --------------------------------------------


def keras_cell(
    rng: np.random.Generator, sizes: Sizes, form: str, kind: str, turned: int
) -> Problem:
    """form: "gru" or "lstm" and the names of what it has."""
    plan = make_plan(rng, kind, sizes, turned)._replace(kind="mask", time_major=False)
    time, batch, inputs, units = sizes
    oracle, gates = (keras_gru, 3) if "gru" in form else (keras_lstm, 4)
    is_lstm, drops, peephole = gates == 4, "dropout" in form, "peephole" in form
    biases = ("input_bias", "recurrent_bias")[: 1 if is_lstm else 2]
    drawn = draw(
        rng,
        x=(batch, time, inputs),
        h0=(batch, units),
        c0=(batch, units),
        w=(gates, units, inputs),
        r=(gates, units, units),
        bias=(len(biases), gates * units),
        peephole=(3, units),
        h_grad=(batch, time, units),
        final_h_grad=(batch, units),
        final_c_grad=(batch, units),
        input_dropout=(gates, batch, inputs),
        recurrent_dropout=(gates, batch, units),
    )
    clip = 0.5 if "clip" in form else None  # below some cell states and above others

    def rows_of_parts(peepholes: Array) -> Array:
        return np.insert(peepholes, 1, 0, axis=0)  # there is none of the candidate

    def given(a: Arrays) -> Arrays:
        found = {k: a[k] for k in ("x", "h0", "h_grad", "final_h_grad")}
        found |= {"input": laid_out(a["w"], False), "recurrent": laid_out(a["r"], False)}
        found |= dict(zip(biases, a["bias"], strict=True))
        found |= {k: a[k] for k in ("c0", "final_c_grad")} if is_lstm else {}
        found |= {k: a[k] for k in ("input_dropout", "recurrent_dropout")} if drops else {}
        return found | ({"peephole": rows_of_parts(a["peephole"])} if peephole else {})

    def want(a: Arrays) -> Arrays:
        factors = {k: a[k] for k in ("input_dropout", "recurrent_dropout")} if drops else {}
        options = keras_lstm.Options(plan.valid.T, plan.reversed, True, clip, **factors)
        states = {"c0": a["c0"]} if is_lstm else {}
        arguments = oracle.Arguments(
            x=a["x"],
            h0=a["h0"],
            kernel=laid_out(a["w"], False),
            recurrent_kernel=laid_out(a["r"], False),
            bias=a["bias"][0] if is_lstm else a["bias"],
            **states,
            **({"peephole": a["peephole"] * peephole} if is_lstm else {}),
        )
        forward = keras_lstm.keras_lstm if is_lstm else keras_gru.keras_gru
        backward = keras_lstm.keras_lstm_backward if is_lstm else keras_gru.keras_gru_backward
        saved = forward(arguments, options)
        final = [a["final_h_grad"], *([a["final_c_grad"]] if is_lstm else [])]
        d = backward(arguments, oracle.Results(a["h_grad"], *final), options)
        results = {"h": saved.outputs, "d_x": d.x, "d_h0": d.h0}
        results |= {"d_input": d.kernel, "d_recurrent": d.recurrent_kernel}
        results |= dict(
            zip([f"d_{b}" for b in biases], np.reshape(d.bias, (len(biases), -1)), strict=True)
        )
        results |= {"final_c": saved.c, "d_c0": d.c0} if is_lstm else {}
        return results | ({"d_peephole": rows_of_parts(d.peephole)} if peephole else {})

    shape = (time, batch, max(inputs, units))
    seen = np.broadcast_to(plan.valid[:, :, None], shape)
    written = {"h": plan.output_rows(seen[:, :, :units]), "d_x": plan.rows(seen[:, :, :inputs])}
    written["d_peephole"] = rows_of_parts(np.ones((3, units), bool))
    config = {"cell": CELLS["lstm" if is_lstm else "gru"], "sizes": [inputs, units, units]}
    config |= {"gate_order": IFCO if is_lstm else URN, "cell_clip": clip or 0, "h_stride": units}
    return Problem(config | plan.config, drawn, given, want, written)


# --- the block cell: gradients of all seven outputs ------------------------------------------


def block(rng: np.random.Generator, sizes: Sizes, peephole: bool, clip: float) -> Problem:
    time, batch, inputs, units = sizes
    drawn = draw(
        rng,
        x=(time, batch, inputs),
        cs_prev=(batch, units),
        h_prev=(batch, units),
        w=(4 * units, inputs + units),
        peephole=(3, units),
        b=(4 * units,),
        upstream=(7, time, batch, units),
    )
    drawn["w"] = drawn["w"].T
    options = {"use_peephole": peephole, "gate_order": "icfo"}

    def given(a: Arrays) -> Arrays:
        found = {"x": a["x"], "c0": a["cs_prev"], "h0": a["h_prev"], "input_bias": a["b"]}
        found |= {"input": a["w"][:inputs], "recurrent": a["w"][inputs:]}
        found |= {f"saved_grad{k}": grad for k, grad in enumerate(a["upstream"][:6])}
        found |= {"h_grad": a["upstream"][6], "final_h_grad": 0 * a["h_prev"]}
        found |= {"final_c_grad": 0 * a["cs_prev"]}
        return found | ({"peephole": np.insert(a["peephole"], 1, 0, axis=0)} if peephole else {})

    def want(a: Arrays) -> Arrays:
        inputs_ = block_cell.Inputs(
            a["x"], a["cs_prev"], a["h_prev"], a["w"], *a["peephole"], a["b"]
        )
        saved = block_cell.sequence(time, inputs_, forget_bias=0.75, cell_clip=clip, **options)
        upstream = block_cell.Outputs(*a["upstream"])
        d = block_cell.sequence_backward(time, inputs_, saved, upstream, **options)
        results = {f"saved{k}": value for k, value in enumerate(saved[:6])}
        results |= {"h": saved.h, "final_c": saved.cs[-1], "d_x": d.x}
        results |= {"d_c0": d.cs_prev, "d_h0": d.h_prev, "d_input_bias": d.b}
        results |= {"d_input": d.w[:inputs], "d_recurrent": d.w[inputs:]}
        peepholes = np.stack([d.wci, 0 * d.wci, d.wcf, d.wco])
        return results | ({"d_peephole": peepholes} if peephole else {})

    config = {"cell": CELLS["lstm"], "sizes": [inputs, units, units], "gate_order": ICFO}
    config |= {"forget_bias": 0.75, "cell_clip": clip, "h_stride": units, "saved": range(6)}
    config |= {"sequence": [batch, time, 1, 0]}
    written = {"d_peephole": np.insert(np.ones((3, units), bool), 1, False, axis=0)}
    return Problem(config, drawn, given, want, written)


# --- MPSGraph: any activations, four peepholes, x in the place of x W ------------------------


def general_lstm(rng: np.random.Generator, sizes: Sizes, options: GeneralLstm) -> Problem:
    time, batch, inputs, units = sizes
    case = replace(options, time=time, batch=batch, inputs=inputs, units=units)
    case = replace(case, init_state=True, init_cell=True, mask="full")
    arguments, mask = general_arguments(rng, case)
    named = {"dropout": mask, **present(arguments)._asdict()}
    rows = (time, batch, units)
    upstream = draw(
        rng,
        output=rows,
        state=rows[1:],
        final_cell=rows[1:],
        cell=rows,
        z_state=(*rows[:2], 4 * units),
    )
    parts = ICFO if case.forget_gate_last else IFCO
    of_engine = {"input_weight": "input", "recurrent_weight": "recurrent", "bias": "input_bias"}

    def by_row(values: mpsgraph.Results) -> Arrays:
        """The kept rows of cell and z_state, [T, B, H] each."""
        blocks = np.split(values.z_state, 4, axis=2)
        i, c, f, o = (blocks[k] for k in parts)
        return {"0": i, "1": values.cell, "2": f, "3": o, "4": c}

    def peepholes(p: Array) -> Array:
        return p.reshape(4, units)[parts]

    def given(a: Arrays) -> Arrays:
        by = mpsgraph.Results(*(a[name] for name in mpsgraph.Results._fields))
        found = {"x": a["source"], "h0": a["init_state"], "c0": a["init_cell"]}
        found |= {name: a[k] for k, name in of_engine.items() if k in a}
        found |= {"recurrent_dropout": np.broadcast_to(a["dropout"], (4, batch, units))}
        found |= {f"saved_grad{k}": grad for k, grad in by_row(by).items()}
        found |= {"h_grad": by.output, "final_h_grad": by.state, "final_c_grad": by.final_cell}
        return found | ({"peephole": peepholes(a["peephole"])} if case.peephole else {})

    def want(a: Arrays) -> Arrays:
        arguments = mpsgraph.Arguments(*(a.get(name) for name in mpsgraph.Arguments._fields))
        by = mpsgraph.Results(*(a[name] for name in mpsgraph.Results._fields))
        how = case.options(a["dropout"])
        saved = mpsgraph.mpsgraph_lstm(arguments, how)
        d = mpsgraph.mpsgraph_lstm_backward(arguments, saved.cell, saved.z_state, by, how)
        results = {f"saved{k}": row for k, row in by_row(saved).items()}
        results |= {"h": saved.output, "final_c": saved.final_cell}
        results |= {"d_x": d.source, "d_h0": d.init_state, "d_c0": d.init_cell}
        results |= {f"d_{name}": getattr(d, k) for k, name in of_engine.items() if k in a}
        return results | ({"d_peephole": peepholes(d.peephole)} if case.peephole else {})

    gates = [
        getattr(case, f"{gate}_activation")
        for gate in ("input_gate", "cell_gate", "forget_gate", "output_gate")
    ]
    width = inputs if case.input_weight else units
    config = {"cell": CELLS["general"], "sizes": [width, units, units], "gate_order": parts}
    config |= {"activations": [ACTIVATIONS.index(a) for a in (*gates, case.activation)]}
    config |= {"by_unit": 1, "h_stride": units, "saved": range(5), "keeps_h": 0}
    config |= {"x_gate_stride": 0 if case.input_weight else units}
    config |= {"sequence": [batch, time, 1, case.direction == "reverse"]}
    return Problem(config, {**named, **upstream}, given, want)


# --- the grid --------------------------------------------------------------------------------

CELL_FORMS = [
    "lstm",
    "lstm projected",
    "lstm skipped",
    "gru",
    "gru skipped",
    "rnn_tanh",
    "rnn_relu",
]
KERAS_FORMS = [
    "lstm",
    "lstm dropout clip",
    "lstm peephole",
    "lstm peephole clip",
    "lstm peephole clip dropout",
    "gru dropout",
]
DIRECTED = [case for case in PAIRS if case.direction != "bidirectional"]


def problems() -> Iterator[tuple[str, Callable[[np.random.Generator], Problem]]]:
    """Every form in every size; schedules, layouts and the general LSTM's options in turn."""
    for n, (form, sizes) in enumerate(itertools.product(CELL_FORMS, SIZES)):
        for k, kind in enumerate(PLANS):
            yield (
                f"{form}-{kind}-{tuple(sizes)}",
                lambda rng, a=(sizes, form, kind, n + k): any_cell(rng, *a),
            )
    for n, (form, sizes) in enumerate(itertools.product(KERAS_FORMS, SIZES)):
        kind = PLANS[n % len(PLANS)]
        yield (
            f"keras-{form}-{kind}-{tuple(sizes)}",
            lambda rng, a=(sizes, form, kind, n): keras_cell(rng, *a),
        )
    for sizes, (peephole, clip) in itertools.product(SIZES, [(False, 0), (True, 0), (True, 0.25)]):
        yield (
            f"block-{peephole}-{clip}-{tuple(sizes)}",
            lambda rng, a=(sizes, peephole, clip): block(rng, *a),
        )
    for sizes, case in zip(itertools.cycle(SIZES), DIRECTED, strict=False):
        yield (
            f"general-{case}-{tuple(sizes)}",
            lambda rng, a=(sizes, case): general_lstm(rng, *a),
        )


def make_cases() -> list[Case]:
    return [
        make_case(name, dtype, make(np.random.default_rng(zlib.crc32(name.encode()))))
        for name, make in problems()
        for dtype in BITS
    ]
