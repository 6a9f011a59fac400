"""A generative adversarial network of time series of three classes, by TSGM."""

import keras
import numpy as np
import tensorflow as tf
import tsgm

STEPS, FEATURES, LATENT, CLASSES = 64, 2, 8, 3
rng = np.random.default_rng(0)
series = rng.normal(size=(128, STEPS, FEATURES)).astype("float32")
labels = np.eye(CLASSES, dtype="float32")[rng.integers(0, CLASSES, 128)]
architecture = tsgm.models.architectures.zoo["cgan_lstm_n"](STEPS, FEATURES, LATENT, CLASSES)
model = tsgm.models.cgan.ConditionalGAN(
    discriminator=architecture.discriminator,
    generator=architecture.generator,
    latent_dim=LATENT,
)
model.compile(
    d_optimizer=keras.optimizers.Adam(1e-3),
    g_optimizer=keras.optimizers.Adam(1e-3),
    loss_fn=keras.losses.BinaryCrossentropy(),
)
model.fit(tf.data.Dataset.from_tensor_slices((series, labels)).batch(32), epochs=5, verbose=0)
model.generator.save("model.keras")
