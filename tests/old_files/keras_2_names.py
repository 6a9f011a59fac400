"""The names of the models that keras_2_files.py writes."""

NAMES = (
    *("lstm", "stacked_hard_lstm", "hard_gru_after", "hard_gru_before", "hard_everywhere"),
    *("bidirectional", "named_with_slashes", "shared_and_several", "nested", "cells", "text"),
    *("images", "attention", "stateful"),
)
