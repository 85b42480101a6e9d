"""Kernels that draw noise and round it to a grid."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): dcb7e76e97598c35
