"""Kernels that bring rows together by key and by privacy unit."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): dce9711f0fb28e2f
