"""Files that Keras 1 and 2 wrote."""
