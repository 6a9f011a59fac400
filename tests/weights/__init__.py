"""Tests of tf_lstm_ops.weights: every format to every other (`formats`), and their predictions."""
