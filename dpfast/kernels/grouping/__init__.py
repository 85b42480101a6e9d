"""Kernels that bring rows together by key and by privacy unit."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 1ad821d8700390f3
