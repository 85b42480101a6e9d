"""Workloads beside their matrices, written down without the package's own rows."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

import dpfast as dpf

make = dpf.workloads


def cells_of(shape):
    return list(itertools.product(*map(range, shape)))


def rectangle_matrix(shape, lower, upper):
    return np.array(
        [
            [all(low <= at < high for low, at, high in zip(lows, cell, highs, strict=True)) for cell in cells_of(shape)]
            for lows, highs in zip(lower, upper, strict=True)
        ],
        float,
    )


def marginal_matrix(shape, marginals):
    rows = []
    for marginal in marginals:
        for values in itertools.product(*(range(shape[attribute]) for attribute in marginal)):
            wanted = dict(zip(marginal, values, strict=True))
            rows.append([all(cell[a] == value for a, value in wanted.items()) for cell in cells_of(shape)])
    return np.array(rows, float)


def kronecker_matrix(matrices):
    out = np.ones((1, 1))
    for matrix in matrices:
        out = np.array([np.outer(one, other).reshape(-1) for one in out for other in matrix])
    return out


sizes = st.integers(1, 7)
shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@st.composite
def ranges(draw):
    n = draw(sizes)
    pairs = draw(st.lists(st.tuples(st.integers(0, n), st.integers(0, n)).map(sorted), min_size=1, max_size=6))
    lower, upper = np.array(pairs).T
    return make.ranges(n, lower, upper), rectangle_matrix((n,), lower[:, None], upper[:, None])


@st.composite
def rectangles(draw):
    shape = draw(shapes)
    corner = st.tuples(*(st.tuples(st.integers(0, n), st.integers(0, n)).map(sorted) for n in shape))
    bounds = np.array(draw(st.lists(corner, min_size=1, max_size=5)))
    lower, upper = bounds[:, :, 0], bounds[:, :, 1]
    return make.rectangles(shape, lower, upper), rectangle_matrix(shape, lower, upper)


@st.composite
def prefixes(draw):
    n = draw(sizes)
    return make.prefix(n), np.tril(np.ones((n, n)))


@st.composite
def all_ranges(draw):
    n = draw(sizes)
    pairs = list(itertools.combinations(range(n + 1), 2))
    return make.all_range(n), rectangle_matrix((n,), [[low] for low, _ in pairs], [[high] for _, high in pairs])


@st.composite
def identities(draw):
    shape = draw(shapes)
    return make.identity(shape), np.eye(len(cells_of(shape)))


@st.composite
def totals(draw):
    shape = draw(shapes)
    return make.total(shape), np.ones((1, len(cells_of(shape))))


@st.composite
def marginals(draw):
    shape = draw(shapes)
    if draw(st.booleans()):
        k = draw(st.integers(0, len(shape)))
        return make.marginals(shape, k), marginal_matrix(shape, itertools.combinations(range(len(shape)), k))
    subset = st.sets(st.integers(0, len(shape) - 1)).map(lambda chosen: tuple(sorted(chosen)))
    chosen = draw(st.lists(subset, min_size=1, max_size=6))
    given = [marginal[::-1] for marginal in chosen]
    return make.marginals(shape, attributes=given), marginal_matrix(shape, chosen)


@st.composite
def matrices(draw):
    shape = draw(shapes)
    queries = draw(st.integers(1, 5))
    numbers = np.random.default_rng(draw(st.integers(0, 2**32))).integers(-3, 4, (queries, *shape))
    kind = draw(st.sampled_from(["bool", "uint8", "int8", "int64", "float32", "float64", "sparse", "sparse bool"]))
    if kind in ("bool", "uint8", "sparse bool"):
        numbers = (numbers > 0).astype(np.uint8 if kind == "uint8" else bool)
    flat = numbers.reshape(queries, -1).astype(float)
    if "sparse" in kind:
        from scipy.sparse import coo_array

        whole = coo_array(numbers.reshape(queries, -1))
        return make.matrix(whole, shape), flat
    wide = draw(st.booleans())
    given = numbers if "bool" in kind else numbers.astype(kind)
    return make.matrix(given if wide else np.asfortranarray(given.reshape(queries, -1)), shape), flat


simple = st.one_of(ranges(), rectangles(), prefixes(), all_ranges(), identities(), totals(), marginals(), matrices())
small = simple.filter(lambda pair: pair[0].cells <= 12 and len(pair[0]) <= 12)


@st.composite
def products(draw):
    pairs = draw(st.lists(small, min_size=1, max_size=3))
    return make.kronecker(*(pair[0] for pair in pairs)), kronecker_matrix([pair[1] for pair in pairs])


@st.composite
def unions(draw):
    first, own = draw(simple)
    parts, blocks = [first], [own]
    for part, matrix in ((make.identity(first.shape), np.eye(first.cells)), (make.total(first.shape), None)):
        if draw(st.booleans()):
            parts.append(part)
            blocks.append(np.ones((1, first.cells)) if matrix is None else matrix)
    return make.stack(*parts), np.concatenate(blocks)


#: A workload and its matrix.
workloads = st.one_of(simple, products(), unions())
