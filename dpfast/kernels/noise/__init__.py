"""Kernels that draw noise and round it to a grid."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): a99595a84a066299
