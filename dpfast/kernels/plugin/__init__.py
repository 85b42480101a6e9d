"""The body of a Polars expression plugin: kernels of noise behind C symbols, compiled to an object file."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): 80018a2d62413b73
