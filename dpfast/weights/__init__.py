"""Multiplicative weights: queries over cells, and the weights that they move."""
