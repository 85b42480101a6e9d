"""What an audit found: the figures, the event that shows them, and whether a claim is refuted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from dpfast.showing import Card, Shown

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Audit", "Finding", "LawAudit", "OneRunAudit"]


@dataclass(frozen=True, kw_only=True)
class Finding(Shown, ABC):
    """What every audit has.

    Attributes
    ----------
    epsilon, delta
        What was claimed.
    epsilon_lower
        With the claimed delta, no smaller epsilon is true; 0 if nothing was found.
    delta_lower
        With the claimed epsilon, no smaller delta is true.
    passed
        Whether the claim was not refuted. Only an audit of a law proves that it is true, for this pair.

    """

    epsilon: float
    delta: float
    epsilon_lower: float
    delta_lower: float
    passed: bool

    @abstractmethod
    def explain(self) -> str:
        """Return what was found, in sentences."""

    def to_frame(self) -> pl.DataFrame:
        """Return one row with every figure."""
        import polars as pl

        return pl.DataFrame({field.name: [getattr(self, field.name)] for field in fields(self)})

    def _card(self) -> Card:
        return Card(self.explain().splitlines())

    @property
    def _claim(self) -> str:
        return f"epsilon {self.epsilon:.12g}" + (f", delta {self.delta:.12g}" if self.delta else "")

    def _verdict(self, sure: str) -> str:
        if self.passed:
            return f"passed: {self._claim} {sure}"
        beside = f" with delta {self.delta:.12g}" if self.delta else ""
        return f"refuted: {self._claim} is not true; epsilon is at least {_short(self.epsilon_lower)}{beside}"


@dataclass(frozen=True, kw_only=True)
class Audit(Finding):
    """What the outputs on two neighbouring inputs say of a claim.

    Attributes
    ----------
    confidence
        The probability with which both lower bounds hold, at least.
    samples
        How many outputs of each input were drawn. A quarter taught the events, a quarter chose one of them, and half
        measured that one.
    event
        The event that was chosen, in words.
    likelier
        The input on which it is likelier, "x" or "neighbour".
    happened, happened_elsewhere
        How often it happened in the measured outputs of this input, and of the other one.
    measured
        How many outputs of each input were measured.
    raised
        How many of all calls raised an error, which is an output like others.

    """

    confidence: float
    samples: int
    event: str
    likelier: str
    happened: int
    happened_elsewhere: int
    measured: int
    raised: int

    def explain(self) -> str:
        """Return what was found, in sentences."""
        other = "neighbour" if self.likelier == "x" else "x"
        lines = [
            self._verdict("is not refuted"),
            f"event: {self.event}",
            f"it happened in {self.happened:,} of {self.measured:,} outputs on {self.likelier}, "
            f"and in {self.happened_elsewhere:,} of {self.measured:,} on {other}",
            f"with confidence {self.confidence:.12g}: epsilon is at least {_short(self.epsilon_lower)} where delta is "
            f"{self.delta:.12g}, and delta at least {_short(self.delta_lower)} where epsilon is {self.epsilon:.12g}",
        ]
        if self.raised:
            lines.append(f"{self.raised:,} of {2 * self.samples:,} calls raised an error")
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class LawAudit(Finding):
    """What the laws of the outputs on two neighbouring inputs say of a claim: no sample, no confidence.

    Attributes
    ----------
    epsilon_upper, delta_upper
        The same as the lower bounds, from above: with the claimed delta, this epsilon is true, and the other way round.
    proven
        Whether the claim is proven for this pair; if it passed and is not, it is true but for the rounding of floats.
    event
        The outputs that show it, in words.
    likelier
        The input on which they are likelier, "x" or "neighbour".

    """

    epsilon_upper: float
    delta_upper: float
    proven: bool
    event: str
    likelier: str

    def explain(self) -> str:
        """Return what was found, in sentences."""
        return "\n".join(
            [
                self._verdict("is true for this pair" + ("" if self.proven else ", but for the rounding of floats")),
                f"event: {self.event}, likelier on {self.likelier}",
                f"where delta is {self.delta:.12g}, epsilon is {_between(self.epsilon_lower, self.epsilon_upper)}",
                f"where epsilon is {self.epsilon:.12g}, delta is {_between(self.delta_lower, self.delta_upper)}",
            ]
        )


@dataclass(frozen=True, kw_only=True)
class OneRunAudit(Finding):
    """What guesses of who took part in a single run say of a claim.

    Attributes
    ----------
    confidence
        The probability with which the lower bound holds, at least.
    canaries
        How many there were, each included with probability 1/2.
    guesses, correct
        How many were guessed, and how many rightly; of several numbers of guesses, the one that shows most.
    p_value
        The probability, at most, of so many right guesses, were the claim true; for several numbers of guesses,
        times how many these are.

    """

    confidence: float
    canaries: int
    guesses: int
    correct: int
    p_value: float

    def explain(self) -> str:
        """Return what was found, in sentences."""
        return "\n".join(
            [
                self._verdict("is not refuted"),
                f"{self.correct:,} of {self.guesses:,} guesses about {self.canaries:,} canaries were right; were the "
                f"claim true, this had a probability of at most {self.p_value:.3g}",
                f"with confidence {self.confidence:.12g}: epsilon is at least {_short(self.epsilon_lower)}",
            ]
        )


def _short(figure: float) -> str:
    return f"{figure:.6g}"


def _between(low: float, high: float) -> str:
    return _short(low) if _short(low) == _short(high) else f"from {_short(low)} to {_short(high)}"
