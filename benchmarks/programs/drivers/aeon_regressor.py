"""Regression of time series by two bidirectional LSTM layers of aeon."""

import numpy as np
from aeon.regression.deep_learning import RecurrentRegressor

rng = np.random.default_rng(0)
series = rng.normal(size=(320, 3, 100)).astype("float32")
targets = series[:, 0, ::10].sum(axis=1)
regressor = RecurrentRegressor(
    rnn_type="lstm",
    n_layers=2,
    n_units=64,
    bidirectional=True,
    n_epochs=5,
    batch_size=32,
    random_state=0,
    save_last_model=True,
)
regressor.fit(series, targets)
regressor.predict(series)
