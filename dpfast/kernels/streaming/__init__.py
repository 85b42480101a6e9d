"""Kernels that advance many counters by a step, and one counter by many."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): f9a33dbb292d09df
