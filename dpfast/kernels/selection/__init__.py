"""Kernels that compare candidates by noisy keys."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 6c00c9593fd7b557
