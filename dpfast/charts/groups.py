"""A chart of groups: bars of counts and sums, dots of means, quantiles and modes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl

from dpfast.charts.chosen import MOST, TOP, ChosenGroups, choose_groups
from dpfast.charts.look import (
    BAR,
    DOT,
    FAINT,
    INK,
    WHISKER,
    ChartPath,
    check_plot,
    finite,
    layer,
    number_axis,
    rows_of,
    save_plot,
)
from dpfast.charts.seen import seen, told_as

if TYPE_CHECKING:
    import altair as alt

__all__ = ["GROUP_HEIGHT", "different", "draw_groups", "group_names"]

#: Pixels of a group.
GROUP_HEIGHT = 22
_FEWEST = 3
_DAY = 86_400_000


def draw_groups(
    frame: pl.DataFrame,
    by: Sequence[str],
    name: str,
    top: Annotated[int, TOP],
    path: ChartPath = None,
    *,
    candidates: Sequence[Any] | None = None,
    in_order: bool = False,
) -> alt.LayerChart:
    """Draw one released query's largest groups with their 95% intervals.

    Parameters
    ----------
    frame, by, name, top, candidates, in_order
        As for `choose_groups`.
    path
        Where to write the chart as well; None for nowhere.

    Returns
    -------
    altair.LayerChart
        The chart; a notebook shows it.

    Raises
    ------
    ParameterError
        Altair is not installed, the path's suffix is no kind of chart, or ``top`` is out of range.

    """
    check_plot(path)
    most = TOP.read("top", top)
    chart = _drawn(choose_groups(frame, by, name, most, candidates=candidates, in_order=in_order))
    save_plot(chart, path)
    return chart


def _drawn(chosen: ChosenGroups) -> alt.LayerChart:
    import altair as alt

    times = _DAY if chosen.unit == "days" else 1
    ends = finite(np.concatenate([chosen.lower, chosen.upper, chosen.values])) * times
    lower, upper, values = np.split(ends, 3)
    data = rows_of(
        {
            "group": different(chosen.labels),
            "value": values,
            "lower": lower,
            "upper": upper,
            "said": chosen.texts,
            "interval": [f"{low} to {high}" for low, high in chosen.ends or [("", "")] * len(values)],
        }
    )
    rows = alt.Y("group:N", sort=None, scale=alt.Scale(padding=0.3), axis=group_names())
    along = _along(chosen, "value")
    told = [alt.Tooltip("group:N"), alt.Tooltip("said:N", title=told_as(chosen.name))]
    told += [alt.Tooltip("interval:N", title="95% interval")] if chosen.known else []
    base = alt.Chart(data).encode(y=rows, tooltip=told)
    whisker = {"color": WHISKER, "strokeWidth": 1.3}
    marks = [base.mark_bar(color=BAR).encode(x=along)] if chosen.bars else []
    if chosen.known:
        marks.append(base.mark_rule(**whisker).encode(x=_along(chosen, "lower"), x2="upper"))
        for end in ("lower", "upper"):
            marks.append(base.mark_tick(size=8, thickness=1.3, color=WHISKER).encode(x=_along(chosen, end)))
    if not chosen.bars:
        marks.append(base.mark_circle(color=DOT, size=60, opacity=1).encode(x=along))
    if chosen.bars:
        zero = alt.Chart(alt.Data(values=[{"value": 0}])).mark_rule(color=FAINT, strokeWidth=1)
        marks.append(zero.encode(x=along))
    height = GROUP_HEIGHT * max(len(chosen.labels), _FEWEST)
    notes = [chosen.noise, chosen.which(_others(chosen.groups))]
    if not chosen.with_zero and chosen.unit != "days" and chosen.places is None:
        notes.append("The axis does not begin at 0.")
    if not chosen.labels:
        return _nothing(chosen)
    return layer(chosen.title, notes, *marks, height=height)


def _nothing(chosen: ChosenGroups) -> alt.LayerChart:
    """Draw that there is no group."""
    import altair as alt

    said = alt.Chart(alt.Data(values=[{"said": "No group was large enough to be shown."}]))
    return layer(chosen.title, [chosen.noise], said.mark_text(color=INK, fontSize=13).encode(text="said:N"), height=60)


def _others(groups: int) -> str:
    """Say how to see the groups that are not shown."""
    return f"release.plot(top={groups}) shows all" if groups <= MOST else f"top= may be up to {MOST}"


def different(labels: list[str]) -> list[str]:
    """Return labels of which no two are equal: what looks equal has marks of no width at its end."""
    times: dict[str, int] = {}
    made = []
    for label in map(seen, labels):
        times[label] = times.get(label, -1) + 1
        made.append(label + "\u200b" * times[label])
    return made


def group_names() -> Any:
    """Return the axis of groups."""
    import altair as alt

    return alt.Axis(title=None, domain=False, ticks=False, labelColor=INK, labelPadding=8, labelLimit=300)


def _along(chosen: ChosenGroups, name: str) -> alt.X:
    """Return the axis of values, for one of the columns."""
    import altair as alt

    kind = "T" if chosen.unit == "days" else "Q"
    return alt.X(f"{name}:{kind}", scale=_scale(chosen), axis=_axis(chosen))


def _scale(chosen: ChosenGroups) -> Any:
    import altair as alt

    if chosen.unit == "days":
        alone = chosen.values.size and not (chosen.upper > chosen.lower).any() and np.ptp(chosen.values) == 0
        # Around one moment there would be years.
        ends = [(chosen.values[0] + day) * _DAY for day in (-1, 1)] if alone else alt.Undefined
        return alt.Scale(type="utc", domain=ends)
    if chosen.places is not None:
        return alt.Scale(domain=[-0.5, max(len(chosen.places), 2) - 0.5], nice=False)
    return alt.Scale(zero=chosen.with_zero, nice=True)


def _axis(chosen: ChosenGroups) -> Any:
    if chosen.unit == "days":
        return number_axis(chosen.axis, format="%Y-%m-%d", tickCount=5)
    if chosen.places is None:
        return number_axis(chosen.axis)
    slant = sum(map(len, chosen.places)) > 60
    # A text of JSON is one of Vega's expressions, too.
    named = f"{json.dumps([seen(place) for place in chosen.places], ensure_ascii=False)}[datum.value]"
    angle = {"labelAngle": -30, "labelAlign": "right"} if slant else {"labelAngle": 0}
    return number_axis(chosen.axis, values=list(range(len(chosen.places))), labelExpr=named, labelLimit=200, **angle)
