"""Kernels that compare candidates by noisy keys."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): c529ed238d08cf32
