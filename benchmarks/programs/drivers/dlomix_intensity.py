"""Intensities of fragments of peptides by the Prosit model of DLOmix, with half of its units."""

import numpy as np
from dlomix.models import PrositIntensityPredictor

COUNT = 256
rng = np.random.default_rng(0)
peptides = {
    "sequence": rng.integers(0, 20, (COUNT, 30)),
    "collision_energy": rng.random((COUNT, 1)).astype("float32"),
    "precursor_charge": np.eye(6, dtype="float32")[rng.integers(0, 6, COUNT)],
}
intensities = rng.random((COUNT, 174)).astype("float32")
model = PrositIntensityPredictor(
    seq_length=30,
    use_prosit_ptm_features=False,
    input_keys={"SEQUENCE_KEY": "sequence"},
    meta_data_keys={
        "COLLISION_ENERGY_KEY": "collision_energy",
        "PRECURSOR_CHARGE_KEY": "precursor_charge",
    },
    recurrent_layers_sizes=(128, 256),
)
model.compile(optimizer="adam", loss="mse")
model.fit(peptides, intensities, batch_size=64, epochs=4, verbose=0)
model.predict(peptides, verbose=0)
model.save("model.keras")
