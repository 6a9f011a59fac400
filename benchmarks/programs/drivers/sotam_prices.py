"""A forecast of a price by SOTAM."""

import numpy as np
import pandas as pd
from sotam import SOTAM

rng = np.random.default_rng(0)
prices = pd.DataFrame({"close": np.cumsum(rng.normal(size=700)) + 50, "volume": rng.random(700)})
forecaster = SOTAM(target="close", sequence_length=60, epochs=4, best_model_path="model.keras")
forecaster.train(prices, ["close", "volume"])
