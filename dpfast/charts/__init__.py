"""Charts of released figures: what is drawn is already private, so drawing it costs nothing (but `draw_recovery`).

They are Altair's, as those of Polars' ``df.plot`` are.
"""

from dpfast.charts.answers import draw_answers, draw_errors
from dpfast.charts.attacks import draw_recovery
from dpfast.charts.groups import draw_groups
from dpfast.charts.lines import draw_left, draw_planned_errors
from dpfast.charts.look import CHART_SUFFIXES, check_plot
from dpfast.charts.marginals import draw_marginals

__all__ = [
    "CHART_SUFFIXES",
    "check_plot",
    "draw_answers",
    "draw_errors",
    "draw_groups",
    "draw_left",
    "draw_marginals",
    "draw_planned_errors",
    "draw_recovery",
]
