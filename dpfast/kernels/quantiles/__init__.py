"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): dcae764b5653ab4c
