"""Kernels over the cells of a histogram, on whole numbers and floats."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): a99595a84a066299
