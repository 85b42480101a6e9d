"""Kernels that bring rows together by key and by privacy unit."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 6c00c9593fd7b557
