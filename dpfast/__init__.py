"""dpfast: differentially private statistics at the speed of the data."""

from dpfast.announcement import announce_compilation
from dpfast.ledger import Ledger
from dpfast.mechanisms.gaussian import gaussian
from dpfast.mechanisms.laplace import laplace
from dpfast.queries import bins, count, mean, sum
from dpfast.release import plan, release

__all__ = ["Ledger", "bins", "count", "gaussian", "laplace", "mean", "plan", "release", "sum"]

announce_compilation()
