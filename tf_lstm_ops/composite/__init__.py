"""The equations of the ops in plain TensorFlow ops, differentiable any number of times.

The fused kernels compute values and first derivatives. Second and higher derivatives go through
these composites, and so does every call where only plain ops may run (`plain_ops_required`): in XLA
and in portable exports. Every dialect's module has a table ``COMPOSITES`` by the op's name;
dialects.py joins them. 16-bit types are computed in float32, as in the kernels.
"""

from tf_lstm_ops.composite.common import masked_clip, straight_through_clip
from tf_lstm_ops.composite.context import plain_ops, plain_ops_required, unrolled

__all__ = [
    "masked_clip",
    "plain_ops",
    "plain_ops_required",
    "straight_through_clip",
    "unrolled",
]
