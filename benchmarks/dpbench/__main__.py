"""``python -m benchmarks.dpbench``: the accuracy suite."""

from .suite import main

if __name__ == "__main__":
    raise SystemExit(main())
