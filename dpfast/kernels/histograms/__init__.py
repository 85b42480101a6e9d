"""Kernels over the cells of a histogram, on whole numbers and floats."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): e789a6b8bfee4bbf
