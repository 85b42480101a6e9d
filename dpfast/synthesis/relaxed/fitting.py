"""From noisy marginals, wherever they were measured, to pseudo-marginals: what is given is read, then fitted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dpfast.accounting.budget import ShownAmounts
from dpfast.arguments import Choice, Instance, Number, Numeric, Special, is_real
from dpfast.domain.declaring import read_places
from dpfast.domain.domain import Domain
from dpfast.domain.shapes import check_size
from dpfast.errors import ParameterError, Words
from dpfast.graphical.local_consistency import Method, fit_locally
from dpfast.graphical.shared_marginals import shared_sets
from dpfast.ledger.receipt import Receipt
from dpfast.progress import TerminalLine
from dpfast.showing import number_of
from dpfast.synthesis.graphical.synthesizing import MEGABYTES
from dpfast.synthesis.relaxed.estimate import LEAST_DEVIATION, Measured, PseudoMarginals
from dpfast.workloads.histograms import array_of

__all__ = ["METHOD", "fit_marginals", "fit_measured", "read_method", "read_shared"]

Attributes = tuple[int, ...]

METHOD = Choice(("entropy", "least_squares"))
#: Of more of them it takes minutes to find what they share.
_MOST_MARGINALS, _MOST_SHARED = 5_000, 2_000
#: Of more columns than that NumPy has no arrays.
_MOST_COLUMNS = 32
_LARGEST_COUNT = 1e15
_LARGEST_DEVIATION = 1e15
_DOMAIN = Instance(Domain, "a dpfast.Domain", mend='write dpf.Domain({{"sex": ["f", "m"]}})')
_TOTAL = Number(-_LARGEST_COUNT, _LARGEST_COUNT, optional=True, mend="leave it out, or write for example {name}=50_000")


def _no_marginals() -> Iterator[object]:
    yield from (5, True, "a", [], {}, [("a",)], object(), {"a": [1.0, 2.0]}, {5: [1.0]}, {(): 5.0}, {("a", "a"): [1.0]})
    yield from ({("none such",): [1.0]}, {("a", "b"): np.ones((2, 2)), ("b", "a"): np.ones((2, 2))})
    wrong: tuple[object, ...] = (None, 5, "x", [], [1.0], [1.0, None], [1.0, "x"], [[1.0], [2.0]], np.ones(3), object())
    yield from ({("a",): one} for one in (*wrong, [1.0, math.nan], [math.inf, 1.0], [1e300, 1.0], np.array([1j, 1])))


def _no_deviations() -> Iterator[object]:
    yield from (0, -1.0, math.nan, math.inf, True, "1", [], [0.0], [1.0] * 10_001, [math.nan], [None], object(), 1e-300)


#: Noisy counts, by tuples of their columns' names. (To a type checker a mapping of pairs is none of longer tuples.)
NoisyMarginals: TypeAlias = Annotated[Mapping[Any, ArrayLike], Special(_no_marginals)]
#: The deviation of the noise: of all counts, or one for each marginal.
Deviations: TypeAlias = Annotated[Numeric | Sequence[float], Special(_no_deviations)]


def fit_marginals(
    domain: Annotated[Domain, _DOMAIN],
    marginals: NoisyMarginals,
    deviations: Deviations,
    *,
    total: Annotated[float | None, _TOTAL] = None,
    method: Annotated[Method, METHOD] = "entropy",
    max_megabytes: Annotated[float, MEGABYTES] = 16.0,
) -> PseudoMarginals:
    """Make noisy marginals nonnegative and consistent with each other, where no tree has room for a table of them.

    Guarantee
        Post-processing: nothing of any data is read, and nothing is charged; what comes out is as private as the noisy
        marginals are. The same marginals give the same counts. Errors depend on parameters and on the noisy marginals.

        Approximate. What comes out is locally consistent: any two marginals agree on the columns that both have, but
        for a residual that is measured (`PseudoMarginals.residual`), and no count is below 0. Unless the marginals'
        columns form a junction tree, there may be no table that has all of them.

    Parameters
    ----------
    domain
        The public values of the columns.
    marginals
        Noisy counts by the names of their columns, an axis for each: ``{("sex", "age"): counts, ...}``. Of any noise
        without bias. They need not agree, and may be below 0.
    deviations
        The standard deviation of the noise: a number for all, or one for each marginal in their order.
    total
        How many records there are, as measured or as public; below 0 it counts as 0. By default what the marginals
        say: the mean of their sums of least variance, if all noise is independent.
    method
        "entropy" holds noisy counts softly, and what they do not say is as if columns were independent: of many cells
        it errs far less. "least_squares" is the most likely one under Gaussian noise.
    max_megabytes
        How much memory the tree may take that records are drawn from. The fit itself takes about twice the memory of
        the marginals.

    Returns
    -------
    PseudoMarginals
        With ``marginal(columns)`` for every marginal that was given, and its parts; its ``residual``, and whether it
        is ``approximate``. ``domain.records`` draws records from it.

    Raises
    ------
    ParameterError
        An argument is of another kind or range; or a marginal is of another shape, or has a null or NaN.

    Notes
    -----
    "least_squares" minimises the sum of squared distances to the noisy counts, each over the variance of its noise,
    over all nonnegative marginals that agree and add up to the total. The data's own marginals are among these if the
    total is theirs, so that by this distance the result is nearer to them than the noisy ones, always: a projection
    onto a convex set goes nearer to all of its points. "entropy" minimises the relative entropy to independent columns,
    whose counts are those of least squares, plus the squared distances, each over 2 s. The softness s of a marginal is
    .3 to 8 deviations of its noise, the more the larger this is beside the mean count (found by experiment). Both are
    convex, and are solved by accelerated steps of their dual, until no shared count differs by
    more than 1e-5 of the total, or for 2,000 steps (`dpfast.graphical.local_consistency`).

    References
    ----------
    McKenna, Pradhan, Sheldon, Miklau (2021), "Relaxed marginal consistency for differentially private query answering".
    Wainwright, Jordan (2008), "Graphical models, exponential families, and variational inference", section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> domain = dpf.Domain({"a": 2, "b": 3, "c": 2})
    >>> noisy = {
    ...     ("a", "b"): np.array([[30.0, -2.0, 12.0], [9.0, 21.0, 31.0]]),
    ...     ("b", "c"): np.array([[18.0, 19.0], [1.0, 22.0], [40.0, 3.0]]),
    ...     ("a", "c"): np.array([[25.0, 18.0], [33.0, 27.0]]),
    ... }
    >>> fitted = dpf.fit_marginals(domain, noisy, deviations=3.0, total=100)
    >>> apart = fitted.marginal(["a", "b"]).sum(axis=0) - fitted.marginal(["c", "b"]).sum(axis=0)
    >>> bool(np.abs(apart).max() <= fitted.residual), fitted.residual <= 0.001
    (True, True)
    >>> fitted.guarantee
    'approximate: locally consistent, its marginals may belong to no table'
    >>> domain.records(fitted, 50).height
    50

    """
    _DOMAIN.read("domain", domain)
    method, megabytes = read_method(method), MEGABYTES.read("max_megabytes", max_megabytes)
    records = _TOTAL.read_optional("total", total)
    cliques, values = _read_marginals(marginals, domain)
    measured = Measured(cliques, values, _read_deviations(deviations, len(cliques)))
    return fit_measured(domain, measured, records, method, megabytes)


def fit_measured(
    domain: Domain,
    measured: Measured,
    total: float | None,
    method: Method,
    max_megabytes: float,
    spent: ShownAmounts | None = None,
    paid: Receipt | None = None,
) -> PseudoMarginals:
    """Return pseudo-marginals of what was measured, whose arguments have been read; as `fit_marginals`."""
    cliques = measured.cliques
    shared = read_shared(cliques)
    if total is None:
        weights = [1.0 / (one * one * own.size) for one, own in zip(measured.deviations, measured.values, strict=True)]
        sums = [float(own.sum()) for own in measured.values]
        total = math.fsum(w * s for w, s in zip(weights, sums, strict=True)) / math.fsum(weights)
    total = max(total, 0.0)
    with TerminalLine() as line:
        fit = fit_locally(domain.shape, cliques, shared, measured.values, measured.deviations, total, method, line)
    return PseudoMarginals(domain, measured, fit, total, method, max_megabytes, spent, paid)


def read_shared(cliques: Sequence[Attributes]) -> list[Attributes]:
    """Return the sets of attributes that marginals have in common, or refuse what takes too long to fit."""
    shared = shared_sets(cliques, _MOST_SHARED) if len(cliques) <= _MOST_MARGINALS else None
    if shared is None:
        given = Words(f"{number_of(len(cliques), 'marginal')} that share too many sets of columns")
        allowed = f"at most {_MOST_MARGINALS:,} marginals that share at most {_MOST_SHARED:,} sets of columns"
        raise ParameterError("marginals", given, allowed, "give fewer of them")
    return shared


def read_method(method: object) -> Method:
    """Return how marginals are fitted, checked."""
    return "entropy" if METHOD.read("method", method) == "entropy" else "least_squares"


def _read_marginals(marginals: object, domain: Domain) -> tuple[tuple[Attributes, ...], list[Any]]:
    """Return the attributes of each marginal, ascending, and its counts in one dimension; borrowed where possible."""
    allowed = "a dictionary of counts by tuples of the domain's columns, each set of columns once"
    mend = 'write for example {("sex", "age"): counts}'
    if not isinstance(marginals, Mapping) or not marginals:
        raise ParameterError("marginals", marginals, allowed, mend)
    found: dict[Attributes, Any] = {}
    for names, counts in marginals.items():
        known = isinstance(names, tuple) and 0 < len(names) <= _MOST_COLUMNS
        if not known or len(set(names)) < len(names) or not set(names) <= set(domain.names):
            raise ParameterError("marginals", names, allowed, mend)
        places = read_places(names, domain.names)
        order = tuple(sorted(places))
        if order in found:
            raise ParameterError("marginals", names, allowed, "give the mean of both")
        check_size(math.prod(domain.shape[place] for place in places), "marginals", "cells")
        table = _read_counts(counts, tuple(domain.shape[place] for place in places))
        turned = table.transpose([places.index(place) for place in order])
        found[order] = np.ascontiguousarray(turned, dtype=np.float64).reshape(-1)
    check_size(sum(own.size for own in found.values()), "marginals", "cells")
    return tuple(found), list(found.values())


def _read_counts(counts: object, shape: tuple[int, ...]) -> Any:
    """Return one marginal's noisy counts as an array of its shape."""
    array = array_of(counts, "marginals")
    if array.shape != shape or array.dtype.kind not in "iuf":
        given = Words(f"counts of shape {array.shape} and type {array.dtype}")
        raise ParameterError("marginals", given, f"of the domain's shape there, {shape}, and numbers")
    # NaN is not within them either.
    if not bool((np.abs(array.astype(np.float64, copy=False)) <= _LARGEST_COUNT).all()):
        raise ParameterError("marginals", Words("with NaN, or beyond 1e15"), "finite counts, at most 1e15")
    return array


def _read_deviations(deviations: object, number: int) -> tuple[float, ...]:
    """Return a deviation for each marginal."""
    given = [deviations] * number if is_real(deviations) else deviations
    listed = list(given) if isinstance(given, (list, tuple, np.ndarray)) and np.ndim(given) == 1 else []
    found = [float(one) for one in listed if is_real(one) and LEAST_DEVIATION <= one <= _LARGEST_DEVIATION]
    if len(found) < len(listed) or len(found) != number:
        allowed = f"a number from 1e-9 to 1e15, or one for each of {number_of(number, 'marginal')}"
        raise ParameterError("deviations", deviations, allowed)
    return tuple(found)
