"""The sizes of the recurrent layers in Keras' code examples and in TensorFlow's tutorials.

The numbers come from https://keras.io/examples, the guide https://keras.io/guides/working_with_rnns
and https://www.tensorflow.org/tutorials and /text/tutorials. Only layers LSTM, GRU and
Bidirectional are listed. ConvLSTM2D and cells that are called directly are other operations.
"""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    """One recurrent layer of an example.

    Attributes:
      name: the example and, where it has several layers of different sizes, the layer.
      batch: the batch size of the example's training.
      time: the number of steps.
      inputs: the size of the last axis that enters the layer.
      units: the number of units.
      cell: "lstm" or "gru".
      directions: 2 for Bidirectional.
      steps: which steps are valid, see cases.Row; "1..T" where the example masks its padding.
    """

    name: str
    batch: int
    time: int
    inputs: int
    units: int
    cell: str = "lstm"
    directions: int = 1
    steps: str = "all"


_KERAS = (
    Example("weather forecasting", 256, 120, 7, 32),
    # 26 roads times 64 windows are one batch. The example's activation is relu, here tanh.
    Example("traffic forecasting", 26 * 64, 12, 20, 64),
    Example("addition, encoder", 32, 7, 12, 128),
    Example("addition, decoder", 32, 4, 128, 128),
    Example("character seq2seq, encoder", 64, 16, 71, 256),
    Example("character seq2seq, decoder", 64, 59, 93, 256),
    Example("character generation", 128, 40, 56, 128),
    Example("IMDB", 32, 200, 128, 64, directions=2),  # both layers have these sizes
    Example("active learning", 256, 150, 128, 32, directions=2),
    Example("captcha OCR, layer 1", 16, 50, 64, 128, directions=2),
    Example("captcha OCR, layer 2", 16, 50, 256, 64, directions=2),
    Example("handwriting, layer 1", 64, 32, 64, 128, directions=2),
    Example("handwriting, layer 2", 64, 32, 256, 64, directions=2),
    # The layer has a mask, which is true wherever a video has 20 frames or more.
    Example("video classification, layer 1", 32, 20, 2048, 16, "gru"),
    Example("video classification, layer 2", 32, 20, 16, 8, "gru"),
    # A batch is padded to its longest clip; LJSpeech's clips have up to 10 s.
    Example("speech recognition, layer 1", 32, 690, 1568, 512, "gru", directions=2),
    Example("speech recognition, layers 2 to 5", 32, 690, 1024, 512, "gru", directions=2),
    Example("MNIST by lines", 64, 28, 28, 64),
    Example("stateful", 20, 10, 50, 64),
)
_TENSORFLOW = (
    Example("time series", 32, 24, 19, 32),
    Example("music generation", 64, 25, 3, 128),
    Example("text generation", 64, 100, 256, 1024, "gru"),
    # The examples below pad a batch to its longest text. These steps are estimates of that length.
    Example("text classification, layer 1", 64, 850, 64, 64, directions=2, steps="1..T"),
    Example("text classification, layer 2", 64, 850, 128, 32, directions=2, steps="1..T"),
    Example("translation, encoder", 64, 20, 256, 256, "gru", directions=2, steps="1..T"),
    Example("translation, decoder", 64, 20, 256, 256, "gru", steps="1..T"),
)
EXAMPLES: tuple[Example, ...] = (*_KERAS, *_TENSORFLOW)
