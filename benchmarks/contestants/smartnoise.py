"""smartnoise-synth: records by its MST."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec

import polars as pl

from ..five_columns import DELTA, EPSILON, NAMES, ROWS


def records() -> dict[str, Callable[[pl.DataFrame], pl.DataFrame]]:
    """Return what makes synthetic records, if it is installed."""
    return {"smartnoise-synth": _make} if find_spec("snsynth") is not None else {}


def _make(frame: pl.DataFrame) -> pl.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from snsynth import Synthesizer

        maker = Synthesizer.create("mst", epsilon=EPSILON, delta=DELTA)
        data = frame.to_pandas()
        maker.fit(data, categorical_columns=list(NAMES), preprocessor_eps=0.0)
        made = maker.sample(ROWS)
    return pl.DataFrame({name: made[name].astype(int).to_numpy() for name in NAMES})
