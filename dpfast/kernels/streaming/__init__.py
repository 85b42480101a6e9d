"""Kernels that advance many counters by a step, and one counter by many."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 3b930a39b8b27a11
