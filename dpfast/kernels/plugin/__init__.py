"""The body of a Polars expression plugin: kernels of noise behind C symbols, compiled to an object file."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): ac3fed5c8fe04ff5
