"""Kernels that draw noise and round it to a grid."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 3ff9a2df643d5506
