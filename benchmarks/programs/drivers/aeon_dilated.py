"""Clustering of time series by an autoencoder of aeon with dilated GRU layers."""

import numpy as np
from aeon.clustering import DummyClusterer
from aeon.clustering.deep_learning import AEDRNNClusterer

rng = np.random.default_rng(0)
series = rng.normal(size=(64, 2, 64)).astype("float32")
clusterer = AEDRNNClusterer(
    estimator=DummyClusterer(n_clusters=3),
    latent_space_dim=32,
    n_epochs=4,
    batch_size=32,
    random_state=0,
    save_last_model=True,
)
clusterer.fit(series)
