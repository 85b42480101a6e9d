"""What tests of modes compare with: a chi-square test, and the bytes that leave with a frame."""

from __future__ import annotations

import io

import numpy as np
from scipy.stats import chi2

#: The false-failure rate of every statistical test.
ALPHA = 1e-12


def chi_square_p(observed, expected):
    """Return the p-value of counts against expected ones, all of which are large."""
    assert min(expected) > 100
    statistic = ((np.array(observed) - expected) ** 2 / expected).sum()
    return chi2.sf(statistic, len(expected) - 1)


def exported_bytes(frame):
    """Return what leaves with a frame: every Arrow buffer of its columns, and an IPC file without compression."""
    file = io.BytesIO()
    frame.write_ipc(file, compression="uncompressed")
    arrays = [chunk.to_arrow() for column in frame.get_columns() for chunk in column.get_chunks()]
    return [file.getvalue(), *(buffer.to_pybytes() for array in arrays for buffer in array.buffers() if buffer)]
