"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): fb2bccebb51b34f4
