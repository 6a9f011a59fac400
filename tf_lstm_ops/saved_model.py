"""SavedModels of Keras models: another name of ``tf_lstm_ops.export.saved_model``."""

from tf_lstm_ops.export import saved_model as export

__all__ = ["export"]
