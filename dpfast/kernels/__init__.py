"""Compiled kernels: arrays in, arrays out; no budgets, no input or output, no Python objects.

This package imports numba, llvmlite and numpy alone, and nothing outside it imports numba.
"""


# Stamp of all kernel sources (scripts/stamp_kernels.py): f9a33dbb292d09df
