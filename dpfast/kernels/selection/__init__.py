"""Kernels that compare candidates by noisy keys."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 6b7b91daac2b561e
