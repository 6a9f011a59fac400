"""The names of the models that keras_2_files.py writes."""

NAMES = (
    *("lstm", "stacked_hard_lstm", "hard_gru_after", "hard_gru_before", "hard_everywhere"),
    *("bidirectional", "named_with_slashes", "shared_and_several", "nested", "cells", "text"),
    *("images", "attention", "stateful"),
)
# Those of which there is a SavedModel.
SAVED_MODELS = ("stacked_hard_lstm", "nested", "cells", "text", "shared_and_several")
