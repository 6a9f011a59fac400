"""The types in the signatures of `raw_ops`, for type checkers and editors.

Written by scripts/raw_ops_types.py from the op definitions. An op of several outputs returns a
namedtuple that TensorFlow generates, not an instance of the class here: the class has its fields.
Ops with the same outputs share a class.
The ops import this module for type checkers only. At run time `typing.get_type_hints` therefore
needs `localns=vars(types)`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

# TensorFlow has no types of its own, so that a checker accepts everything here.
Tensor: TypeAlias = Any  # tf.Tensor
TensorLike: TypeAlias = Any  # a tensor, a variable, an array, or plain Python values
DTypeLike: TypeAlias = Any  # a tf.DType, or what tf.as_dtype converts to one


class BlockLSTMResults(NamedTuple):
    """The results of BlockLSTM, BlockLSTMV2, LSTMBlockCell.

    Attributes:
      i, cs, f, o, ci, co, h: see the function.
    """

    i: Tensor
    cs: Tensor
    f: Tensor
    o: Tensor
    ci: Tensor
    co: Tensor
    h: Tensor


BlockLSTMV2Results: TypeAlias = BlockLSTMResults
LSTMBlockCellResults: TypeAlias = BlockLSTMResults


class BlockLSTMGradResults(NamedTuple):
    """The results of BlockLSTMGrad, BlockLSTMGradV2.

    Attributes:
      x_grad, cs_prev_grad, h_prev_grad, w_grad, wci_grad, wcf_grad, wco_grad, b_grad: see the
        function.
    """

    x_grad: Tensor
    cs_prev_grad: Tensor
    h_prev_grad: Tensor
    w_grad: Tensor
    wci_grad: Tensor
    wcf_grad: Tensor
    wco_grad: Tensor
    b_grad: Tensor


BlockLSTMGradV2Results: TypeAlias = BlockLSTMGradResults


class CudnnRNNResults(NamedTuple):
    """The results of CudnnRNN.

    Attributes:
      output, output_h, output_c, reserve_space: see the function.
    """

    output: Tensor
    output_h: Tensor
    output_c: Tensor
    reserve_space: Tensor


class CudnnRNNBackpropResults(NamedTuple):
    """The results of CudnnRNNBackprop, CudnnRNNBackpropV2, CudnnRNNBackpropV3.

    Attributes:
      input_backprop, input_h_backprop, input_c_backprop, params_backprop: see the function.
    """

    input_backprop: Tensor
    input_h_backprop: Tensor
    input_c_backprop: Tensor
    params_backprop: Tensor


CudnnRNNBackpropV2Results: TypeAlias = CudnnRNNBackpropResults
CudnnRNNBackpropV3Results: TypeAlias = CudnnRNNBackpropResults


class CudnnRNNParamsToCanonicalResults(NamedTuple):
    """The results of CudnnRNNParamsToCanonical, CudnnRNNParamsToCanonicalV2.

    Attributes:
      weights, biases: see the function.
    """

    weights: list[Tensor]
    biases: list[Tensor]


CudnnRNNParamsToCanonicalV2Results: TypeAlias = CudnnRNNParamsToCanonicalResults


class CudnnRNNV2Results(NamedTuple):
    """The results of CudnnRNNV2, CudnnRNNV3.

    Attributes:
      output, output_h, output_c, reserve_space, host_reserved: see the function.
    """

    output: Tensor
    output_h: Tensor
    output_c: Tensor
    reserve_space: Tensor
    host_reserved: Tensor


CudnnRNNV3Results: TypeAlias = CudnnRNNV2Results


class LSTMBlockCellGradResults(NamedTuple):
    """The results of LSTMBlockCellGrad.

    Attributes:
      cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad: see the function.
    """

    cs_prev_grad: Tensor
    dicfo: Tensor
    wci_grad: Tensor
    wcf_grad: Tensor
    wco_grad: Tensor
