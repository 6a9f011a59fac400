"""Files of other programs: TensorFlow's checkpoints and graphs, Keras' files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tf_lstm_ops.weights.canonical import Weights

if TYPE_CHECKING:
    from typing_extensions import Self


class CheckpointFormat(Weights):
    """Reads files of trained weights, whichever program wrote them."""

    @classmethod
    def from_checkpoint(
        cls,
        path: str | os.PathLike[str],
        layer: str | None = None,
        forget_bias: float | None = None,
    ) -> Self:
        """From a file of trained weights of a known family.

        The activations are not part of the weights. Where a file of Keras 1 or 2 has
        recurrent_activation="hard_sigmoid", clip(0.2 x + 0.5, 0, 1), the weights are not scaled to
        Keras 3's function of that name; `tf_lstm_ops.keras.load_h5` does this.

        Args:
          path: a TensorFlow checkpoint (its prefix, one of its files or its folder), a folder of a
            SavedModel, a frozen graph (.pb), or a file .h5, .hdf5, .keras, .weights.h5 or
            .safetensors. TensorFlow is imported only for the first three.
          layer: which weights, where the file has several: a name that the error lists, or its
            first parts, such as the name of the Keras layer.
          forget_bias: what is added to the bias of the forget gate; None: what the program of the
            family adds at run time, by its defaults: 1 for cells of TensorFlow 1, magenta and ELMo,
            else 0. A GRU has none.

        Returns:
          The weights of all layers of a stack and of both directions, if the names say so.

        Raises:
          ImportError: a package that reads this kind of file is not installed.
          OSError: there is no such file, or it cannot be read.
          ValueError: the file is damaged or of no known kind; it has no such weights, or several
            and `layer` names none of them; or the layer has layer normalisation.
        """
        from tf_lstm_ops import checkpoints

        found = checkpoints.chosen(path, cls._CELL.modes, layer).weights(forget_bias)
        assert isinstance(found, cls)
        return found
