"""Tests of the cuDNN family against the oracle, over a grid of models (`grid`), and PyTorch."""
