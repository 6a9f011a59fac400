"""Problems for engine_program.cc: the arrays of a call, and what the float64 oracle expects.

The oracle of a dialect serves what only its op has: cudnn_rnn for all cells, projections and
sequences; keras_lstm and keras_gru for dropout, peepholes and clip; layer_norm for layer
normalisation; block_cell for the gradients of all outputs; mpsgraph for the LSTM with custom
activations.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mpsgraph.cases import Case as CustomLstm
from mpsgraph.cases import present
from mpsgraph.cases import random_arguments as custom_arguments
from oracle import block_cell, keras_gru, keras_lstm, layer_norm, mpsgraph
from oracle import cudnn_rnn as cudnn

from .engine_case import (
    ACTIVATIONS,
    CELLS,
    ICFO,
    IFCO,
    PLAIN,
    RUN,
    URN,
    Problem,
    Sizes,
    draw,
    laid_out,
    make_plan,
)

Array = np.ndarray
Arrays = dict[str, Array]
Cast = Callable[[Array], Array]


# --- all cells, in all sequences and both layouts --------------------------------------------


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
    """form: "gru", "reset_before_gru" or "lstm", and the names of what it has."""
    plan = make_plan(rng, kind, sizes, turned)._replace(kind="mask", time_major=False)
    time, batch, inputs, units = sizes
    oracle, gates = (keras_gru, 3) if "gru" in form else (keras_lstm, 4)
    cell = form.split()[0]
    is_lstm, drops, peephole = gates == 4, "dropout" in form, "peephole" in form
    biases = ("input_bias", "recurrent_bias")[: 2 if cell == "gru" else 1]
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
            bias=a["bias"] if cell == "gru" else a["bias"][0],
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
    config = {"cell": CELLS[cell], "sizes": [inputs, units, units]}
    config |= {"gate_order": IFCO if is_lstm else URN, "cell_clip": clip or 0, "h_stride": units}
    return Problem(config | plan.config, drawn, given, want, written)


# --- Keras: layer normalisation ---------------------------------------------------------------


def norm_cell(rng: np.random.Generator, sizes: Sizes, form: str, kind: str, turned: int) -> Problem:
    """form: "norm_lstm" or "norm_gru", "carries" if the next step reads n, "dropout"."""
    plan = make_plan(rng, kind, sizes, turned)._replace(kind="mask", time_major=False)
    cell = form.split()[0]
    is_lstm, drops = cell == "norm_lstm", "dropout" in form
    time, batch, inputs, units = sizes
    gates = 4 if is_lstm else 3
    biases = ("input_bias", "recurrent_bias")[: 1 if is_lstm else 2]
    of_state = (units,) if is_lstm else (0,)
    drawn = draw(
        rng,
        x=(batch, time, inputs),
        h0=(batch, units),
        c0=(batch, units) if is_lstm else (0,),
        w=(gates, units, inputs),
        r=(gates, units, units),
        bias=(len(biases), gates * units),
        input_scale=(gates * units,),
        recurrent_scale=(gates * units,),
        state_scale=of_state,
        state_offset=of_state,
        h_grad=(batch, time, units),
        final_h_grad=(batch, units),
        final_c_grad=(batch, units) if is_lstm else (0,),
        input_dropout=(gates, batch, inputs),
        recurrent_dropout=(gates, batch, units),
    )
    scales = ("input_scale", "recurrent_scale", *(("state_scale", "state_offset") * is_lstm))
    states = ("c0", "final_c_grad") * is_lstm
    multipliers = ("input_dropout", "recurrent_dropout") * drops
    options = layer_norm.Options(
        plan.valid.T, plan.reversed, True, epsilon=0.25, carries_n="carries" in form
    )

    def given(a: Arrays) -> Arrays:
        names = ("x", "h0", "h_grad", "final_h_grad", *scales, *states, *multipliers)
        found = {k: a[k] for k in names}
        found |= {"input": laid_out(a["w"], False), "recurrent": laid_out(a["r"], False)}
        return found | dict(zip(biases, a["bias"], strict=True))

    def want(a: Arrays) -> Arrays:
        how = options._replace(**{k: a[k] for k in multipliers})
        arguments = layer_norm.Arguments(
            a["x"],
            a["h0"],
            a["c0"],
            laid_out(a["w"], False),
            laid_out(a["r"], False),
            a["bias"][0] if is_lstm else a["bias"],
            a["input_scale"],
            a["recurrent_scale"],
            a["state_scale"],
            a["state_offset"],
        )
        saved = layer_norm.layer_norm(arguments, how)
        grads = layer_norm.Results(a["h_grad"], a["final_h_grad"], a["final_c_grad"])
        d = layer_norm.layer_norm_backward(arguments, grads, how)
        results = {"h": saved.outputs, "d_x": d.x, "d_h0": d.h0}
        results |= {"d_input": d.kernel, "d_recurrent": d.recurrent_kernel}
        results |= {"d_input_scale": d.input_gamma, "d_recurrent_scale": d.recurrent_gamma}
        bias = np.reshape(d.bias, (len(biases), -1))
        results |= dict(zip([f"d_{b}" for b in biases], bias, strict=True))
        if not is_lstm:
            return results
        results |= {"d_state_scale": d.state_gamma, "d_state_offset": d.state_beta}
        return results | {"final_c": saved.c, "d_c0": d.c0}

    shape = (time, batch, max(inputs, units))
    seen = np.broadcast_to(plan.valid[:, :, None], shape)
    written = {"h": plan.output_rows(seen[:, :, :units]), "d_x": plan.rows(seen[:, :, :inputs])}
    config = {"cell": CELLS[cell], "sizes": [inputs, units, units], "h_stride": units}
    config |= {"gate_order": IFCO if is_lstm else URN, **plan.config}
    config |= {"epsilon": options.epsilon, "carries_n": options.carries_n}
    return Problem(config, drawn, given, want, written)


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


def custom_lstm(rng: np.random.Generator, sizes: Sizes, options: CustomLstm) -> Problem:
    time, batch, inputs, units = sizes
    case = replace(options, time=time, batch=batch, inputs=inputs, units=units)
    case = replace(case, init_state=True, init_cell=True, mask="full")
    arguments, mask = custom_arguments(rng, case)
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
    config = {"cell": CELLS["custom"], "sizes": [width, units, units], "gate_order": parts}
    config |= {"activations": [ACTIVATIONS[a] for a in (*gates, case.activation)]}
    config |= {"by_unit": 1, "h_stride": units, "saved": range(5), "keeps_h": 0}
    config |= {"x_gate_stride": 0 if case.input_weight else units}
    config |= {"sequence": [batch, time, 1, case.direction == "reverse"]}
    return Problem(config, {**named, **upstream}, given, want)
