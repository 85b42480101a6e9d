"""Charts of released figures: what is drawn is already private, so drawing it costs nothing (but `draw_recovery`).

Figures are made without pyplot, whose list of open figures is global and grows until somebody empties it.
"""

from dpfast.charts.answers import draw_answers, draw_errors
from dpfast.charts.attacks import draw_recovery
from dpfast.charts.drawing import CHART_SUFFIXES, check_chart
from dpfast.charts.groups import draw_groups
from dpfast.charts.marginals import draw_marginals

__all__ = [
    "CHART_SUFFIXES",
    "check_chart",
    "draw_answers",
    "draw_errors",
    "draw_groups",
    "draw_marginals",
    "draw_recovery",
]
