"""`accelerate` with Keras on PyTorch."""
