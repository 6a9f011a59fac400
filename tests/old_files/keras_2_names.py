"""The names of the models that keras_2_files.py writes."""

NAMES = (
    *("lstm", "stacked_hard_lstm", "hard_gru_after", "hard_gru_before", "hard_everywhere"),
    *("bidirectional", "named_with_slashes", "shared_and_several", "nested", "cells", "text"),
    *("hard_cells", "models_of_a_step"),
    *("images", "attention", "stateful"),
)
# Those of keras_2_masks.py.
MASKS = (
    *("lstm", "gru", "plain", "cell", "cells", "bidirectional", "dropout", "encoder_and_decoder"),
    *("attention", "add", "multiply", "concatenate", "of_characters", "model_of_a_step"),
    *("model_of_sequences", "nested", "masking"),
)
# Those of keras_2_masks.py that cannot be made in Keras 3, and what the error says.
REFUSED_MASKS = {
    "identity": "no mask in Keras 2",
    "nested_with_states": "a model inside the model gets a mask",
}
# Those of which there is a SavedModel.
SAVED_MODELS = (
    "stacked_hard_lstm",
    "nested",
    "cells",
    "text",
    "shared_and_several",
    "masks_lstm",
    "hard_cells",
)
