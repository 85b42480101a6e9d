"""Compiled kernels: arrays in, arrays out; no budgets, no input or output, no Python objects.

This package imports numba, llvmlite and numpy alone, and nothing outside it imports numba.
"""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
