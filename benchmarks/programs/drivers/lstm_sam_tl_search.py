"""A search for hyperparameters of the model of LSTM-SAM-TL, and its training."""

import numpy as np
import pandas as pd
from LSTM_SAM_TL.tt_model import TT_model

rng = np.random.default_rng(0)
levels = pd.DataFrame(rng.normal(size=(400, 4)), columns=["wind", "pressure", "rain", "level"])
levels.insert(0, "Date", pd.date_range("2020-01-01", periods=len(levels), freq="h"))
levels.to_csv("levels.csv", index=False)
TT_model("levels.csv", epochs=3, batch_size=64, max_trials=1, verbose=0)
