"""How softly a noisy count holds a model: by its noise, and by what the model says of it already.

Of a cell that the model takes to be much larger than the noise, the noisy count says more than the model. Of a cell
that it takes to be much smaller, a count within a few deviations says next to nothing, and a model that is held to it
turns its noise into records. A count that is further away than noise goes says that the model is wrong there, however
small the cell. If the model's count p is off by a factor of about 2 to either side, the misfit to it has the variance
4 p / c of the noise's, in the unit of relative entropy: so c is in proportion to the noise's variance over p.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["FIRMEST", "softness_of"]

Floats = NDArray[np.float64]

FIRMEST = 0.3
"""In deviations of the noise; this one and all others were found by experiment on made-up tables."""

_SOFTEST = 5.0
#: In variances of the noise over the model's count.
_PER_COUNT = 4.0
#: In deviations: noise of normal law is beyond in 6 of 10^5 cells.
_FURTHEST = 4.0


def softness_of(noisy: Floats, model: Floats, deviation: float) -> Floats:
    """Return the softness of each noisy count, by the model's counts before these are fitted.

    Parameters
    ----------
    noisy, model
        Counts of the same cells.
    deviation
        Of the noise.

    """
    relative = _PER_COUNT * deviation / np.maximum(model, 1e-9)
    softness = deviation * np.clip(relative, FIRMEST, _SOFTEST)
    softness[np.abs(noisy - model) > _FURTHEST * deviation] = FIRMEST * deviation
    return softness
