"""Classification of time series by LSTMFCN of sktime."""

import pickle

import numpy as np
from sktime.classification.deep_learning import LSTMFCNClassifier

rng = np.random.default_rng(0)
series = rng.normal(size=(160, 1, 100))
labels = rng.integers(0, 2, 160).astype(str)
classifier = LSTMFCNClassifier(n_epochs=6, batch_size=32, random_state=0, verbose=0)
classifier.fit(series, labels)
classifier.predict_proba(series)
pickle.dumps(classifier)
