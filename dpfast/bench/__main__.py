"""One case in a process of its own: ``python -m dpfast.bench SUITE NAME LARGEST`` prints what was measured as JSON."""

from __future__ import annotations

import sys

from dpfast.bench.running import measure_here

if __name__ == "__main__":
    suite, name, largest = sys.argv[1:]
    print(measure_here(suite, name, int(largest)))
