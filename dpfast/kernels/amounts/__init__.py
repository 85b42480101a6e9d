"""Kernels over columns of budgets and charges."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): dcb7e76e97598c35
