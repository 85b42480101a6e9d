"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): d74ca304118dde79
