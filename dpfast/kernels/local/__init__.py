"""Reports of frequency oracles: how they are drawn, and how they are counted."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 6b7b91daac2b561e
