"""Kernels of multiplicative weights."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 43b1797655a7b621
