"""Kernels of multiplicative weights."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): d24102feefc9aa4c
