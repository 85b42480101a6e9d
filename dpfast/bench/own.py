"""The protocol of a mechanism of your own: a function from columns and a budget to columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfast.errors import ParameterError, Words

__all__ = ["Budget", "Mechanism", "checked"]


@dataclass(frozen=True)
class Budget:
    """What a mechanism may spend, on columns that one person changes by so much.

    Attributes
    ----------
    epsilon, delta
        The output must be (epsilon, delta)-differentially private. Where delta is 0, epsilon-differentially private.
    sensitivity
        One person changes all columns together by at most this: the sum of absolute changes.

    Examples
    --------
    >>> Budget(epsilon=0.5, sensitivity=2).scale
    4.0

    """

    epsilon: float
    delta: float = 0.0
    sensitivity: int = 1

    @property
    def scale(self) -> float:
        """The scale of Laplace noise that spends it: sensitivity / epsilon."""
        return self.sensitivity / self.epsilon


class Mechanism(Protocol):
    """A mechanism in the suite: it takes exact columns and returns private ones of the same names and lengths.

    The columns are arrays of int64 by name: counts of disjoint groups, of which one person changes one, by one. It
    draws fresh randomness at every call, leaves its input as it is, and returns what can be read as an array of real
    numbers for each column. It may be called many times, with columns of any length.
    """

    def __call__(self, columns: Mapping[str, NDArray[np.int64]], budget: Budget, /) -> Mapping[str, Any]:
        """Return private columns."""


def checked(given: Mapping[str, NDArray[np.int64]], found: Any) -> dict[str, NDArray[Any]]:
    """Return what a mechanism returned, as arrays by name.

    Raises
    ------
    ParameterError
        It returned no mapping, other names, or columns of other lengths or of no real numbers, NaN and infinity among
        them.

    Examples
    --------
    >>> import numpy as np
    >>> checked({"n": np.arange(2)}, {"n": [1.5, 2.0]})
    {'n': array([1.5, 2. ])}

    """
    allowed = f"a mapping with a column for each of {', '.join(given)}, each as long as the one that it took"
    if not isinstance(found, Mapping):
        raise ParameterError("mechanism", Words(f"one that returned {type(found).__name__}"), allowed)
    if set(found) != set(given):
        names = ", ".join(map(str, found)) or "no column"
        raise ParameterError("mechanism", Words(f"one that returned {names}"), allowed)
    columns = {name: np.asarray(found[name]) for name in given}
    for name, column in columns.items():
        if column.shape != given[name].shape:
            shape = " by ".join(map(str, column.shape)) or "a single value"
            raise ParameterError("mechanism", Words(f"one that returned {shape} for {name}"), allowed)
        if column.dtype.kind not in "iuf":
            raise ParameterError("mechanism", Words(f"one that returned {column.dtype} for {name}"), allowed)
        if not (finite := np.isfinite(column)).all():
            wrong = f"one that returned {column[~finite][0]} in {name}"
            raise ParameterError("mechanism", Words(wrong), f"{allowed}, of finite numbers")
    return columns
