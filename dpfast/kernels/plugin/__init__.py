"""The body of a Polars expression plugin: kernels of noise behind C symbols, compiled to an object file."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): bd66fd32b99a8016
