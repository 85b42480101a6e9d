"""Kernels that draw noise and round it to a grid."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 6c00c9593fd7b557
