"""Tests of the six block-cell ops against the oracle, over a grid of cases (`grid`)."""
