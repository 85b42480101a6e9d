"""Products of workloads about some attributes of many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from dpfast.arguments import Special
from dpfast.domain import Domain
from dpfast.errors import ParameterError, Words
from dpfast.workloads.cells import Total
from dpfast.workloads.kronecker import Kronecker
from dpfast.workloads.shapes import ANY_SHAPE, AnyShape
from dpfast.workloads.workload import ANY_WORKLOAD, Workload

__all__ = ["OfDomain", "Queries", "products_about"]

#: Attributes with names, or without.
OfDomain: TypeAlias = Annotated[
    Domain | AnyShape, Special(lambda: (True, 0, -1, 0.5, "ab", None, object(), [], [0], [2.5], ["a"]))
]
#: By names, or by numbers from 0. (To a type checker a mapping of names is none of names or numbers.)
Queries: TypeAlias = Annotated[
    Mapping[Any, Workload], Special(lambda: (5, True, None, "a", [], {}, object(), {"none such": Total(2)}, {0: None}))
]


def products_about(domain: object, queries: object) -> Kronecker:
    """Return products of queries, with totals along all attributes that have none: as `dpfast.workloads.about`."""
    shape = domain.shape if isinstance(domain, Domain) else ANY_SHAPE.read("domain", domain)
    names = domain.names if isinstance(domain, Domain) else tuple(range(len(shape)))
    if not isinstance(queries, Mapping) or not queries:
        mend = 'write for example {"age": dpf.workloads.prefix(100)}'
        raise ParameterError("queries", queries, "a dictionary of workloads by attributes, at least one", mend)
    for name, asked in queries.items():
        if name not in names or isinstance(name, bool):
            which = "names of the domain" if isinstance(domain, Domain) else f"numbers from 0 to {len(names) - 1}"
            raise ParameterError("queries", name, f"by {which}")
        ANY_WORKLOAD.read("queries", asked)
        size = shape[names.index(name)]
        if asked.shape != (size,):
            given = Words(f"of shape {asked.shape} for {name!r}")
            raise ParameterError("queries", given, f"over its {size:,} values", f"write for example prefix({size})")
    axes = zip(names, shape, strict=True)
    return Kronecker(*(queries[name] if name in queries else Total(size) for name, size in axes))
