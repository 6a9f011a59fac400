"""A search for hyperparameters of the model of LSTM-SAM-TL by Keras Tuner."""

import keras_tuner
import numpy as np
from LSTM_SAM_TL.tt_model import _LSTMHyperModel

STEPS, FEATURES = 24, 4
rng = np.random.default_rng(0)
series = rng.normal(size=(300, STEPS, FEATURES)).astype("float32")
levels = rng.normal(size=(300, 1)).astype("float32")
tuner = keras_tuner.RandomSearch(
    _LSTMHyperModel(STEPS, FEATURES),
    objective="val_loss",
    max_trials=2,
    seed=1,
    directory="search",
    overwrite=True,
)
tuner.search(series, levels, epochs=3, validation_split=0.3, batch_size=64, verbose=0)
