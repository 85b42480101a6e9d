"""The fit to measurements: what the small tables and the atoms compute is what the cells would."""

from __future__ import annotations

import numpy as np
import pytest

import dpfast as dpf
from dpfast.kernels.weights.replay import fit_mass
from dpfast.weights.marginal_model import MarginalModel, cover
from dpfast.weights.model import RowModel

from .naive_fit import fit, solve

SOFTNESS = 0.3


@pytest.mark.parametrize("softness", [1e-6, 0.1, 3.0, 1e4])
@pytest.mark.parametrize("mass", [1e-9, 0.7, 12.0, 1e7])
@pytest.mark.parametrize("value", [-50.0, 0.0, 3.0, 1e6])
def test_one_mass_is_where_its_equation_holds(mass, value, softness):
    for dual in (-2.0, 0.0, 1.5):
        factor, moved = fit_mass(mass, dual, value, softness)
        step = solve(mass, dual, value, softness)
        if dual + step < -30.0:
            assert moved == -30.0
            continue
        tolerance = 1e-9 * max(abs(value), softness)
        assert mass * factor + softness * moved == pytest.approx(value, abs=tolerance, rel=1e-9)
        assert np.log(factor) == pytest.approx(step, abs=1e-6)


def test_an_exact_measurement_is_met_and_nothing_grows_out_of_nothing():
    assert fit_mass(4.0, 0.0, 10.0, 0.0) == (2.5, 0.0)
    assert fit_mass(0.0, 0.2, 10.0, 1.0) == (1.0, 0.2)


SHAPES = [((3, 2, 4, 2, 3), 2), ((2, 2, 2, 2, 2, 2, 2), 3), ((5, 7), 1), ((6,), 1), ((2, 3, 4), 3), ((4, 1, 3), 2)]


@pytest.mark.parametrize(("shape", "k"), SHAPES)
def test_marginals_through_small_tables_are_those_of_the_cells(shape, k, seed):
    generator = np.random.default_rng(seed)
    workload = dpf.workloads.marginals(shape, k)
    start = generator.uniform(0.5, 2.0, workload.cells)
    model = MarginalModel(shape, workload.attributes, start.copy(), (300.0, 7.0), SOFTNESS)
    assert model.answers() == pytest.approx(workload.answer(start.reshape(shape)), rel=1e-12)

    measured = list(range(0, len(workload.attributes), 2))
    homes = cover(shape, workload.attributes)
    owner = [next(i for i, held in enumerate(homes) if set(m) <= set(held)) for m in workload.attributes]
    ordered = sorted(measured, key=lambda group: (owner[group], group))
    rows, values, softness = [], [], []
    for group in ordered:
        first, last = workload.groups[group], workload.groups[group + 1]
        noisy = generator.normal(20.0, 9.0, last - first)
        model.measure(group, noisy, 9.0)
        rows.append(workload.rows(first, last))
        values.append(noisy)
        softness.append(np.full(last - first, SOFTNESS * 81.0))
    queries = np.concatenate([*rows, np.ones((1, workload.cells))])
    everything = np.append(np.concatenate(values), 300.0), np.append(np.concatenate(softness), SOFTNESS * 49.0)
    weights, _ = fit(queries, *everything, start, 3)
    model.replay(3)
    assert model.histogram() == pytest.approx(weights, rel=1e-7)


def test_a_cover_holds_every_marginal_and_saves_most_of_the_work():
    shape = (4, 2, 4, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 2)
    marginals = dpf.workloads.marginals(shape, 2).attributes
    sets = cover(shape, marginals)
    assert all(any(set(marginal) <= set(held) for held in sets) for marginal in marginals)
    assert len(sets) == 3
    assert all(np.prod([shape[a] for a in held]) <= 2**12 for held in sets)


def test_ranges_on_atoms_are_those_of_the_cells(seed):
    generator = np.random.default_rng(seed)
    lower = generator.integers(0, 40, 12)
    workload = dpf.workloads.ranges(64, lower, lower + generator.integers(1, 24, 12))
    start = generator.uniform(0.5, 2.0, 64)
    model = RowModel(workload, np.arange(13), start.copy(), (90.0, 0.0), SOFTNESS)
    assert model.answers() == pytest.approx(workload.answer(start))
    noisy = generator.normal(20.0, 9.0, 12)
    for group in (3, 7, 1, 9):
        model.measure(group, noisy[group : group + 1], 9.0)
    queries = np.concatenate([workload.rows(0, 12)[[3, 7, 1, 9]], np.ones((1, 64))])
    values, softness = np.append(noisy[[3, 7, 1, 9]], 90.0), np.append(np.full(4, SOFTNESS * 81.0), 0.0)
    weights, _ = fit(queries, values, softness, start, 4)
    model.replay(4)
    assert model.histogram() == pytest.approx(weights, rel=1e-7)


def test_disjoint_queries_measured_at_once_are_fitted_one_by_one(seed):
    """A group as rows gives what the same queries do as marginals."""
    generator = np.random.default_rng(seed)
    workload = dpf.workloads.marginals((3, 4), 1)
    noisy, start = generator.normal(9.0, 2.0, 3), generator.uniform(0.5, 2.0, 12)
    models = [
        RowModel(workload, workload.groups, start.copy(), (30.0, 1.0), SOFTNESS),
        MarginalModel((3, 4), workload.attributes, start.copy(), (30.0, 1.0), SOFTNESS),
    ]
    for model in models:
        model.measure(0, noisy, 2.0)
        model.replay(500)
    assert models[0].histogram() == pytest.approx(models[1].histogram(), rel=1e-3)


@pytest.mark.parametrize("signed", [False, True])
def test_real_queries_end_where_the_gradient_vanishes(signed, seed, monkeypatch):
    monkeypatch.setattr("dpfast.weights.model.TOLERANCE", 1e-12)
    generator = np.random.default_rng(seed)
    matrix = generator.uniform(-1.0 if signed else 0.0, 1.0, (5, 30))
    workload = dpf.workloads.matrix(matrix)
    start = np.ones(30)
    model = RowModel(workload, np.arange(6), start.copy(), (30.0, 1.0), SOFTNESS)
    truth = matrix @ generator.uniform(0.0, 3.0, 30)
    for group in range(5):
        model.measure(group, truth[group : group + 1], 0.5)
    model.replay(20_000)
    weights = model.histogram()
    queries = np.concatenate([np.ones((1, 30)), matrix])
    duals = (np.append(30.0, truth) - queries @ weights) / (SOFTNESS * np.array([1.0, *[0.25] * 5]))
    assert np.log(weights / start) == pytest.approx(duals @ queries, abs=1e-6)


def test_repeated_measurements_count_as_their_mean(seed):
    workload = dpf.workloads.prefix(8)
    twice, once = (RowModel(workload, np.arange(9), np.ones(8), (8.0, 0.0), SOFTNESS) for _ in range(2))
    twice.measure(2, np.array([4.0]), 3.0)
    twice.measure(2, np.array([8.0]), 3.0)
    once.measure(2, np.array([6.0]), 3.0 / np.sqrt(2.0))
    for model in (twice, once):
        model.replay(50)
    assert twice.histogram() == pytest.approx(once.histogram(), rel=1e-9)


@pytest.mark.parametrize("factor", [2.0**-20, 64.0])
def test_data_and_noise_scaled_alike_scale_the_estimate(factor, seed):
    """Scale-epsilon exchangeability, for the fit; noise scales are exchanged in `test_privacy`."""
    generator = np.random.default_rng(seed)
    workload = dpf.workloads.marginals((3, 4, 2), 2)
    noisy = generator.normal(9.0, 5.0, len(workload))
    models = []
    for c in (1.0, factor):
        model = MarginalModel((3, 4, 2), workload.attributes, np.full(24, 4.0 * c), (90.0 * c, 3.0 * c), SOFTNESS / c)
        for group in range(3):
            part = slice(workload.groups[group], workload.groups[group + 1])
            model.measure(group, c * noisy[part], 5.0 * c)
        model.replay(30)
        models.append(model.histogram() / c)
    assert models[1] == pytest.approx(models[0], rel=1e-9)
