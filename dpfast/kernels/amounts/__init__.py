"""Kernels over columns of budgets and charges."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): a99595a84a066299
