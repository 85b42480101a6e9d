"""Right calls of noise, selections, quantiles and thresholds."""

from __future__ import annotations

from .calls import Call

CALLS: list[Call] = []
