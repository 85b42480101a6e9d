"""What a plan leaves open until units are surveyed: numbers of its request that are chosen privately.

A release in two stages (`dpfast.releases.staged_blueprint`) asks each choice in turn. Everything that a choice says
before the charge depends on the schema and the parameters alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dpfast.aggregation import Aggregates, Aggregation
from dpfast.aggregation.sources import Source
from dpfast.releases.group_blueprint import GroupBlueprint
from dpfast.releases.request import Request
from dpfast.releases.survey_noise import Surveyor

__all__ = ["Chosen", "Draft", "PrivateChoice"]

#: Drafts the second stage of a request, with public numbers in place of all that is not chosen yet.
Draft: TypeAlias = Callable[[Request], GroupBlueprint]


@dataclass(frozen=True)
class Chosen:
    """What was chosen: post-processing of noisy histograms.

    Attributes
    ----------
    request
        The request with the numbers that were chosen in place.
    values
        These, by the name under which `Release.chosen` has them.
    lines
        What the release says of them, one line each.

    """

    request: Request
    values: Mapping[str, Any]
    lines: tuple[str, ...] = field(default=())


class PrivateChoice(ABC):
    """Numbers of a request that are chosen by noisy histograms of privacy units."""

    @property
    @abstractmethod
    def questions(self) -> int:
        """How many things are chosen: the share of the budget grows with them."""

    @property
    @abstractmethod
    def about(self) -> str:
        """What is chosen, in a few words: ``bounds of delay``."""

    @abstractmethod
    def leaves_open(self, name: str) -> bool:
        """Return whether the noise of a query, by its name, follows what is chosen."""

    @property
    def unit_said(self) -> str | None:
        """What is kept of a unit, in words, where that is chosen; None where it is given."""
        return None

    def within(self, drafts: Callable[[PrivateChoice], object]) -> PrivateChoice:
        """Return the choice among what can be drafted; ``drafts`` drafts all extremes of a choice, or refuses one."""
        drafts(self)
        return self

    @abstractmethod
    def stand_in(self, request: Request) -> Request:
        """Return the request with public numbers in place: what is said and checked beforehand is of these."""

    @abstractmethod
    def extremes(self, request: Request) -> Iterator[Request]:
        """Yield requests with the least and the largest that may be chosen: all are drafted before the charge.

        So that no number that is chosen leads to an error, whatever the data.
        """

    @abstractmethod
    def prepare(self, source: Source, request: Request) -> Aggregation:
        """Return the exact aggregation of what will be surveyed; no row is read.

        The aggregation must keep the promise that a unit's figures are a function of its own rows and of words that no
        other unit reads.
        """

    @abstractmethod
    def choose(self, exact: Aggregates, request: Request, surveyor: Surveyor, draft: Draft) -> Chosen:
        """Survey and choose: each unit is counted once at most in each histogram that the surveyor draws.

        Whatever is drawn, there is a choice, and none leads to an error.

        Parameters
        ----------
        exact
            What the prepared aggregation returned.
        request
            With what was chosen before.
        surveyor
            What draws, within this choice's part of the budget.
        draft
            What the second stage would be: its noise is what a choice weighs against what it loses.

        """
