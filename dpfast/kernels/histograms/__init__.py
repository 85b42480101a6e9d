"""Kernels over the cells of a histogram, on whole numbers and floats."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): dce9711f0fb28e2f
