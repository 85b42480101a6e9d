"""Clipping what privacy units contribute to a norm that is chosen privately."""

from dpfast.mechanisms.clipping.choosing import Survey, choose_norm, quantile_of
from dpfast.mechanisms.clipping.norms import UnitVectors, clip_to_norm, norms_of
from dpfast.mechanisms.clipping.totals import last_told

__all__ = ["Survey", "UnitVectors", "choose_norm", "clip_to_norm", "last_told", "norms_of", "quantile_of"]
