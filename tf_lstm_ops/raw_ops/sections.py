"""The sections of the docstrings of the ops: arguments, results and errors, each text once."""

from __future__ import annotations

import fnmatch
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """A text of a section.

    Attributes:
      names: the arguments that it describes; none in RETURNS and RAISES.
      pattern: of the names of the ops that have it.
      text: the text in one line; ``{}`` is the default value of the first argument.
    """

    names: tuple[str, ...]
    pattern: str
    text: str


def _entries(table: str) -> tuple[Entry, ...]:
    """Reads a table."""
    found = []
    for lines in re.split(r"\n(?! )", table.strip()):
        head, _, text = " ".join(lines.split()).partition(": ")
        names, _, pattern = head.partition("(")
        found.append(Entry(tuple(re.findall(r"\w+", names)), pattern.rstrip(")") or "*", text))
    return tuple(found)


ARGUMENTS = _entries("""
seq_len_max: int64 scalar in [0, T], the number of steps to compute, for all rows.
x (LSTM*): [B, I], the input. B and I may be 0.
x (Block*): [T, B, I], the input. T, B and I may be 0.
cs_prev, h_prev (LSTM*): [B, H], the cell state and the output of the previous step. H is positive.
cs_prev, h_prev (Block*): [B, H], the cell state and the output before the first step. H is
  positive.
w (*V2): [I+H, 4H], I rows that multiply x, then H rows that multiply h. The four blocks of columns
  are the gates i, f, c, o.
w: [I+H, 4H], I rows that multiply x, then H rows that multiply h. The four blocks of columns are
  the gates i, c, f, o.
wci, wcf, wco: [H], the peephole weights of the gates i, f and o. Required, but read only with
  `use_peephole`.
b: [4H], the bias, with the gates in the order of w.
i, cs, f, o, ci, co, h (Block*): [T, B, H], the outputs of the forward op: the gates, the cell
  state, the candidate, tanh(cs) and the output.
i, cs, f, o, ci, co (LSTM*): [B, H], the outputs of the forward op: the gates, the cell state, the
  candidate and tanh(cs).
cs_grad, h_grad (Block*): [T, B, H], the gradients of the loss with respect to cs and h.
cs_grad, h_grad (LSTM*): [B, H], the gradients of the loss with respect to cs and h.
forget_bias: added to the pre-activation of the forget gate. Default {}.
cell_clip: limits the cell state to [-cell_clip, cell_clip]. 0 or less: no limit. Default {}.
use_peephole (*Grad*): as in the forward call. No default.
use_peephole: whether to add the peephole terms. The gates i and f then read cs_prev, the gate o
  reads the new cell state. Default {}.
input (*V3): [T, B, I], the input; [B, T, I] without `time_major`. Steps past a length are not read.
input: [T, B, I], the input.
input_h (*V3): [L*D, B, P], the initial outputs; [B, L*D, P] without `time_major`. Layer l and
  direction d have the index l * D + d.
input_h: [L*D, B, H], the initial outputs. Layer l and direction d have the index l * D + d.
input_c (*V3): [L*D, B, H], the initial cell states; [B, L*D, H] without `time_major`. Read only if
  rnn_mode is "lstm".
input_c: [L*D, B, H], the initial cell states; read only if rnn_mode is "lstm".
params: [params_size], all weights in cuDNN's layout.
sequence_lengths: int32 [B], the number of steps of each row, in [0, T] and in any order.
output, output_h, output_c, reserve_space: the outputs of the forward call, with is_training=True.
output_backprop, output_h_backprop, output_c_backprop: the gradients of the loss with respect to
  output, output_h and output_c, with their shapes.
host_reserved: the output of the forward call; not read.
num_layers, num_units, input_size: int32 scalars L, H and I, all positive.
T: the type of the params. The result does not depend on it. No default.
S: the type of the result, int32 or int64. No default.
weights (*V2): a list. For each layer and direction it has the input matrices of the gates, [H, I]
  in the first layer and [H, D*P] in the others, then the recurrent matrices [H, P], then the
  projection [P, H] if there is one. The gates are in cuDNN's order, i, f, c, o or r, u, n. The
  input matrices of a skipped input are [H, 0].
weights: a list. For each layer and direction it has the input matrices of the gates, [H, I] in the
  first layer and [H, D*H] in the others, then the recurrent matrices [H, H]. The gates are in
  cuDNN's order, i, f, c, o or r, u, n. The input matrices of a skipped input are [H, 0].
biases: a list. For each layer and direction it has the input biases of the gates, [H] each, then
  the recurrent ones.
num_params: the length of each of the two lists to return. No default.
num_params_weights, num_params_biases: the lengths of the two lists to return. No default.
rnn_mode: "lstm", "gru", "rnn_tanh" or "rnn_relu". Default {}.
input_mode: "linear_input"; "skip_input": the first layer adds its input to every gate without a
  matrix, which requires I == H; "auto_select": "skip_input" if I == H, else "linear_input". Default
  {}.
direction: "unidirectional" (D = 1) or "bidirectional" (D = 2). Default {}.
dropout, seed, seed2 (*Backprop*): as in the forward call. Defaults 0.0, 0 and 0.
dropout, seed, seed2 (*Params*): no effect on the result. Defaults 0.0, 0 and 0.
dropout: the probability in [0, 1] with which an output element of a layer is dropped before the
  next layer, in training. Default {}.
seed, seed2: the seeds of dropout. Default {}; two zeros are an ordinary seed.
num_proj: the size P to which an LSTM projects its outputs, at most H. Default {}: no projection.
is_training: whether dropout applies and activations are saved for the gradient. Default {}.
time_major: if True, the first axis is time, for the states the layer; if False, the batch. Default
  {}.
source: [T, N, I], the input; without `input_weight` [T, N, D*4H], the input times the input
  weights.
recurrent_weight: [4H, H]; [2, 4H, H] if `bidirectional`.
source_gradient: [T, N, D*H], the gradient of the loss with respect to `output`.
z_state, cell_output_fwd: `z_state` [T, N, D*4H] and `cell` [T, N, D*H] of the forward call, with
  training=True.
input_weight: [D*4H, I]. Default {}: source already holds the products.
bias: [D*4H]. Default {}: zeros.
init_state, init_cell: [N, D*H], the initial output and cell state. Default {}: zeros.
mask: at most of rank 2, multiplies the previous output at every step; it broadcasts to [N, D*H].
  Default {}: ones.
peephole: [4H]; [2, 4H] if `bidirectional`. All gates read the previous cell state. Default {}:
  zeros.
state_gradient, cell_gradient: [N, D*H] or [1, N, D*H], the gradients of h and c after the last
  computed step of each direction. Default {}: zeros.
reverse: whether to compute from the last step to the first; ignored if `bidirectional`. Default {}.
bidirectional: whether to compute in both directions (D = 2). The outputs are concatenated, forward
  first. Default {}.
produce_cell: whether to return `cell`. Default {}.
training: whether to return `cell` and `z_state`. Default {}.
forget_gate_last: whether the gate order is i, z, f, o rather than i, f, z, o. Default {}.
input_gate_activation, forget_gate_activation, output_gate_activation: the activations of the gates
  i, f and o: "none", "relu", "tanh", "sigmoid" or "hard_sigmoid". Default {}.
cell_gate_activation: the activation of the candidate z. Default {}.
activation: the activation of the cell state in the output. Default {}.
name: the name of the op in a graph. Default: the op's own name.
""")

RETURNS = _entries("""
(BlockLSTMGrad*): The gradients as a named tuple with the fields x_grad, cs_prev_grad, h_prev_grad,
  w_grad, wci_grad, wcf_grad, wco_grad, b_grad. Each has the shape of its argument. x_grad is zero
  at steps t >= seq_len_max. The gradients of the peepholes are zero without `use_peephole`.
(BlockLSTM*): The outputs as a named tuple with the fields i, cs, f, o, ci, co, h, each [T, B, H].
  i, f and o are the gates, ci is the candidate, cs the cell state, co = tanh(cs) and h the output.
  All are zero at steps t >= seq_len_max.
(LSTMBlockCellGrad): The gradients as a named tuple with the fields cs_prev_grad [B, H], dicfo [B,
  4H], wci_grad, wcf_grad and wco_grad [H]. dicfo holds the gradients of the pre-activations in the
  gate order i, c, f, o. The gradients of the peepholes are zero without `use_peephole`.
(LSTMBlockCell): The outputs as a named tuple with the fields i, cs, f, o, ci, co, h, each [B, H].
  i, f and o are the gates, ci is the candidate, cs the cell state, co = tanh(cs) and h the output.
(CudnnRNN): The outputs as a named tuple with the fields output [T, B, D*H], output_h, output_c and
  reserve_space. output_h and output_c are the final states, with the shapes of the initial ones.
  output_c is a scalar unless rnn_mode is "lstm". reserve_space holds the activations for the
  gradient op; it is a scalar without `is_training`.
(CudnnRNNV2): The outputs as a named tuple with the fields output [T, B, D*H], output_h, output_c,
  reserve_space and host_reserved. output_h and output_c are the final states, with the shapes of
  the initial ones. output_c is a scalar unless rnn_mode is "lstm". reserve_space holds the
  activations for the gradient op; it is a scalar without `is_training`. host_reserved is int8
  zeros, [2] with `is_training`, else a scalar.
(CudnnRNNV3): The outputs as a named tuple with the fields output, output_h, output_c, reserve_space
  and host_reserved. output is [T, B, D*P], or [B, T, D*P] without `time_major`, and zero past each
  length. output_h and output_c are the states after the last step of each row, with the shapes of
  the initial ones. For a row of length 0 they are the initial ones. output_c is a scalar unless
  rnn_mode is "lstm". reserve_space holds the activations for the gradient op; it is a scalar
  without `is_training`. host_reserved is an int8 scalar.
(CudnnRNNBackpropV3): The gradients as a named tuple with the fields input_backprop,
  input_h_backprop, input_c_backprop, params_backprop. Each has the shape of its argument.
  input_c_backprop is zero unless rnn_mode is "lstm". input_backprop is zero past each length.
(CudnnRNNBackprop*): The gradients as a named tuple with the fields input_backprop,
  input_h_backprop, input_c_backprop, params_backprop. Each has the shape of its argument.
  input_c_backprop is zero unless rnn_mode is "lstm".
(CudnnRNNParamsSize): [1] of the type S, the number of elements.
(*ToParams*): [params_size], a copy of the matrices and biases in cuDNN's layout.
(*ToCanonical): Copies as a named tuple with the fields weights and biases, the lists that
  CudnnRNNCanonicalToParams takes.
(*ToCanonicalV2): Copies as a named tuple with the fields weights and biases, the lists that
  CudnnRNNCanonicalToParamsV2 takes.
(MPSGraphLSTM): The outputs as a named tuple with the fields output, cell and z_state. Each step has
  the index of its input.
(*Gradients): The gradients as a named tuple with the fields source, recurrent_weight, input_weight,
  bias, peephole, init_state, init_cell. Each has the shape of its argument, and is None if that is
  None.
""")

# Of tf.errors.InvalidArgumentError.
RAISES = _entries("""
(BlockLSTM*): an argument has the wrong rank, size or type, or seq_len_max is not in [0, T].
(LSTMBlockCell*): an argument has the wrong rank, size or type.
(CudnnRNNV3): an argument has the wrong rank, size or type, or an attribute a value that is not
  allowed, or a length is not in [0, T].
(CudnnRNNBackpropV3): an argument has the wrong rank, size or type, or an attribute a value that is
  not allowed, or a length is not in [0, T]; or reserve_space is not that of a call with the same
  arguments.
(CudnnRNNBackprop*): an argument has the wrong rank, size or type, or an attribute a value that is
  not allowed; or reserve_space is not that of a call with the same arguments.
(CudnnRNNParamsSize): an argument is no scalar of its type, or its value is not allowed.
(*ToParams*): a list has the wrong length, an element the wrong size or type, or an attribute a
  value that is not allowed.
(*ToCanonical*): params has the wrong size or type, a list the wrong length, or an attribute a value
  that is not allowed.
(CudnnRNN*): an argument has the wrong rank, size or type, or an attribute a value that is not
  allowed.
(MPSGraph*): an argument has the wrong rank, size or type, or an activation is unknown.
""")


def of_op(table: tuple[Entry, ...], op: str) -> list[Entry]:
    """The entries for an op.

    Args:
      table: one of the tables.
      op: the op's name.

    Returns:
      The entries whose pattern fits.
    """
    return [entry for entry in table if fnmatch.fnmatchcase(op, entry.pattern)]


def of_arguments(op: str, arguments: Iterable[str]) -> list[Entry]:
    """The entries for the arguments of an op.

    Args:
      op: the op's name.
      arguments: their names, in the order of the signature.

    Returns:
      The entries in this order. An argument that no entry describes is passed over.
    """
    names = list(arguments)
    known = [entry for entry in of_op(ARGUMENTS, op) if set(entry.names) <= set(names)]
    first = (next((e for e in known if name in e.names), None) for name in names)
    return [entry for entry in dict.fromkeys(first) if entry]


def completed(function: Callable[..., Any]) -> str:
    """The docstring of an op with its sections.

    Args:
      function: the op's function. Its own docstring has no sections.

    Returns:
      The docstring without indentation.
    """
    op, parameters = function.__name__, inspect.signature(function).parameters
    lines = [inspect.cleandoc(function.__doc__ or ""), "", "Args:"]
    for entry in of_arguments(op, parameters):
        default = parameters[entry.names[0]].default
        shown = f'"{default}"' if isinstance(default, str) else str(default)
        lines += _wrapped(f"{', '.join(entry.names)}: {entry.text.replace('{}', shown)}")
    returns, raises = of_op(RETURNS, op)[:1], of_op(RAISES, op)[:1]
    lines += ["", "Returns:", *(line for e in returns for line in _wrapped(e.text, "  "))]
    error = "InvalidArgumentError: "
    lines += ["", "Raises:", *(line for e in raises for line in _wrapped(error + e.text))]
    return "\n".join([*lines, ""])


def _wrapped(text: str, indentation: str = "    ") -> list[str]:
    """The lines of an entry, up to the width of the source without a docstring's indentation."""
    return textwrap.wrap(
        text, 96, initial_indent="  ", subsequent_indent=indentation, break_on_hyphens=False
    )
