"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 02deadbdfdc1c931
