"""Reports of frequency oracles: how they are drawn, and how they are counted."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 78d1fdc8e312ad11
