"""Attack whole releases: what can be told of one unit, with confidence, stays within the claimed epsilon.

Each release holds many blocks of groups far apart, so that one release is many samples: in one world every block
is empty, in the other a unit of its own contributes to it, as much as it can and more than it may.

An attack gives a lower confidence bound of epsilon that exceeds the true one with probability at most 1e-12: the
false-failure rate of every test here. Mutants show that the attacks see what they should; of every attack the least
that it must see lies 8 deviations below what it saw in four runs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import dpfast as dpf
from dpfast.aggregation import by_unit
from dpfast.mechanisms.noise.integer_noise import IntegerNoise
from dpfast.queries import Measure

pytestmark = pytest.mark.statistical

BLOCKS = 150_000


#: The false-failure rate of every test.
MISS = 1e-12


def epsilon_lower_bound(first, second, delta=0.0, miss=MISS):
    """Return an epsilon that two samples of outputs refute: a lower bound that holds but for probability MISS."""
    samples = np.array(first), np.array(second)
    found = dpf.audit(
        lambda world, size: samples[world][:size],
        0,
        1,
        0.0,
        delta,
        samples=min(map(len, samples)),
        confidence=1 - miss,
        batched=True,
    )
    print(found.explain())
    return found.epsilon_lower


def worlds(groups, rows, blocks=BLOCKS):
    """Return a frame in which a unit a block has so many rows in each of its groups, that frame empty, and all keys."""
    width = groups * rows
    block = np.repeat(np.arange(blocks), width)
    group = np.tile(np.repeat(np.arange(groups), rows), blocks)
    present = pl.DataFrame({"k": block * groups + group, "u": block, "x": np.full(len(block), 1000.0)})
    return present, present.clear(), pl.DataFrame({"k": np.arange(blocks * groups)})


def attack(query, groups, rows, most, **arguments):
    """Return the epsilon that is certain to be exceeded, by the sum over a block of figures cut to what matters."""
    present, absent, keys = worlds(groups, rows)
    settled = {"epsilon": 1.0, "keys": keys, **arguments}
    samples = []
    for data in (present, absent):
        figures = dpf.release(
            data, "k", q=query, ledger=dpf.Ledger(epsilon=1, delta=0.1), **{"privacy_unit": "row", **settled}
        ).frame["q"]
        # Laplace noise: a figure's likelihood ratio depends on where it lies between nothing and the most.
        samples.append(figures.to_numpy().reshape(-1, groups).clip(0, most).sum(axis=1))
    return epsilon_lower_bound(*samples, delta=settled.get("delta", 0.0))


UNIT = {"privacy_unit": "u", "max_groups": 2, "max_rows_per_group": 3}


def test_a_row_more():
    assert 0.8 < attack(dpf.count(), 1, 1, 1) <= 1


def test_a_unit_more_that_exceeds_its_bounds():
    """Six rows in each of four groups, of which it may fill two with three."""
    assert 0.2 < attack(dpf.count(), 4, 6, 3, **UNIT) <= 1


def test_a_unit_more_that_fills_its_bounds():
    assert 0.7 < attack(dpf.count(), 2, 3, 3, **UNIT) <= 1


def test_a_sum_of_values_beyond_the_bounds():
    assert 0.7 < attack(dpf.sum("x", bounds=(5, 10)), 2, 3, 30, **UNIT) <= 1


def test_a_mean():
    """Among thirty rows of others, so that the noise leaves something of each group: what is shown is its own mean."""
    present, absent, keys = worlds(1, 1)
    others = pl.DataFrame({"k": np.repeat(np.arange(BLOCKS), 30), "u": -1, "x": np.zeros(30 * BLOCKS)})
    samples = []
    for data in (present, absent):
        frame = dpf.release(
            pl.concat([data, others], how="vertical_relaxed"), "k", keys=keys, q=dpf.mean("x", bounds=(-10, 10)),
            privacy_unit="row", epsilon=1, ledger=dpf.Ledger(epsilon=1),
        ).frame  # fmt: skip
        samples.append(np.clip(frame["q"].to_numpy() * 30, 0, 10).round(1))
    assert 0.2 < epsilon_lower_bound(*samples) <= 1


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("value", [None, 1000.0])
def test_figures_that_are_measured_together(value, mechanism):
    """Three rows with a value, or without: the number of rows, that of missing values, and the sum, all at once."""
    present, absent, keys = worlds(1, 3)
    queries = {"n": dpf.count(), "c": dpf.count("x"), "s": dpf.sum("x", bounds=(0, 10))}
    unit = {**UNIT, "max_groups": 1}
    delta = 0.0 if mechanism == "laplace" else 1e-2
    samples = []
    for data in (present.with_columns(x=pl.lit(value, dtype=pl.Float64)), absent):
        ledger = dpf.Ledger(epsilon=1, delta=0.1)
        settled = {"keys": keys, "epsilon": 1.0, "delta": delta, "mechanism": mechanism, **unit}
        frame = dpf.release(data, "k", ledger=ledger, **settled, **queries).frame
        # Of Laplace noise only where a figure lies between nothing and the most tells the worlds apart.
        rows, missing = frame["n"].clip(0, 3), (frame["n"] - frame["c"]).clip(0, 3)
        samples.append((rows + missing + frame["s"].clip(0, 30) / 10).round().to_numpy())
    assert 0.1 < epsilon_lower_bound(*samples, delta=delta) <= 1


def test_gaussian_noise():
    """With delta = 1e-2, so that its share in what is told can be seen."""
    told = attack(dpf.count(), 1, 1, np.inf, mechanism="gaussian", delta=1e-2)
    assert 0.5 < told <= 1


def test_a_row_that_changes_its_group():
    """Replace: one group loses a row, another gains one."""
    keys = pl.DataFrame({"k": np.arange(2 * BLOCKS)})
    samples = []
    for place in (0, 1):
        data = pl.DataFrame({"k": 2 * np.arange(BLOCKS) + place})
        ledger = dpf.Ledger(epsilon=1)
        frame = dpf.release(
            data, "k", keys=keys, n=dpf.count(), neighbors="replace", privacy_unit="row", epsilon=1, ledger=ledger
        ).frame
        samples.append(frame["n"].to_numpy().reshape(-1, 2).clip(0, 1) @ [-1, 1])
    assert 0.7 < epsilon_lower_bound(*samples) <= 1


@pytest.mark.parametrize("units", [1, 6])
def test_selected_keys_and_their_figures(units):
    """Whether a key is shown and its figure together: epsilon_k + epsilon_q at delta = 1e-2."""
    samples = []
    for rows in (units, units + 1):
        data = pl.DataFrame({"k": np.repeat(np.arange(BLOCKS), rows)})
        ledger = dpf.Ledger(epsilon=1, delta=1e-2)
        frame = dpf.release(
            data, "k", n=dpf.count(), privacy_unit="row", epsilon=1, delta=1e-2, mechanism="laplace", ledger=ledger
        ).frame
        figures = np.full(BLOCKS, -1000.0)
        figures[frame["k"].to_numpy()] = frame["n"].to_numpy()
        samples.append(figures)
    assert epsilon_lower_bound(*samples, delta=1e-2) <= 1


def draw_less(patch, factor):
    """The noise has a smaller scale than the event that is charged says: a charge of such an event is refused."""
    add = IntegerNoise.add

    def add_less(noise, *given, **named):
        return add(replace(noise, scale=noise.scale / factor), *given, **named)

    patch.setattr(IntegerNoise, "add", add_less)


def halve_the_scale(patch):
    """The noise is half of what it should be."""
    draw_less(patch, 2.0)


def forget_the_groups(patch):
    """The sensitivity lacks its factor max_groups."""
    whole = Measure.sensitivity
    patch.setattr(Measure, "sensitivity", lambda measure, unit: whole(measure, replace(unit, max_groups=1)))


def forget_to_bound(patch):
    """Units keep all their rows."""
    bound = by_unit.bound_contributions

    def nothing_bounded(units, number, groups, keys, max_groups, max_rows, words, **named):
        return bound(units, number, groups, keys, 1000, 1000, words, **named)

    patch.setattr(by_unit, "bound_contributions", nothing_bounded)


@pytest.mark.parametrize(
    ("mutate", "groups", "rows"), [(halve_the_scale, 2, 3), (forget_the_groups, 2, 3), (forget_to_bound, 4, 6)]
)
@pytest.mark.parametrize("query", ["count", "sum"])
def test_attacks_see_through_mutants(mutate, groups, rows, query, monkeypatch):
    """Each mutant tells more than it claims, and the same attack as above is certain of it."""
    mutate(monkeypatch)
    most = rows * (10 if query == "sum" else 1)
    asked = dpf.count() if query == "count" else dpf.sum("x", bounds=(5, 10))
    assert attack(asked, groups, rows, most, **UNIT) > 1


def test_attacks_see_a_scale_too_small_by_an_eighth(monkeypatch):
    """How sharp the simplest attack is: epsilon 1.15 in place of 1 is found out."""
    draw_less(monkeypatch, 1.15)
    assert attack(dpf.count(), 1, 1, 1) > 1
