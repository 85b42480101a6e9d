"""The exact counts behind a release, caught before anything is drawn of them."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

DRAWING = import_module("dpfast.releases.drawing")


def table_of(counts, candidates):
    """Return rows by group and candidate, from a table or from points by group."""
    if isinstance(counts, np.ndarray):
        return counts.copy()
    slices = [counts.points[start:stop] for start, stop in zip(counts.starts, counts.stops, strict=True)]
    return np.array([np.bincount(own - 1, minlength=candidates) for own in slices]).reshape(-1, candidates)


@pytest.fixture
def caught(monkeypatch):
    """Return a list that gets the table of counts of every mode that is drawn."""
    tables = []
    original = DRAWING.draw_modes

    def spied(counts, candidates, slope, source):
        tables.append(table_of(counts, candidates))
        return original(counts, candidates, slope, source)

    monkeypatch.setattr(DRAWING, "draw_modes", spied)
    return tables
