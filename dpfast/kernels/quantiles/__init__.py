"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): f45e4f9640e0d33b
