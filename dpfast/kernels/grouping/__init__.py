"""Kernels that bring rows together by key and by privacy unit."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): d24102feefc9aa4c
