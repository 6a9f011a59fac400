"""Forecasts of a sine wave by DeepAR of TFTS."""

import tensorflow as tf
import tfts
from tfts import AutoConfig, AutoModelForForecasting, KerasTrainer

train, validation = tfts.get_data("sine", 48, 8, test_size=0.2, seed=0)
config = AutoConfig.for_model("deep_ar")
trainer = KerasTrainer(AutoModelForForecasting.from_config(config, output_chunk_length=8))
optimizer = tf.keras.optimizers.Adam(0.0007)
trainer.train(train, validation, optimizer=optimizer, epochs=4, verbose=0)
trainer.save_model("model")
