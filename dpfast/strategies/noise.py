"""A budget and a sensitivity -> the noise of a strategy's measurements."""

from __future__ import annotations

from typing import Literal

from dpfast.accounting.budget import Budget
from dpfast.accounting.sensitivity import Sensitivity
from dpfast.mechanisms.noise.integer_noise import (
    IntegerNoise,
    NoiseKind,
    gaussian_of_delta,
    gaussian_of_rho,
    laplace_of_epsilon,
)

__all__ = ["cheapest_noise", "mechanisms_of", "noise_of"]

_MEND = "raise it, or lower max_groups"


def mechanisms_of(budget: Budget) -> tuple[Literal["laplace", "gaussian"], ...]:
    """Return the kinds of noise that a budget allows; with rho Gaussian noise is always the better one."""
    if budget.kind == "rho":
        return ("gaussian",)
    return ("laplace", "gaussian") if budget.delta_units else ("laplace",)


def noise_of(sensitivity: Sensitivity, budget: Budget, mechanism: NoiseKind) -> IntegerNoise:
    """Return the least noise of a kind that a budget allows.

    Raises
    ------
    NoiseTooWideError
        The scale would be above 2**60.

    """
    if mechanism == "laplace":
        return laplace_of_epsilon(sensitivity.l1, budget.units, mend=_MEND)
    if budget.kind == "rho":
        return gaussian_of_rho(sensitivity.l2_squared, budget.units, mend=_MEND)
    return gaussian_of_delta(sensitivity.l2_squared, budget.units, budget.delta_units, mend=_MEND)


def cheapest_noise(sensitivity: Sensitivity, budget: Budget) -> IntegerNoise:
    """Return the noise of the least standard deviation that a budget allows."""
    kinds = [noise_of(sensitivity, budget, mechanism) for mechanism in mechanisms_of(budget)]
    return min(kinds, key=lambda noise: noise.deviation)
