"""What is attacked: any function from exact answers to noisy ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpfast.arguments import Special
from dpfast.errors import ParameterError, Words
from dpfast.workloads.histograms import array_of

__all__ = ["Mechanism", "ask"]


def _no_mechanisms() -> Iterator[object]:
    yield from (None, 5, "laplace", object(), [len], lambda: 1.0, lambda answers: answers[:-1], lambda answers: 0.0)
    yield from (lambda answers: answers * np.nan, lambda answers: ["a"] * len(answers), {"a": 1})


#: Takes an array of exact answers and returns as many noisy ones: ``lambda answers: dpf.laplace(answers, 5.0)``.
Mechanism: TypeAlias = Annotated[Callable[[NDArray[np.float64]], Any], Special(_no_mechanisms)]


def ask(mechanism: Any, exact: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a mechanism answers.

    Raises
    ------
    ParameterError
        It cannot be called so, or returns something else than as many finite numbers.

    """
    mend = "write for example mechanism=lambda answers: dpf.laplace(answers, 5.0)"
    if not callable(mechanism):
        raise ParameterError("mechanism", mechanism, "a function from exact answers to noisy ones", mend)
    try:
        noisy = array_of(mechanism(exact.copy()), "mechanism")
    except TypeError:
        noisy = None
    if noisy is None:
        raise ParameterError("mechanism", Words("called in vain"), "a function of an array of exact answers", mend)
    if noisy.shape != exact.shape or noisy.dtype.kind not in "biuf" or not np.isfinite(noisy).all():
        returned = Words(f"one that returned {noisy.dtype} of shape {noisy.shape}")
        allowed = f"a function that returns as many finite numbers as it is given, here {exact.size:,}"
        raise ParameterError("mechanism", returned, allowed, mend)
    return noisy.astype(np.float64)
