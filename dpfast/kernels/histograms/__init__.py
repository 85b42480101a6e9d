"""Kernels over the cells of a histogram, on whole numbers and floats."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 30bb16275f30777a
