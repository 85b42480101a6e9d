"""Graphs of attributes, and records drawn from the tables of their cliques."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): e789a6b8bfee4bbf
