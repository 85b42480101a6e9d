"""Reports of frequency oracles: how they are drawn, and how they are counted."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): d24102feefc9aa4c
