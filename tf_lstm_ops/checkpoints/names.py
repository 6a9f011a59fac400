"""The names of the arrays of recurrent layers in files, and the roles that they stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tf_lstm_ops.files.contents import Variable

# An array of a cell: the pattern of its name, of which the first group is the cell's name, and
# its role, in which {n} stands for a group. The first pattern that fits counts.
_ARRAYS: tuple[tuple[str, str], ...] = (
    # PyTorch. The module may be the whole file, without a name.
    (r"(?:(.*)\.)?((?:weight|bias)_(?:ih|hh|hr|peephole)(?:_l\d+(?:_reverse)?)?)", "torch {2}"),
    # The weights of Keras 3 have numbers.
    (r"(.*)/vars/(\d+)", "keras {2}"),
    # Keras 1: an array of each gate.
    (r"(.*)_([WUb])_([ifcozrh])", "keras1 {2}{3}"),
    # The GRU of TensorFlow 1, and before 1.0.
    (r"(.*)/[Gg]ates/(?:Linear/)?(?:kernel|weights|Matrix)", "gates kernel"),
    (r"(.*)/[Gg]ates/(?:Linear/)?(?:bias|biases|Bias)", "gates bias"),
    (r"(.*)/[Cc]andidate/(?:Linear/)?(?:kernel|weights|Matrix)", "candidate kernel"),
    (r"(.*)/[Cc]andidate/(?:Linear/)?(?:bias|biases|Bias)", "candidate bias"),
    (r"(.*)/candidate/(input|hidden)_projection/(kernel|bias)", "{2} {3}"),
    # Layer normalisation: of LayerNormBasicLSTMCell, and of other cells.
    (r"(.*)/(?:input|transform|forget|output|state)/(?:gamma|beta)", "gate norm"),
    (r"(.*)/(?:layer_norm|ln_)\w*(?:/(?:var|gamma|beta))?", "norm"),
    # lingvo.
    (r"(.*)/wm(?:/var)?", "lingvo kernel"),
    (r"(.*)/b(?:/var)?", "lingvo bias"),
    (r"(.*)/w_proj(?:/var)?", "lingvo projection"),
    (r"(.*)/(?:proj_)?mask(?:/var)?", "lingvo mask"),
    # The LSTM of TensorFlow 1, and before 1.0, as in ELMo.
    (r"(.*)/projection(?:/kernel|/weights|_kernel)", "projection"),
    (r"(.*)/peephole_kernel", "peephole"),  # of tf_lstm_ops.keras.LSTM
    (r"(.*)/w_([ifo])_diag", "peephole {2}"),
    (r"(.*)/W_([IFO])_diag", "peephole {2}"),
    (r"(.*)/W_0", "old kernel"),
    (r"(.*)/B", "old bias"),
    (r"(.*)/W_P_0", "old projection"),
    (r"(.*)/(?:Linear/Matrix|weights)", "kernel"),
    (r"(.*)/(?:Linear/Bias|biases)", "bias"),
    # Keras, and TensorFlow 1 from 1.2 on.
    (r"(.*)/_?(kernel|recurrent_kernel|bias)", "{2}"),
)
_PATTERNS = [(re.compile(pattern, re.DOTALL), role) for pattern, role in _ARRAYS]


def by_cell(variables: Mapping[str, Variable]) -> dict[str, dict[str, Variable]]:
    """Groups variables by the cell to which they may belong.

    Args:
      variables: all variables of a file, by name.

    Returns:
      The variables of each cell by role. Many of these cells are other layers: a dense layer has
      a kernel and a bias, too.
    """
    cells: dict[str, dict[str, Variable]] = {}
    for name, variable in variables.items():
        if (found := _role(name)) is not None:
            cells.setdefault(found[0], {}).setdefault(found[1], variable)
    return cells


def cell_of(name: str, roles: tuple[str, ...]) -> str | None:
    """The cell to which an array may belong.

    Args:
      name: of the array.
      roles: the roles that count.

    Returns:
      The cell's name; None if the array has another role.
    """
    found = _role(name)
    return found[0] if found is not None and found[1] in roles else None


def _role(name: str) -> tuple[str, str] | None:
    """The cell's name and the array's role; None for a name that no array of a cell has."""
    if re.match(r"(.*/)?optimizer(_weights)?/", name):
        return None
    for pattern, role in _PATTERNS:
        if match := pattern.fullmatch(name):
            groups = [text or "" for text in match.groups()]
            if role == "peephole {2}":
                groups[1] = groups[1].lower()
            return groups[0], role.format(name, *groups)
    return None
