"""Graphs of attributes, and records drawn from the tables of their cliques."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 43b1797655a7b621
