"""A forecast of the volatility of a portfolio by portfoliorisk."""

import numpy as np
from portfoliorisk.neural import forecast_with_lstm

rng = np.random.default_rng(0)
volatilities = np.abs(np.cumsum(rng.normal(size=1250))) + 1
forecast = forecast_with_lstm(volatilities, rng.normal(size=1250), epochs=5)
if not forecast["lstm_available"]:
    raise RuntimeError("portfoliorisk did not find TensorFlow")
