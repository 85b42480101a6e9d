"""Right calls of workloads, domains, strategies and synthesis."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import polars as pl

import dpfast as dpf
from dpfast import theory

from .calls import Call

COUNTS = np.array([5, 0, 2, 1])
LINE = dpf.workloads.prefix(4)
DOMAIN = dpf.Domain({"a": 2, "b": ["x", "y"]})
RECORDS = pl.DataFrame({"a": [0, 1], "b": ["x", "y"]})
NUMBERED = RECORDS.with_columns(pl.Series("n", [0, 1]))
FILE = Path(mkdtemp()) / "records.csv"
RECORDS.write_csv(FILE)


def of(call: str, function: Callable[..., Any], /, **given: Any) -> Call:
    """Return a call of what changes none of its arguments."""
    return Call(call, function, lambda: dict(given))


class OfAny(Call):
    """A call of a function that takes any number of arguments of one kind, here with one of them."""

    @property
    def parameters(self) -> list[str]:
        return list(self.signature.parameters)

    def __call__(self, **changed: Any) -> Any:
        return self.function(*{**self.given(), **changed}.values())


WORKLOADS = [
    OfAny("kronecker", dpf.workloads.kronecker, lambda: {"workloads": LINE}),
    OfAny("stack", dpf.workloads.stack, lambda: {"workloads": LINE}),
    of("identity", dpf.workloads.identity, shape=(2, 2)),
    of("total", dpf.workloads.total, shape=4),
    of("prefix", dpf.workloads.prefix, n=4),
    of("all_range", dpf.workloads.all_range, n=4),
    of("ranges", dpf.workloads.ranges, n=4, lower=[1], upper=[2]),
    of("random_ranges", dpf.workloads.random_ranges, n=4, count=2, seed=1),
    of("rectangles", dpf.workloads.rectangles, shape=(2, 2), lower=[[0, 1]], upper=[[1, 2]]),
    of("random_rectangles", dpf.workloads.random_rectangles, shape=(2, 2), count=2, seed=1),
    of("marginals", dpf.workloads.marginals, shape=(2, 2), k=1),
    of("marginals of sets", dpf.workloads.marginals, shape=(2, 2), attributes=[(0,)]),
    of("about", dpf.workloads.about, domain=DOMAIN, queries={"a": dpf.workloads.prefix(2)}),
    of("matrix", dpf.workloads.matrix, rows=[[1, 0, 1, 0]], shape=(2, 2)),
    *[
        of(f"{type(workload).__name__}.{method}", getattr(workload, method), **given)
        for workload in [
            dpf.workloads.identity(4),
            dpf.workloads.total(4),
            LINE,
            dpf.workloads.all_range(4),
            dpf.workloads.ranges(4, [0, 1], [1, 4]),
            dpf.workloads.rectangles(4, [[0]], [[2]]),
            dpf.workloads.marginals((2, 2), k=1),
            dpf.workloads.matrix(np.eye(4)),
            dpf.workloads.kronecker(dpf.workloads.prefix(2), dpf.workloads.total(2)),
            LINE + LINE,
        ]
        for method, given in [
            ("answer", {"histogram": COUNTS}),
            ("transposed", {"coefficients": np.ones(len(workload))}),
            ("rows", {"start": 0, "stop": 1}),
            ("query", {"index": 0}),
        ]
    ],
]
DOMAINS = [
    of("Domain", dpf.Domain, attributes={"a": 2, "b": ["x", None]}, outside="drop", nulls=["a"]),
    of("Domain.from_schema", dpf.Domain.from_schema, data=RECORDS, attributes={"a": 2}, columns=["a"]),
    of("Domain.frame", DOMAIN.frame, columns=["b"]),
    of("Domain.open", DOMAIN.open, data=RECORDS),
    of("Domain.count", DOMAIN.count, data=RECORDS),
    Call(
        "Domain.count of a file",
        DOMAIN.count,
        lambda: {"data": FILE, "schema": {"a": pl.Int64, "b": pl.String}},
        skipped=frozenset({"data"}),
    ),
    of("Domain.records", DOMAIN.records, cells=[0, 3]),
    of("OpenRecords.count", DOMAIN.open(RECORDS).count),
    of("histogram", dpf.workloads.histogram, data=RECORDS, attributes={"a": 2}, outside="null"),
]
BUDGET = {"workload": LINE, "epsilon": 1.0}
MATRIX = dpf.matrix_mechanism(COUNTS, **BUDGET)
STRATEGIES = [
    OfAny("product", dpf.strategies.product, lambda: {"factors": dpf.strategies.identity(4)}),
    of("choose", dpf.strategies.choose, **BUDGET, among=[dpf.strategies.identity(4)]),
    of("hierarchy", dpf.strategies.hierarchy, cells=4, branching=2, weights=[1, 1]),
    of("strategies.identity", dpf.strategies.identity, shape=(2, 2)),
    of("strategies.marginals", dpf.strategies.marginals, shape=(2, 2), attributes=[(0,), (1,)], weights=[1, 2]),
    of("strategies.matrix", dpf.strategies.matrix, rows=[[1, 0], [0, 1]], shape=2),
    of("optimal", dpf.strategies.optimal, workload=LINE),
    of("p_identity", dpf.strategies.p_identity, workload=LINE),
    of("square_root", dpf.strategies.square_root, cells=4),
    of("wavelet", dpf.strategies.wavelet, cells=4),
    of("Strategy.norm", dpf.strategies.identity(4).norm, order=1),
    of("matrix_mechanism", dpf.matrix_mechanism, histogram=COUNTS, **BUDGET),
    of("matrix_mechanism by rho", dpf.matrix_mechanism, histogram=COUNTS, workload=LINE, rho=0.5),
    of("MatrixRelease.half_width", MATRIX.half_width, confidence=0.9),
    of("MatrixRelease.frame", MATRIX.frame, confidence=0.9),
]
ESTIMATE = dpf.ahp(COUNTS, **BUDGET)
MADE = dpf.synthesize(RECORDS, DOMAIN, epsilon=1.0, rounds=1, ledger=dpf.Ledger(epsilon=1))
MODEL = dpf.synthesize(RECORDS, DOMAIN, [("a", "b")], epsilon=1.0, rounds=1, ledger=dpf.Ledger(epsilon=1)).estimate
PLAN = dpf.plan_synthesis(DOMAIN, epsilon=0.1, rounds=1)
PLANNED = dpf.plan_marginals(DOMAIN, [("a", "b")], rho=0.1)
MEASURED = PLANNED.run(RECORDS, ledger=dpf.Ledger(epsilon=100, delta=1e-9, accountant="zcdp"))
FITTED = MEASURED.fit()
ONLINE = dpf.PrivateMultiplicativeWeights(COUNTS, epsilon=1.0, updates=2, total=8)
BOOSTED = dpf.boost_queries(COUNTS, **BUDGET, rounds=2, samples=2, total=8)
SYNTHESIS = [
    *[
        of(f"{function.__name__}{' by rho' * ('rho' in budget)}", function, histogram=COUNTS, **budget, **more)
        for function, more in [
            (dpf.adaptive_hierarchy, {}),
            (dpf.ahp, {}),
            (dpf.dawa, {}),
            (dpf.estimate_histogram, {}),
            (dpf.mwem, {"rounds": 2}),
            (dpf.projection_mechanism, {}),
            (dpf.boost_queries, {"rounds": 2, "samples": 2}),
        ]
        for budget in [BUDGET, {"workload": LINE, "rho": 0.5}]
    ],
    Call(
        "synthesize",
        dpf.synthesize,
        lambda: {"data": RECORDS, "domain": DOMAIN, "epsilon": 0.1, "rounds": 1, "ledger": dpf.Ledger(epsilon=1000)},
    ),
    Call(
        "synthesize a model",
        dpf.synthesize,
        lambda: {
            "data": RECORDS,
            "domain": DOMAIN,
            "workload": [("a", "b"), ("a",)],
            "impossible": [(dpf.column("a") == 0) & (dpf.column("b") == "y")],
            "epsilon": 0.1,
            "delta": 1e-9,
            "rounds": 1,
            "ledger": dpf.Ledger(epsilon=1000, delta=1e-3),
        },
    ),
    Call(
        "plan_synthesis",
        dpf.plan_synthesis,
        lambda: {
            "domain": DOMAIN,
            "workload": [("a", "b"), ("a",)],
            "impossible": [(dpf.column("a") == 0) & (dpf.column("b") == "y")],
            "epsilon": 0.1,
            "delta": 1e-9,
            "rounds": 1,
            "accountant": "zcdp",
        },
    ),
    of("SynthesisPlan.columns", PLAN.columns, records=100),
    Call("SynthesisPlan.run", PLAN.run, lambda: {"data": RECORDS, "ledger": dpf.Ledger(epsilon=1000)}),
    Call("plan_marginals", dpf.plan_marginals, lambda: {"domain": DOMAIN, "workload": [("a", "b")], "rho": 0.1}),
    Call(
        "release_marginals",
        dpf.release_marginals,
        lambda: {
            "data": RECORDS,
            "domain": DOMAIN,
            "workload": [("a", "b"), ("a",)],
            "weights": [1.0, 2.0],
            "epsilon": 0.1,
            "delta": 1e-9,
            "ledger": dpf.Ledger(epsilon=1000, delta=1e-3),
        },
    ),
    of("MarginalsPlan.deviation", PLANNED.deviation, columns=["b", "a"]),
    of("MarginalsPlan.deviations", PLANNED.deviations, workload=dpf.workloads.marginals((2, 2), k=1)),
    of("MarginalsRelease.answer", MEASURED.answer, workload=dpf.workloads.marginals((2, 2), k=1)),
    of("MarginalsRelease.answers_frame", MEASURED.answers_frame, workload=dpf.workloads.marginals((2, 2), k=1)),
    of("MarginalsRelease.marginal", MEASURED.marginal, columns=["b", "a"]),
    of("MarginalsRelease.to_frame", MEASURED.to_frame, columns=["b", "a"]),
    Call(
        "MarginalsPlan.run",
        PLANNED.run,
        lambda: {"data": RECORDS, "ledger": dpf.Ledger(epsilon=1000, delta=1e-3, accountant="zcdp")},
    ),
    of("MarginalsRelease.fit", MEASURED.fit, method="least_squares"),
    of(
        "fit_marginals",
        dpf.fit_marginals,
        domain=DOMAIN,
        marginals={("a", "b"): np.ones((2, 2)), ("b",): [1.0, 2.5]},
        deviations=[1.0, 2],
        total=4,
    ),
    of("PseudoMarginals.marginal", FITTED.marginal, columns=["b", "a"]),
    of("PseudoMarginals.to_frame", FITTED.to_frame, columns=["b", "a"]),
    of("PseudoMarginals.draw_codes", FITTED.draw_codes, n=10, threads=2),
    of("PseudoMarginals.draw_parts", FITTED.draw_parts, n=10, most=5, threads=2),
    of("PseudoMarginals.explain", FITTED.explain),
    of("PseudoMarginals.report", FITTED.report, path=FILE.with_name("fitted.html"), overwrite=True),
    of("Synthesis.marginal", MADE.marginal, columns=["b", "a"]),
    of("ModelEstimate.marginal", MODEL.marginal, columns=["a"]),
    of("Synthesis.answer", MADE.answer, workload=dpf.workloads.marginals(MADE.domain.shape, k=1)),
    of("ModelEstimate.answer", MODEL.answer, workload=dpf.workloads.marginals(MODEL.shape, k=1)),
    of("ModelEstimate.draw_codes", MODEL.draw_codes, n=10, threads=2),
    of("ModelEstimate.draw_parts", MODEL.draw_parts, n=10, most=5, threads=2),
    of("Synthesis.draw_parts", MADE.draw_parts, n=10, most=5, threads=2),
    of("Synthesis.report", MADE.report, path=FILE.with_name("made.html"), overwrite=True),
    of("ModelEstimate.report", MODEL.report, path=FILE.with_name("model.html"), overwrite=True),
    of("MarginalsRelease.report", MEASURED.report, path=FILE.with_name("marginals.html"), overwrite=True),
    of("Synthesis.write", MADE.write, path=FILE.with_name("made.csv")),
    Call(
        "propose_domain",
        dpf.propose_domain,
        lambda: {
            "data": NUMBERED,
            "attributes": {"b": ["x", "y"]},
            "ledger": dpf.Ledger(epsilon=1000, delta=1e-3),
            "columns": ["b", "n"],
            "epsilon": 0.1,
            "delta": 1e-9,
            "bins": 2,
            "categories": 2,
            "bounds": {"n": (0, 1)},
        },
    ),
    of("ModelEstimate.errors", MODEL.errors),
    of("ModelEstimate.plot", MODEL.plot, path=None, title=None),
    of("mwem after the charge", dpf.mwem, histogram=lambda: COUNTS, **BUDGET, rounds=2, pay="at_once"),
    of("PrivateMultiplicativeWeights", dpf.PrivateMultiplicativeWeights, histogram=COUNTS, epsilon=1.0),
    of("PrivateMultiplicativeWeights.answer", ONLINE.answer, query=[1, 0, 0, 1]),
    of("PrivateMultiplicativeWeights.answer_all", ONLINE.answer_all, workload=LINE),
    of("PrivateMultiplicativeWeights.utility", ONLINE.utility, queries=10),
    of("project_answers", dpf.project_answers, answers=[4.0, 3, 9, 10], workload=LINE, total=10),
    of("BoostedAnswers.estimate", BOOSTED.estimate, iterations=10),
    of("Estimate.counts", ESTIMATE.counts, n=10),
    of("Estimate.draw_cells", ESTIMATE.draw_cells, n=10),
    of("Estimate.draw_parts", ESTIMATE.draw_parts, n=10, most=5, threads=2),
    of("Domain.record_batches", dpf.Domain({"a": 4}).record_batches, estimate=ESTIMATE, n=10, most=5, threads=2),
    of(
        "Domain.write_records",
        dpf.Domain({"a": 4}).write_records,
        estimate=ESTIMATE,
        path=FILE.with_name("written.csv"),
        n=10,
    ),
    of("Estimate.to_frame", ESTIMATE.to_frame, columns=["x0"], values={"x0": list("abcd")}),
    of("Estimate.report", ESTIMATE.report, path=FILE.with_name("estimate.html"), overwrite=True),
    of("Estimate.plot", ESTIMATE.plot, histogram=COUNTS, title="Errors"),
    of("Domain.records of an estimate", dpf.Domain({"a": 4}).records, cells=ESTIMATE),
]
THEORY = [
    of("step_size", theory.step_size, advantage=1 / 3),
    of("naive_factor", theory.naive_factor, weights=10),
    of("inaccurate_share", theory.inaccurate_share, advantage=1 / 3, rounds=10),
    of("rounds_needed", theory.rounds_needed, queries=1000, advantage=1 / 3),
    of("book_rounds", theory.book_rounds, queries=1000, advantage=1 / 3),
    of("sample_epsilon", theory.sample_epsilon, step=0.8, rounds=63, sensitivity=1, margin=87567),
    of("sampling_epsilon", theory.sampling_epsilon, epsilon=0.002, draws=6300, delta=1e-6),
    of("least_margin", theory.least_margin, step=0.8, rounds=63, samples=100, epsilon=1.0, delta=1e-6),
    of("generalization", theory.generalization, bits=40, advantage=1 / 3, gamma=0.025),
    of("brute_force_samples", theory.brute_force_samples, records=10, cells=16, beta=0.05),
    of("laplace_accuracy", theory.laplace_accuracy, scale=100.0, samples=263, beta=0.05),
    of("subsample_size", theory.subsample_size, queries=1000, beta=0.05, accuracy=0.1),
    of("projection_error", theory.projection_error, total=1000, queries=200, cells=50, epsilon=0.5, delta=1e-6),
    of("round_to_multiples", theory.round_to_multiples, histogram=[3.0, 0.1, 6.9], accuracy=0.3),
]
CALLS = [*WORKLOADS, *DOMAINS, *STRATEGIES, *SYNTHESIS, *THEORY]
