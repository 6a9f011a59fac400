"""A forecast of a time series by DeepAR of aeon."""

import numpy as np
from aeon.forecasting.deep_learning import DeepARForecaster

rng = np.random.default_rng(0)
series = np.sin(np.arange(1200) / 9) + 0.1 * rng.normal(size=1200)
forecaster = DeepARForecaster(
    window=48,
    horizon=1,
    n_epochs=5,
    batch_size=32,
    random_state=0,
    save_last_model=True,
    metrics=None,
)
forecaster.fit(series)
forecaster.predict(series)
