"""A budget and a sensitivity -> the noise of a strategy's measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpfast.accounting.amounts import budget_units, to_decimal
from dpfast.errors import ParameterError, Words
from dpfast.mechanisms.noise import IntegerNoise, NoiseKind, gaussian_of_delta, gaussian_of_rho, laplace_of_epsilon
from dpfast.queries import Sensitivity

__all__ = ["Budget", "cheapest_noise", "noise_of"]

_MEND = "raise it, or lower max_groups"


@dataclass(frozen=True)
class Budget:
    """Epsilon, or epsilon and delta, or rho; in units of 1e-18, rounded down."""

    epsilon: int | None
    delta: int
    rho: int | None

    @staticmethod
    def read(epsilon: object, delta: object, rho: object) -> Budget:
        """Return a budget from what a user wrote.

        Raises
        ------
        ParameterError
            Not exactly one of epsilon and rho is given, or one is out of range, or delta stands beside rho.

        """
        if (epsilon is None) == (rho is None):
            given = Words("given beside rho" if rho is not None else "None, and rho as well")
            raise ParameterError("epsilon", given, "the budget, if rho is not", "write epsilon=... or rho=...")
        if rho is not None:
            if delta is not None:
                mend = "leave delta out: rho converts to (epsilon, delta) for every delta"
                raise ParameterError("delta", delta, "None beside rho", mend)
            return Budget(None, 0, budget_units(rho, "epsilon", "rho"))
        return Budget(budget_units(epsilon, "epsilon"), 0 if delta is None else budget_units(delta, "delta"), None)

    @property
    def mechanisms(self) -> tuple[Literal["laplace", "gaussian"], ...]:
        """The kinds of noise that this budget allows; with rho Gaussian noise is always the better one."""
        if self.rho is not None:
            return ("gaussian",)
        return ("laplace", "gaussian") if self.delta else ("laplace",)

    def __str__(self) -> str:
        if self.rho is not None:
            return f"rho = {to_decimal(self.rho)}"
        assert self.epsilon is not None
        return f"epsilon = {to_decimal(self.epsilon)}" + (f", delta = {to_decimal(self.delta)}" if self.delta else "")


def noise_of(sensitivity: Sensitivity, budget: Budget, mechanism: NoiseKind) -> IntegerNoise:
    """Return the least noise of a kind that a budget allows.

    Raises
    ------
    NoiseTooWideError
        The scale would be above 2**60.

    """
    if mechanism == "laplace":
        assert budget.epsilon is not None
        return laplace_of_epsilon(sensitivity.l1, budget.epsilon, mend=_MEND)
    if budget.rho is not None:
        return gaussian_of_rho(sensitivity.l2_squared, budget.rho, mend=_MEND)
    assert budget.epsilon is not None
    return gaussian_of_delta(sensitivity.l2_squared, budget.epsilon, budget.delta, mend=_MEND)


def cheapest_noise(sensitivity: Sensitivity, budget: Budget) -> IntegerNoise:
    """Return the noise of the least standard deviation that a budget allows."""
    kinds = [noise_of(sensitivity, budget, mechanism) for mechanism in budget.mechanisms]
    return min(kinds, key=lambda noise: noise.deviation)
