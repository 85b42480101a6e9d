"""Noise on a grid that no input shows in, for mechanisms that are wrong in other ways."""

from __future__ import annotations

import numpy as np

import dpfast as dpf


def noise(shape, scale):
    """Return Laplace noise, rounded to a grid that depends on the scale alone."""
    return dpf.laplace(np.zeros(shape), float(scale))


def discrete_laplace(scale, reach):
    """Return the law of discrete Laplace noise on -reach..reach, what is beyond added to the ends."""
    q = np.exp(-1.0 / scale)
    law = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-reach + 1, reach)}
    return law | dict.fromkeys((-reach, reach), q**reach / (1 + q))
