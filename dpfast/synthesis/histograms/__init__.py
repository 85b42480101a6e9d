"""Estimates of a histogram by partitions and trees of its cells."""
