"""Reports of frequency oracles: how they are drawn, and how they are counted."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): f9a33dbb292d09df
