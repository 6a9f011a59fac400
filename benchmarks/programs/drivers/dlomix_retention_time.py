"""Retention times of peptides by the Prosit model of DLOmix, with half of its units."""

import numpy as np
from dlomix.models import PrositRetentionTimePredictor

rng = np.random.default_rng(0)
peptides = rng.integers(0, 20, (512, 30))
times = (peptides == 3).sum(axis=1).astype("float32")
model = PrositRetentionTimePredictor(recurrent_layers_sizes=(128, 256), seq_length=30)
model.compile(optimizer="adam", loss="mse")
model.fit(peptides, times, batch_size=64, epochs=4, verbose=0)
model.predict(peptides, verbose=0)
model.save("model.keras")
