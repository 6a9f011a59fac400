"""Clustering of time series by an autoencoder of aeon with bidirectional GRU layers."""

import numpy as np
from aeon.clustering import DummyClusterer
from aeon.clustering.deep_learning import AEBiGRUClusterer

rng = np.random.default_rng(0)
series = rng.normal(size=(160, 2, 60)).astype("float32")
clusterer = AEBiGRUClusterer(
    estimator=DummyClusterer(n_clusters=3),
    latent_space_dim=32,
    n_layers=2,
    n_epochs=5,
    batch_size=32,
    random_state=0,
    save_last_model=True,
)
clusterer.fit(series)
