"""Kernels over columns of budgets and charges."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): d24102feefc9aa4c
