"""Kernels over columns of budgets and charges."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 30bb16275f30777a
