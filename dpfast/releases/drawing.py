"""Exact aggregates -> released columns: keys selected, noise drawn once, intervals worked out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpfast.aggregation.grouping import Aggregates
from dpfast.aggregation.kept_groups import KeptGroups
from dpfast.mechanisms.keys.optimal import select_keys
from dpfast.mechanisms.keys.policy import sums_by_policy
from dpfast.mechanisms.keys.weights import select_by_weights
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.mechanisms.quantiles.joint import draw_joint_quantiles
from dpfast.mechanisms.quantiles.nodes import draw_quantiles
from dpfast.mechanisms.selection.modes import draw_modes
from dpfast.queries import Measure
from dpfast.randomness import RandomSource, SystemRandom
from dpfast.releases.answers import answer
from dpfast.releases.distribution_answers import block_sums
from dpfast.releases.key_share import KeyShare, NoisyUnits, OneByOne, Policy, ReleasedCount
from dpfast.releases.planned_queries import (
    Combined,
    DrawnModes,
    DrawnPart,
    DrawnQuantiles,
    DrawnTogether,
    Part,
    PlannedQuery,
    drawn_parts,
    exact_measures,
    exact_of,
)
from dpfast.releases.ranked_values import DrawnValues, largest_values, no_values
from dpfast.releases.rebuilding import as_shown, in_one_frame, rebuilt

__all__ = ["Sources", "draw", "frame_of_no_groups"]

#: Gives what one part draws from, called once for each, with its number; or with "keys" for a selection of keys.
Sources: TypeAlias = Callable[[str], RandomSource]

#: Two whole numbers up to here make an int64.
_FAR = 2**62 - 1


def _fresh_keys(part: str) -> RandomSource:
    return SystemRandom()


def draw(
    queries: Sequence[PlannedQuery], key_share: KeyShare | None, exact: Aggregates, sources: Sources = _fresh_keys
) -> pl.DataFrame:
    """Return what a release shows: keys, and for each query its value, noise scale and 95% interval.

    Guarantee
        Every call draws fresh noise, and so costs the whole charge: call it once. The result has no byte of a key
        that was not selected, and no exact figure.

    Parameters
    ----------
    queries
        What is released, with its noise.
    key_share
        How keys are selected; None where they are public.
    exact
        The exact aggregates that it asked for.
    sources
        What every part draws from.

    """
    parts = drawn_parts(planned.parts for planned in queries)
    figures = dict(zip(exact_measures(part.measure for part in parts), exact.measures, strict=True))
    keys, drawn = exact.keys, dict[int, Any]()
    if key_share is not None:
        tested = str(key_share.rule.place) if isinstance(key_share.rule, ReleasedCount) else "keys"
        shown, drawn = _selected(key_share, parts, figures, exact, sources(tested))
        keys, order = _rebuilt_keys(keys, shown)
        figures = {measure: values[order] for measure, values in figures.items()}
        # What decided which keys are shown is itself released: no second draw.
        drawn = {place: noisy[order] for place, noisy in drawn.items()}
    for place, part in enumerate(parts):
        if place not in drawn:
            drawn[place] = _drawn(exact_of(part.measure, figures), part, sources(str(place)))
    columns: list[pl.Series] = keys.get_columns()
    for planned in queries:
        columns.extend(answer(planned, [_taken(part, parts, drawn) for part in planned.parts]))
    return in_one_frame(columns)


def _taken(part: Part, parts: Sequence[DrawnPart], drawn: Mapping[int, Any]) -> Any:
    """Return what a query takes of what was drawn."""
    if isinstance(part, Combined):
        first, second = (np.clip(_taken(one, parts, drawn), -_FAR, _FAR) for one in (part.first, part.second))
        return first + part.sign * second
    return drawn[next(place for place, other in enumerate(parts) if other is part)]


def frame_of_no_groups(queries: Sequence[PlannedQuery], keys: pl.DataFrame, *, selected: bool) -> pl.DataFrame:
    """Return what a release of no groups shows: the columns of every release, known before any data are read.

    Parameters
    ----------
    queries
        What is released.
    keys
        The key columns of the aggregates, without a row.
    selected
        Whether keys are selected, and so written anew.

    """
    columns = (as_shown(keys) if selected else keys).get_columns()
    for planned in queries:
        columns.extend(answer(planned, [_no_figures(part) for part in planned.parts]))
    return in_one_frame(columns)


def _no_figures(part: Part) -> Any:
    if isinstance(part, DrawnValues):
        return no_values(part)
    if isinstance(part, DrawnQuantiles):
        return np.empty((0, len(part.tree.parts)), np.int64)
    if isinstance(part, DrawnTogether):
        return np.empty((0, len(part.calibration.parts)), np.int64)
    if part.measure.kind == "bins":
        return np.empty((0, part.measure.figures), np.int64)
    return np.empty(0, np.int64)


def _selected(
    key_share: KeyShare,
    parts: Sequence[DrawnPart],
    figures: Mapping[Measure, Any],
    exact: Aggregates,
    source: RandomSource,
) -> tuple[NDArray[np.bool_], dict[int, NDArray[np.int64]]]:
    """Return which keys are shown, and the noisy measures that decided it, by their place, for all keys."""
    assert exact.units is not None
    rule = key_share.rule
    if isinstance(rule, OneByOne):
        return select_keys(exact.units, rule.table, source), {}
    if isinstance(rule, ReleasedCount):
        noisy = _drawn(exact_of(parts[rule.place].measure, figures), parts[rule.place], source)
        return noisy >= rule.threshold, {rule.place: noisy}
    if isinstance(rule, NoisyUnits):
        return rule.noise.add(exact.units, source, threads=None) >= rule.threshold, {}

    if isinstance(rule, Policy):
        assert isinstance(exact.holdings, KeptGroups)
        ranks = _ranks(exact.keys)
        singles = np.zeros(ranks.size, np.int64)
        sums = sums_by_policy(exact.holdings.runs(ranks, singles), singles, rule.cutoff)
        return (rule.noise.add(sums, source, threads=None) >= rule.threshold)[ranks], {}

    def passes(sums: NDArray[np.int64], noise: IntegerNoise, threshold: int) -> NDArray[np.bool_]:
        return noise.add(sums, source, threads=None) >= threshold

    rounds = [partial(passes, noise=noise, threshold=threshold) for noise, threshold in rule.rounds]
    return select_by_weights(exact.holdings, exact.units.size, rule.rounds[0][0].mechanism, rounds), {}


def _ranks(keys: pl.DataFrame) -> NDArray[np.int32]:
    """Return each key's place in the order of their values, which does not change where other keys are gone.

    The codes of categoricals are numbered as the data happen to come, so that these are compared as strings.
    """
    places = _sorted_places(as_shown(keys))
    ranks = np.empty(places.size, np.int32)
    ranks[places] = np.arange(places.size, dtype=np.int32)
    return ranks


def _sorted_places(keys: pl.DataFrame) -> NDArray[np.uint32]:
    """Return the rows of keys, sorted by their values."""
    order = keys.select(pl.struct(pl.all()).arg_sort() if keys.width > 1 else pl.first().arg_sort())
    return order.to_series().to_numpy()


def _rebuilt_keys(keys: pl.DataFrame, shown: NDArray[np.bool_]) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """Return the selected keys, sorted, in buffers that hold nothing else, and their rows."""
    rows = np.flatnonzero(shown)
    chosen = as_shown(keys[rows])
    places = _sorted_places(chosen)
    chosen = chosen[places]
    return pl.DataFrame({series.name: rebuilt(series) for series in chosen.get_columns()}), rows[places]


def _drawn(exact: Any, part: DrawnPart, source: RandomSource) -> Any:
    """Return every group's noisy measure, in steps; quantiles, ascending, one column each; or what is selected."""
    if isinstance(part, DrawnValues):
        return largest_values(exact, part, lambda rows: part.noise.add(rows, source, threads=None))
    if isinstance(part, DrawnModes):
        return draw_modes(exact, part.measure.points, part.slope, source)
    if isinstance(part, DrawnQuantiles):
        drawn = draw_quantiles(exact, part.measure.points, part.calibration, source)
        return drawn + part.measure.centre
    if isinstance(part, DrawnTogether):
        drawn = draw_joint_quantiles(exact, part.measure.points, part.calibration, source)
        return drawn + part.measure.centre
    if part.measure.kind == "bins":
        measured = block_sums(exact, part.measure.blocks)
        return part.noise.add(measured, source, threads=None)
    return part.noise.add(exact, source, threads=None)
