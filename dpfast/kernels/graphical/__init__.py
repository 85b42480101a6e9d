"""Graphs of attributes, and records drawn from the tables of their cliques."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 6c00c9593fd7b557
