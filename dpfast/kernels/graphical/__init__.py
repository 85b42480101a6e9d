"""Graphs of attributes, and records drawn from the tables of their cliques."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): dce9711f0fb28e2f
