"""Small calls of what dpfast draws and counts: `dpfast doctor` compares their answers.

Calls with a seed give the same numbers on every processor. What they must give stands in known_answers.py, which
scripts/write_known_answers.py writes. Calls that no seed decides have a budget so large that the noise of all their
answers is 0 with probability at least 1 - exp(-100), and must give the exact figures. Figures that are computed from
noise in floating point are rounded first: processors differ in their last bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf
from dpfast.cli.doctor.known_answers import KNOWN_ANSWERS
from dpfast.integrations.expressions import Expressions
from dpfast.randomness import RandomSource
from dpfast.sketches.bitmap import LEVELS, answer_at_random, estimate_values, places_of
from dpfast.sketches.hashing import hash_values, readable
from dpfast.testing import SeededRandom

__all__ = ["CHECKS", "Check", "fingerprint"]

_ROWS = 4096
_SEED = 20_261_123


@dataclass(frozen=True)
class Check:
    """A call, and what it must give.

    Attributes
    ----------
    name
        What a person reads.
    draw
        The call, with its randomness.
    exact
        What it must give, where that is no matter of a seed.

    """

    name: str
    draw: Callable[[RandomSource], Any]
    exact: Callable[[], Any] | None = None

    def answer(self) -> str:
        """Make the call; return the fingerprint of what it gave."""
        return fingerprint(self.draw(SeededRandom(_SEED)))

    def expected(self) -> str | None:
        """Return the fingerprint of what it must give; None where nothing is known."""
        return KNOWN_ANSWERS.get(self.name) if self.exact is None else fingerprint(self.exact())


def fingerprint(answer: Any) -> str:
    """Return 16 hexadecimal digits that tell an answer from others: of its numbers in order, whatever holds them."""
    digest = hashlib.blake2b(digest_size=8)
    for part in _parts(answer):
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _parts(answer: Any) -> Iterator[np.ndarray[Any, Any]]:
    if isinstance(answer, pl.DataFrame):
        for column in answer.iter_columns():
            yield column.to_numpy()
    elif isinstance(answer, tuple):
        for one in answer:
            yield from _parts(one)
    else:
        yield np.asarray(answer)


def _integers() -> np.ndarray[Any, Any]:
    return np.arange(_ROWS, dtype=np.int64) * 7919 % 1009


def _numbers() -> np.ndarray[Any, Any]:
    return _integers() / 8.0


def _scores() -> np.ndarray[Any, Any]:
    return (_integers() % 64).reshape(-1, 16) / 4.0


def _scales() -> np.ndarray[Any, Any]:
    return 5.0 + _integers() / 64.0


def _frame() -> pl.DataFrame:
    values = _integers()
    return pl.DataFrame(
        {"group": values % 10, "shop": pl.Series(values % 3).cast(pl.String), "x": values, "unit": values}
    )


def _released(by: str, query: Any, **more: Any) -> Any:
    """Return the answers to a query by group, in the order of the groups."""
    asked: dict[str, Any] = {"privacy_unit": "row", "epsilon": 1e6, "ledger": dpf.Ledger(epsilon=1e6), **more}
    keys = _frame().select(by).unique()
    return dpf.release(_frame(), by, keys=keys, answer=query, **asked).frame.sort(by)["answer"]


def _grouped(by: str, expression: pl.Expr) -> Any:
    return _frame().group_by(by).agg(answer=expression).sort(by)["answer"].cast(pl.Int64)


def _counted_stream(random: RandomSource) -> Any:
    counter = dpf.continual_count(64, epsilon=1.0, random=random)
    return np.array([counter.step(row) for row in range(64)])


def _histogram() -> np.ndarray[Any, Any]:
    return np.bincount(_integers(), minlength=1024)


def _whole(answer: Any) -> np.ndarray[Any, Any]:
    rounded: np.ndarray[Any, Any] = np.rint(np.asarray(answer)).astype(np.int64)
    return rounded


def _estimated(name: str, method: Callable[..., Any]) -> Check:
    """Return the check of a method that must find the very histogram where there is no noise."""
    asked = {"workload": dpf.workloads.prefix(1024), "epsilon": 1e6}
    return Check(
        f"Histogram by {name}",
        lambda random: _whole(method(_histogram(), random=random, **asked).histogram),
        _histogram,
    )


def _weighed(random: RandomSource, **more: Any) -> Any:
    """Return cells after some rounds of multiplicative weights, in thousandths."""
    return _whole(1e3 * dpf.mwem(epsilon=1.0, rounds=3, random=random, **more).histogram)


def _reported(oracle: Callable[..., Any], random: RandomSource) -> Any:
    return oracle(1024, 1.0).randomize(_integers(), random=random)


def _modelled(_: RandomSource) -> Any:
    domain, sets = dpf.Domain({"group": 10, "shop": ["0", "1", "2"]}), [("group", "shop")]
    asked: dict[str, Any] = {"epsilon": 1e6, "rounds": 1, "rows": 10, "ledger": dpf.Ledger(epsilon=1e6)}
    estimate: Any = dpf.synthesize(_frame(), domain, sets, **asked).estimate
    return _whole(estimate.marginal(["group", "shop"])).reshape(-1)


def _pairs() -> Any:
    return _frame().group_by("group", "shop").len().sort("group", "shop")["len"].cast(pl.Int64)


def _sketched(random: RandomSource, column: str, kind: str) -> Any:
    """Return a sketch's bits of different values, answered at random, and their number as it is told by them."""
    values = hash_values(_frame().select(readable(pl.col(column), kind)).to_series(), kind, 7)
    bits = np.zeros(64 * LEVELS, np.bool_)
    bits[places_of(values, 64)] = True
    shown = answer_at_random(bits, 2**60, random)
    ones = shown.reshape(64, LEVELS).sum(axis=0)
    return shown, _whole(estimate_values(ones, 64, 1 - 2.0**-3, 0.05)[0])


def _answered(_: RandomSource) -> Any:
    """Return the answers to a table of queries, each with an epsilon of its own."""
    asked = pl.DataFrame({"n": _integers()[:64], "epsilon": 200.0 + _integers()[:64]})
    return dpf.answer(asked, value="n", epsilon="epsilon", ledger=dpf.Ledger(epsilon=1e6))["answer"]


def _noisy_expression(_: RandomSource) -> Any:
    """Return values with next to no noise, by the compiled functions that Polars itself calls."""
    drawn = Expressions(pl.col("n")).laplace(scale=1e-3)
    return pl.DataFrame({"n": _integers()}).select(drawn).to_series()


#: What compiles in a second or two comes first. Both parts are in about the order of the rooms of dpfast/kernels.
CHECKS = (
    Check("Laplace noise, integers", lambda random: dpf.laplace(_integers(), 10.0, random=random)),
    Check("Gaussian noise, integers", lambda random: dpf.gaussian(_integers(), 10.0, random=random)),
    Check("Counts by integers", lambda _: _released("group", dpf.count()), lambda: _grouped("group", pl.len())),
    Check("Counts by texts", lambda _: _released("shop", dpf.count()), lambda: _grouped("shop", pl.len())),
    Check(
        "Sums by integers",
        lambda _: _released("group", dpf.sum("x", bounds=(0, 1008))),
        lambda: _grouped("group", pl.col("x").sum()),
    ),
    Check(
        "Counts of privacy units",
        lambda _: _released("shop", dpf.count(), privacy_unit="unit", max_groups=1, max_rows_per_group=5),
        lambda: _grouped("shop", pl.len()),
    ),
    Check(
        "Randomized response",
        lambda random: dpf.randomized_response(_integers() % 5, 5, 1.0, random=random),
    ),
    Check("Answers of a table", _answered, lambda: _integers()[:64]),
    Check("Counter of a stream", _counted_stream),
    Check("Sparse vector", lambda random: dpf.above_threshold(_scores(), 12.0, 1.0, random=random)),
    *(
        Check(f"Reports by {oracle.__name__}", partial(_reported, oracle))
        for oracle in (dpf.SubsetSelection, dpf.OptimizedLocalHashing, dpf.HadamardResponse)
    ),
    Check("Sketch of different numbers", partial(_sketched, column="x", kind="number")),
    Check("Sketch of different texts", partial(_sketched, column="shop", kind="text")),
    # What takes longer to compile.
    Check("Laplace noise, floats", lambda random: dpf.laplace(_numbers(), 10.0, random=random)),
    Check("Laplace noise, a scale a row", lambda random: dpf.laplace(_integers(), _scales(), random=random)),
    Check("Gaussian noise, floats", lambda random: dpf.gaussian(_numbers(), 10.0, random=random)),
    Check("Gaussian noise, a scale a row", lambda random: dpf.gaussian(_integers(), _scales(), random=random)),
    Check("Exponential mechanism, rows", lambda random: dpf.exponential(_scores(), 1.0, random=random)),
    Check("Exponential mechanism, one row", lambda random: dpf.exponential(_numbers(), 1.0, random=random)),
    Check("Exponential mechanism, draws", lambda random: dpf.exponential_draws(_numbers(), 0.1, 64, random=random)),
    Check("Permute and flip", lambda random: dpf.permute_and_flip(_scores(), 1.0, random=random)),
    Check("Noisy top k", lambda random: dpf.noisy_top_k(_scores(), 3, 1.0, random=random)),
    Check(
        "Quantiles",
        lambda random: dpf.quantiles(_integers(), [0.25, 0.5, 0.75], bounds=(0, 1008), epsilon=1.0, random=random),
    ),
    _estimated("adaptive_hierarchy", dpf.adaptive_hierarchy),
    _estimated("ahp", dpf.ahp),
    _estimated("dawa", dpf.dawa),
    _estimated("matrix_mechanism", dpf.matrix_mechanism),
    Check(
        "Noise taken out of cells",
        lambda random: _whole(dpf.estimate_histogram(10**6 * _histogram(), epsilon=1.0, random=random).histogram / 1e5),
        lambda: 10 * _histogram(),
    ),
    Check("Marginals of a model", _modelled, _pairs),
    Check(
        "Weights of marginals",
        lambda random: _weighed(
            random, histogram=_histogram().reshape(32, 32), workload=dpf.workloads.marginals((32, 32), k=1)
        ),
    ),
    Check(
        "Weights of ranges",
        lambda random: _weighed(random, histogram=_histogram(), workload=dpf.workloads.prefix(1024)),
    ),
    Check("Noise within Polars", _noisy_expression, _integers),
)
