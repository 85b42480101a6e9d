"""The engine of ``dpfast bench``: rounds in turns, their spread, the machine, results, comparisons and a page.

What is measured stands in ``benchmarks/``, which a wheel has as ``dpfast/benchmarks``. The library imports neither.

>>> from dpfast.bench import Budget
>>> Budget(epsilon=1.0).scale
1.0
"""

from dpfast.bench.cases import Case, Measured, Wish
from dpfast.bench.own import Budget, Mechanism
from dpfast.bench.rounds import in_turns, seconds_of
from dpfast.bench.spread import Spread, spread_of

__all__ = ["Budget", "Case", "Measured", "Mechanism", "Spread", "Wish", "in_turns", "seconds_of", "spread_of"]
