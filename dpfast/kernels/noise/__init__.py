"""Kernels that draw noise and round it to a grid."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): d24102feefc9aa4c
