"""Kernels that advance many counters by a step, and one counter by many."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): cc02a7f7bdae9a6c
