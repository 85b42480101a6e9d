"""Graphs of attributes, and records drawn from the tables of their cliques."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): d24102feefc9aa4c
