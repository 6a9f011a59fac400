"""States of diffusion in tracks of particles, by the bidirectional LSTM of TrackSegNet."""

from pathlib import Path

import numpy as np
import pandas as pd
from tracksegnet.generate_lstm_model import generate_lstm_model

TRACKS, STEPS = 300, 27
FEATURES = ["displ_x", "displ_y", "dist", "mean_dist_1", "mean_dist_2", "angle"]
rng = np.random.default_rng(0)
tracks = pd.DataFrame(rng.normal(size=(TRACKS * STEPS, len(FEATURES))), columns=FEATURES)
tracks["track_id"] = np.repeat(np.arange(TRACKS), STEPS)
tracks["state"] = rng.integers(0, 3, TRACKS * STEPS)
folder = Path("model")
folder.mkdir()
generate_lstm_model(
    tracks,
    {
        "num_states": 3,
        "num_features": len(FEATURES),
        "hidden_units": 200,
        "patience": 5,
        "epochs": 6,
        "batch_size": 32,
        "percent": {"test": 0.2, "val": 0.2},
        "model_path": folder,
        "track_length": STEPS,
    },
)
