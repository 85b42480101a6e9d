"""Amounts of privacy as a ledger shows them: the floats nearest to the exact sums."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Budget", "ConcentratedBudget", "RenyiBudget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """An amount of (epsilon, delta), each the float nearest to the exact amount."""

    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.12g}, delta {self.delta:.12g}"


@dataclass(frozen=True, slots=True)
class ConcentratedBudget:
    """An amount of zero-concentrated privacy with a delta beside it (Bun, Steinke 2016)."""

    rho: float
    delta: float

    def __str__(self) -> str:
        return f"rho {self.rho:.12g}, delta {self.delta:.12g}"


@dataclass(frozen=True, slots=True)
class RenyiBudget:
    """The order that leaves most, its divergence, and a delta beside it (Mironov 2017)."""

    order: float
    divergence: float
    delta: float

    def __str__(self) -> str:
        return f"divergence {self.divergence:.12g} at order {self.order:g}, delta {self.delta:.12g}"
