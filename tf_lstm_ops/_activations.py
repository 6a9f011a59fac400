"""The activation functions: their names and numbers in each format.

`composite.activations` has them in TensorFlow's ops. This module imports nothing of the package.
"""
# C++ has them in cc/core/activation.h and cc/core/functions.h.

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

Form = tuple[str, Mapping[str, float]]


@dataclasses.dataclass(frozen=True)
class Activation:
    """A function.

    Attributes:
      number: in the file of a session, and in C++.
      name: in this package, and in ``keras.activations`` if `is_of_keras`.
      defaults: the numbers that it takes; empty: it takes none.
      is_of_keras: whether ``keras.activations`` has a function of the name that needs no argument.
      is_named: whether it has a name for users.
      torch: the class in ``torch.nn``, and the options that are the numbers, with their defaults.
      onnx: the operator, and the attributes that are the numbers, with their defaults.
      onnx_cell: the name in recurrent nodes of ONNX, and the alpha and beta with which it is this
        function; None: the function there has no such number.
      is_of_rtneural: whether RTNeural's files have the name.
    """

    number: int
    name: str
    defaults: tuple[float, ...] = ()
    is_of_keras: bool = True
    is_named: bool = True
    torch: Form | None = None
    onnx: Form | None = None
    onnx_cell: tuple[str, float | None, float | None] | None = None
    is_of_rtneural: bool = False

    @property
    def is_of_cells(self) -> bool:
        """Whether the ops of recurrent layers have it."""
        return self.number < _FIRST_OF_SESSIONS


_FIRST_OF_SESSIONS = 16


def _only(name: str) -> Form:
    return name, {}


def _everywhere(number: int, name: str, torch: str, onnx: str, is_of_rtneural: bool) -> Activation:
    """A function without numbers that PyTorch, ONNX and its recurrent nodes have."""
    return Activation(
        *(number, name),
        torch=_only(torch),
        onnx=_only(onnx),
        onnx_cell=(onnx, None, None),
        is_of_rtneural=is_of_rtneural,
    )


TABLE = (
    Activation(0, "linear", onnx_cell=("Affine", 1.0, 0.0), is_of_rtneural=True),
    _everywhere(1, "relu", "ReLU", "Relu", True),
    _everywhere(2, "tanh", "Tanh", "Tanh", True),
    _everywhere(3, "sigmoid", "Sigmoid", "Sigmoid", True),
    Activation(
        4, "hard_sigmoid", torch=_only("Hardsigmoid"), onnx_cell=("HardSigmoid", 1 / 6, 0.5)
    ),
    Activation(5, "hard_tanh"),
    _everywhere(6, "softsign", "Softsign", "Softsign", False),
    Activation(7, "elu", onnx_cell=("Elu", 1.0, None), is_of_rtneural=True),
    Activation(8, "leaky_relu", onnx_cell=("LeakyRelu", 0.2, None)),
    Activation(9, "silu", torch=_only("SiLU")),
    Activation(10, "gelu"),
    # Those of sessions only.
    Activation(16, "softmax", is_of_rtneural=True),
    # Slope, maximum or 0 for none, threshold.
    Activation(17, "relu_with", (0.0, 0.0, 0.0), is_of_keras=False, is_named=False),
    Activation(
        *(18, "elu_with", (1.0,)),
        is_of_keras=False,
        is_named=False,
        torch=("ELU", {"alpha": 1.0}),
        onnx=("Elu", {"alpha": 1.0}),
    ),
    Activation(19, "celu", (1.0,), torch=("CELU", {"alpha": 1.0}), onnx=("Celu", {"alpha": 1.0})),
    Activation(20, "selu", torch=_only("SELU")),
    Activation(21, "softplus", onnx=_only("Softplus"), onnx_cell=("Softplus", None, None)),
    Activation(22, "squareplus", (4.0,)),
    Activation(23, "soft_shrink", (0.5,), torch=("Softshrink", {"lambd": 0.5})),
    Activation(24, "hard_shrink", (0.5,), torch=("Hardshrink", {"lambd": 0.5})),
    Activation(25, "tanh_shrink", torch=_only("Tanhshrink")),
    # Threshold, value.
    Activation(
        *(26, "threshold", (0.0, 0.0)),
        is_of_keras=False,
        torch=("Threshold", {"threshold": 0.0, "value": 0.0}),
    ),
    Activation(27, "sparse_plus"),
    Activation(28, "sparse_sigmoid"),
    Activation(29, "exponential", onnx=_only("Exp")),
    Activation(30, "hard_silu", torch=_only("Hardswish"), onnx=_only("HardSwish")),
    Activation(31, "mish", torch=_only("Mish"), onnx=_only("Mish")),
    Activation(32, "log_sigmoid", torch=_only("LogSigmoid")),
    Activation(33, "log_softmax"),
    Activation(34, "gelu_tanh", is_of_keras=False, is_named=False),
    Activation(35, "prelu", is_of_keras=False, is_named=False),
)
BY_NAME = {each.name: each for each in TABLE}


@dataclasses.dataclass(frozen=True)
class NodeFunction:
    """A function of ONNX's recurrent nodes with any alpha and beta.

    Attributes:
      number: in the file of a session, and in C++.
      alpha: the default; NaN: none, so a node must have it; None: the function takes no alpha.
      beta: likewise.
    """

    number: int
    alpha: float | None = None
    beta: float | None = None


# By the names in nodes, in lower case, in which ONNX compares them.
OF_NODES = {
    "affine": NodeFunction(64, math.nan, math.nan),
    "scaledtanh": NodeFunction(65, math.nan, math.nan),
    "hardsigmoid": NodeFunction(66, 0.2, 0.5),
    "thresholdedrelu": NodeFunction(67, 1.0),
    "elu": NodeFunction(68, 1.0),
    "leakyrelu": NodeFunction(69, 0.01),
    "softplus": NodeFunction(70),
    **{
        name: NodeFunction(BY_NAME[name].number) for name in ("relu", "tanh", "sigmoid", "softsign")
    },
}
OF_CELLS = tuple(each.name for each in TABLE if each.is_of_cells)
# Other names, and what they mean.
RELU6 = "relu6"
ALIASES: dict[str, str | tuple[str, tuple[float, ...]]] = {
    RELU6: ("relu_with", (0.0, 6.0, 0.0)),
    "swish": "silu",
    "hard_swish": "hard_silu",
}
# The functions that recurrent layers have if nothing else is said.
DEFAULTS = {"activation": "tanh", "recurrent_activation": "sigmoid"}
OF_PLAIN_RNN = ("tanh", "relu")
