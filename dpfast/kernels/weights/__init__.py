"""Kernels of multiplicative weights."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): dcb7e76e97598c35
