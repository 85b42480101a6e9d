"""Kernels that compare candidates by noisy keys."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 1ad821d8700390f3
