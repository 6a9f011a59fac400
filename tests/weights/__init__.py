"""Tests of tf_lstm_ops.weights: every form to every other (`forms`), and what they predict."""
