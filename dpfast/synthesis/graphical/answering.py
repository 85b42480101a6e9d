"""Answers of workloads over more cells than a histogram has, from the marginals of what they are about."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpfast.domain.shapes import check_size
from dpfast.errors import ParameterError, Words
from dpfast.synthesis.residuals.queries import blocks_of
from dpfast.workloads.cells import Total
from dpfast.workloads.kronecker import Kronecker
from dpfast.workloads.marginals import Marginals
from dpfast.workloads.rectangles import Rectangles
from dpfast.workloads.workload import ANY_WORKLOAD, Union, Workload

__all__ = ["MOST_AXES", "answer_by_marginals"]

Floats = NDArray[np.float64]
Places = tuple[int, ...]

#: Every NumPy has arrays of so many axes.
MOST_AXES = 32


def answer_by_marginals(workload: object, shape: tuple[int, ...], marginal: Callable[[Places], Floats]) -> Floats:
    """Return the answers of a workload, from marginals over as many attributes as its queries are about.

    Parameters
    ----------
    workload
        Over the cells of ``shape``.
    shape
        How many values each attribute has.
    marginal
        The counts over some attributes, ascending; the total over none.

    Raises
    ------
    ParameterError
        It is over other cells, or its queries are about more attributes together than a table can have cells.

    """
    asked = ANY_WORKLOAD.read("workload", workload)
    if asked.shape != shape:
        mend = "make it over domain.shape"
        raise ParameterError("workload", Words(f"of shape {asked.shape}"), "over the cells of the domain", mend)
    return _answer(asked, tuple(range(len(shape))), shape, marginal)


def _answer(asked: Workload, places: Places, shape: tuple[int, ...], marginal: Callable[[Places], Floats]) -> Floats:
    """Return the answers of a workload over these attributes, all others summed out."""
    if isinstance(asked, Union):
        return np.concatenate([_answer(part, places, shape, marginal) for part in asked.parts])
    if isinstance(asked, Total):
        return marginal(()).reshape(1)
    if isinstance(asked, Marginals):
        tables = [_table(tuple(places[one] for one in held), shape, marginal) for held in asked.attributes]
        return np.concatenate([table.reshape(-1) for table in tables])
    if isinstance(asked, Rectangles):
        answers = np.empty(len(asked))
        for block in blocks_of(asked):
            held = tuple(places[one] for one in block.attributes)
            answers[block.places] = block.answer(_table(held, shape, marginal))
        return answers
    if isinstance(asked, Kronecker):
        # A factor that asks for the total has one query: without it, there are the same ones, in the same order.
        start, kept, about = 0, list[Workload](), list[int]()
        for factor in asked.factors:
            own = places[start : start + len(factor.shape)]
            start += len(own)
            if not isinstance(factor, Total):
                kept.append(factor)
                about += own
        if not kept:
            return marginal(()).reshape(1)
        if len(kept) < len(asked.factors):
            rest = kept[0] if len(kept) == 1 else Kronecker(*kept)
            return _answer(rest, tuple(about), shape, marginal)
    return np.asarray(asked.answer(_table(places, shape, marginal)), np.float64)


def _table(places: Places, shape: tuple[int, ...], marginal: Callable[[Places], Floats]) -> Floats:
    """Return the marginal over some attributes, or refuse one that is too large."""
    if len(places) > MOST_AXES:
        given = Words(f"about {len(places):,} attributes together")
        mend = "ask for marginals, or for products with dpf.workloads.total of what is summed out"
        raise ParameterError("workload", given, f"about at most {MOST_AXES} attributes in each query", mend)
    check_size(math.prod(shape[place] for place in places), "workload", "cells")
    return marginal(places)
