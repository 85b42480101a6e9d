"""What a row of the table runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Run = Callable[[], Any]


@dataclass(frozen=True)
class Prepared:
    """A row's callables over one set of data.

    Attributes
    ----------
    ours, baseline
        What is compared.
    peers
        Slower ones by name, with the number of values that they take.
    values
        For noise on a column: the values without it.
    agree
        Whether results of ours and of the baseline agree, where they are neither noisy columns nor counts.
    floor
        What no way of doing it can leave out (floors.py), to say how near ours is, and whether a goal can be reached.

    """

    ours: Run
    baseline: Run
    peers: dict[str, tuple[Run, int]] = field(default_factory=dict)
    values: np.ndarray | None = None
    agree: Callable[[Any, Any], bool] | None = None
    floor: Run | None = None
