"""Tests of MPSGraph's LSTM against the oracle, over pairs of all its options (`cases`)."""
