"""Training of the musical model of IMPSY, which also writes a file of TensorFlow Lite."""

import numpy as np
from impsy.train import train_mdrnn

rng = np.random.default_rng(0)
performances = np.empty(4, dtype=object)
for i in range(len(performances)):
    performances[i] = rng.random((180, 4)).astype("float32")
np.savez("training-dataset-4d.npz", perfs=performances)
train_mdrnn(
    dimension=4,
    dataset_location="training-dataset-4d.npz",
    model_size="s",
    early_stopping=False,
    patience=10,
    num_epochs=6,
    batch_size=64,
    save_location=".",
    save_tflite=True,
)
