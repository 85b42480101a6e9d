"""Reports of frequency oracles: how they are drawn, and how they are counted."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): dce9711f0fb28e2f
