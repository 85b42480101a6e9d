"""Kernels that bring rows together by key and by privacy unit."""


# Stamp of all kernel sources (scripts/stamp_kernels.py): dcb7e76e97598c35
