"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): b347a3026e8baac9
