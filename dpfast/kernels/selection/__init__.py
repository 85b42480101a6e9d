"""Kernels that compare candidates by noisy keys."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): dc4d52fd61f91469
