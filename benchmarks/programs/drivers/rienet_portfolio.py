"""Weights of a portfolio of least variance by RIEnet."""

import keras
import numpy as np
from rienet import RIEnetLayer

ASSETS, DAYS = 30, 60
rng = np.random.default_rng(0)
returns = 0.01 * rng.normal(size=(64, ASSETS, DAYS)).astype("float32")
weights = np.full((64, ASSETS, 1), 1 / ASSETS, "float32")
inputs = keras.Input((ASSETS, DAYS))
model = keras.Model(inputs, RIEnetLayer(output_type="weights")(inputs))
model.compile("adam", "mse")
model.fit(returns, weights, batch_size=16, epochs=8, verbose=0)
model.predict(returns, verbose=0)
model.save("model.keras")
