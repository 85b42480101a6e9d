"""Kernels over the cells of a histogram, on whole numbers and floats."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): d24102feefc9aa4c
