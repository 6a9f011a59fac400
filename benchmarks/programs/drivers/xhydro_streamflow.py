"""The regional model of rivers of xHydro LSTM, on static and dynamic features."""

import numpy as np
from xhydro_lstm.lstm_static import get_list_of_LSTM_models

COUNT, DAYS = 256, 120
rng = np.random.default_rng(0)
dynamic = rng.normal(size=(COUNT, DAYS, 5)).astype("float32")
static = rng.normal(size=(COUNT, 6)).astype("float32")
flows = rng.random(COUNT).astype("float32")
build = get_list_of_LSTM_models("simple_regional_lstm")
model, callbacks = build(
    window_size=DAYS,
    n_dynamic_features=5,
    n_static_features=6,
    training_func="kge",
    checkpoint_path="model.keras",
)
model.fit(
    [dynamic, static],
    flows,
    batch_size=64,
    epochs=4,
    validation_split=0.2,
    verbose=0,
    callbacks=callbacks,
)
model.predict([dynamic, static], verbose=0)
