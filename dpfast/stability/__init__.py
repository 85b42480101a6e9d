"""When worst-case sensitivity is atypical (section 7): blocks, tests of a bound, values that hardly a row changes.

What is here beside the mechanisms of `dpfast` itself is exact, and as private as the data: distances and sensitivities
to be explored on data of one's own. Or it involves no data at all: chances of passing, and constants.
"""

from dpfast.stability.measures import (
    distance_to_instability,
    distance_to_wide_median,
    local_sensitivity_of_median,
    scale_distances,
    smooth_sensitivity_of_median,
)
from dpfast.stability.passing import distance_to_pass, pass_probability
from dpfast.stability.release_if_subsamples_agree import SubsamplingConstants, subsampling_constants
from dpfast.stability.trimming import trimmed_mean, winsorized_mean

__all__ = [
    "SubsamplingConstants",
    "distance_to_instability",
    "distance_to_pass",
    "distance_to_wide_median",
    "local_sensitivity_of_median",
    "pass_probability",
    "scale_distances",
    "smooth_sensitivity_of_median",
    "subsampling_constants",
    "trimmed_mean",
    "winsorized_mean",
]
