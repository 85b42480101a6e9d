"""Kernels that draw quantiles."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): c8ddee92068f1ed8
