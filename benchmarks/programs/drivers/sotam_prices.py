"""A forecast of a price by SOTAM."""

import numpy as np
import pandas as pd
from sotam import VLSTM

rng = np.random.default_rng(0)
prices = pd.DataFrame({"close": np.cumsum(rng.normal(size=700)) + 50, "volume": rng.random(700)})
VLSTM(target="close", sequence=60, epochs=4).train(prices, ["close", "volume"])
