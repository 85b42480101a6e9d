"""Kernels over columns of budgets and charges."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): dce9711f0fb28e2f
