"""Ledgers that add up rho or divergences, allotments, run-length encoding, and what a report may call a guarantee."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast.accounting.accountants import rdp, zcdp
from dpfast.accounting.budget import Amounts
from dpfast.accounting.encoding import from_text, to_text
from dpfast.accounting.events import (
    Approximate,
    Composed,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    KeySelection,
    Laplace,
    Partitioned,
    PermuteAndFlip,
    PoissonSubsampled,
    Pure,
    RandomizedResponse,
    ZeroConcentrated,
    runs,
)
from dpfast.accounting.odometer import odometer_epsilon
from dpfast.errors import BudgetExceededError, LedgerError, ParameterError
from dpfast.ledger import Charge, ChargeColumns, Ledger

ABOUT = {"dataset": "flights", "privacy_unit": "row", "neighbors": "add_remove"}

EVENTS = [
    Laplace(10.0),
    Laplace(0.1, 3),
    DiscreteLaplace(2.5, 4),
    Gaussian(7.0, 2.0),
    ExponentialMechanism(0.3),
    PermuteAndFlip(0.3),
    RandomizedResponse(0.3, 5),
    Pure(1e-18),
    Approximate(0.0, 1e-9),
    Approximate(0.1, 1e-9),
    KeySelection(0.1, 1e-9),
    ZeroConcentrated(0.01),
    PoissonSubsampled(Gaussian(1.0), 0.01),
    Partitioned((Laplace(10.0), Pure(0.1))),
]


@pytest.mark.parametrize("event", [*EVENTS, Composed(tuple(EVENTS)), Gaussian(1.0).times(7)], ids=repr)
def test_events_as_text(event):
    """What a ledger notes is read back as the same fact, to the last bit."""
    assert from_text(to_text(event)) == event


@pytest.mark.parametrize("text", ["", "{}", "1", '{"kind": "Nothing"}', '{"kind": "Pure"}', '{"kind": "Pure", "x": 1}'])
def test_bad_text(text):
    with pytest.raises((ParameterError, AttributeError)):
        runs(from_text(text))


@pytest.mark.parametrize("accountant", ["zcdp", "rdp"])
def test_admits_as_much_as_the_conversion_allows(make_ledger, accountant):
    """Gaussian queries fit until the sum of rho is what (epsilon, conversion delta) buys; not one more."""
    rho = zcdp.largest_rho(1, 5e-7)
    ledger = make_ledger(1.0, 1e-6, accountant=accountant)
    scale = 30.0
    fits = rho // zcdp.cost(Gaussian(scale))[0]
    query = Charge(0, 0, "a Gaussian query", Gaussian(scale))
    done = 0
    for _ in range(2 * fits):
        try:
            ledger.charge(query, **ABOUT)
        except BudgetExceededError:
            break
        done += 1
    # Rényi divergences are kept at some orders only: the best of them may admit a little less.
    assert done == fits if accountant == "zcdp" else fits * 0.99 <= done <= fits
    again = ledger.remaining
    with pytest.raises(BudgetExceededError):
        ledger.charge(query, **ABOUT)
    assert ledger.remaining == again


@pytest.mark.parametrize("accountant", ["zcdp", "rdp"])
def test_cap_is_sound(accountant):
    """Soundness rule 23: what a full ledger has spent is (epsilon, conversion delta) by the accountant itself."""
    ledger = Ledger(2.0, 1e-6, accountant=accountant, conversion_delta=1e-6)
    facts = []
    generator = np.random.default_rng(3)
    kinds = [
        lambda x: Gaussian(30 + 60 * x),
        lambda x: DiscreteLaplace(30 + 60 * x),
        lambda x: Laplace(30 + 60 * x),
        lambda x: ExponentialMechanism(0.01 + 0.03 * x),
    ]
    for _ in range(10_000):
        fact = kinds[generator.integers(len(kinds))](generator.random())
        try:
            charge = Charge(0, 0, "", fact) if isinstance(fact, Gaussian) else Charge.of(0.5, event=fact)
            ledger.charge(charge, **ABOUT)
        except BudgetExceededError:
            break
        facts.append(fact)
    accountants = {"zcdp": zcdp.ZCDP, "rdp": rdp.RDP}
    assert 1.9 < accountants[accountant](facts).epsilon(1e-6) <= 2.0


def largest_real_delta(epsilon, delta):
    """Return the delta at epsilon of an analyst who steers between two orders of a ledger that adds up divergences.

    Randomized response with many answers has a large loss with a small probability: each is cheap next to one
    order alone. The first question tells which of them the loss so far makes more of; the second is the strongest
    that the ledger then admits. All losses are known exactly.
    """

    def losses(event):
        e, k = event.epsilon, event.categories
        rest = math.exp(e) + k - 1
        return ((e, math.exp(e) / rest), (-e, 1 / rest), (0.0, (k - 2) / rest))

    def strongest(first, e):
        low, high = 1, 2**20  # the least number of answers that is admitted
        while high - low > 1:
            k = (low + high) // 2
            ledger = Ledger(epsilon, delta, accountant="rdp", conversion_delta=delta)
            try:
                for event in (first, RandomizedResponse(e, k)):
                    ledger.charge(Charge.of(2, event=event), **ABOUT)
                high = k
            except BudgetExceededError:
                low = k
        return RandomizedResponse(e, high)

    worst = 0.0
    for first in (RandomizedResponse(0.01), RandomizedResponse(0.02)):
        total = 0.0
        for loss, probability in losses(first)[:2]:
            seconds = [strongest(first, e) for e in (1.01, 1.05, 1.1, 1.2)]
            real = [sum(p * max(0.0, -math.expm1(epsilon - loss - more)) for more, p in losses(s)) for s in seconds]
            total += probability * max(real)
        worst = max(worst, total)
    return worst


def test_orders_share_delta():
    """Soundness rule 23: a filter of many orders keeps its delta although the answers decide at which one it ends.

    With the whole delta for every order this analyst would reach 1.2 times the delta.
    """
    assert 0.5e-2 < largest_real_delta(1.0, 1e-2) <= 1e-2


def test_delta_beside(make_ledger):
    """Events with a delta of their own spend the part of delta that the conversion leaves."""
    ledger = make_ledger(1.0, 1e-6, accountant="zcdp", conversion_delta=9e-7)
    keys = Charge.of(0.01, 1e-7, event=KeySelection(0.01, 1e-7))
    ledger.charge(keys, **ABOUT)
    with pytest.raises(BudgetExceededError, match="delta"):
        ledger.charge(Charge.of(0.01, 1e-18), **ABOUT)
    ledger.charge(Charge.of(0.01), **ABOUT)


def test_discrete_laplace_is_no_laplace(make_ledger):
    """Soundness rule 21: at sensitivity 1 discrete noise costs epsilon tanh(epsilon/2), more than continuous."""
    ledger = make_ledger(10.0, 1e-6, accountant="zcdp")
    ledger.charge(Charge.of(1, event=DiscreteLaplace(1.0)), **ABOUT)
    assert ledger.spent.rho == pytest.approx(0.46211715726, abs=1e-11)
    ledger.charge(Charge.of(1, event=Laplace(1.0)), **ABOUT)
    assert ledger.spent.rho == pytest.approx(0.46211715726 + 0.36787944117, abs=1e-11)
    ledger.charge(Charge.of(1), **ABOUT)
    assert ledger.spent.rho == pytest.approx(2 * 0.46211715726 + 0.36787944117, abs=1e-11)


def test_rho_needs_its_ledger(make_ledger):
    """A ledger that adds up epsilons has nothing to charge for a rho."""
    ledger = make_ledger(1.0)
    with pytest.raises(LedgerError, match="no epsilon"):
        ledger.charge(Charge(0, 0, "", Gaussian(1.0)), **ABOUT)
    columns = ChargeColumns(Gaussian, {"scale": np.ones(2), "sensitivity": np.ones(2)}, None)
    with pytest.raises(LedgerError, match="no epsilon"):
        ledger.charge_many([columns], **ABOUT)
    assert ledger.spent.epsilon == 0.0


@pytest.mark.parametrize(
    "parameters",
    [
        {"accountant": "pld"},
        {"accountant": None},
        {"accountant": "zcdp", "delta": 0},
        {"accountant": "zcdp", "conversion_delta": 2e-6},
        {"accountant": "zcdp", "conversion_delta": -1},
        {"accountant": "basic", "conversion_delta": 1e-7},
    ],
    ids=str,
)
def test_bad_accountant(make_ledger, parameters):
    if parameters["accountant"] is None:
        pytest.skip("a durable ledger takes None for its own")
    with pytest.raises(ParameterError):
        make_ledger(**{"epsilon": 1.0, "delta": 1e-6, **parameters})


@pytest.mark.statistical
def test_odometer_holds_at_all_times():
    """Losses of adaptively scaled Gaussian queries cross the odometer's line with probability at most delta.

    20,000 walks of 300 queries, each scaled by the loss so far; at delta 0.05 at most 1,000 are expected to
    cross. A bound that is true fails with probability below 1e-9 (1,000 + 6.2 deviations).
    """
    generator = np.random.default_rng(11)
    walks, delta = 20_000, 0.05
    loss, rho, crossed = np.zeros(walks), np.zeros(walks), np.zeros(walks, bool)
    lines = [odometer_epsilon(10.0**power, delta) for power in np.linspace(-5, 2, 1401)]
    for _ in range(300):
        step = np.where(loss > 0.5, 0.002, 0.02)  # the analyst slows down where the loss is large
        loss += step + np.sqrt(2 * step) * generator.normal(size=walks)  # the loss of a Gaussian query of that rho
        rho += step
        crossed |= loss > np.interp(np.log10(rho), np.linspace(-5, 2, 1401), lines)
    assert 0 < crossed.sum() <= delta * walks + 6.2 * math.sqrt(walks * delta)


def test_odometer(make_ledger):
    """No rho is refused; what was spent is more than the same sum would cost under a bound fixed before."""
    ledger = make_ledger(None, 1e-6, accountant="odometer", conversion_delta=9e-7)
    assert ledger.spent == Amounts(0.0, 1e-6)
    for _ in range(3):
        ledger.charge(Charge(0, 0, "", Gaussian(1.0)), **ABOUT)
    ledger.charge(Charge.of(0.1, 1e-7), **ABOUT)
    rho = 1.5 + zcdp.cost(Pure(0.1))[0] / 1e18
    assert ledger.spent.epsilon == pytest.approx(odometer_epsilon(rho, 9e-7))
    assert ledger.spent.epsilon > zcdp.ZCDP(ZeroConcentrated(rho)).epsilon(9e-7)
    assert ledger.spent.delta == 1e-6
    assert ledger.remaining == Amounts(math.inf, 0.0)
    assert ledger.report().height > 1
    for bad in ({"epsilon": 1.0, "delta": 1e-6}, {"epsilon": None, "delta": 0}, {"epsilon": None, "delta": 2}):
        with pytest.raises(ParameterError):
            Ledger(**bad, accountant="odometer")


def test_accountant_is_kept(tmp_path):
    path = tmp_path / "ledger.db"
    with Ledger.open(path, 1.0, 1e-6, accountant="rdp") as ledger:
        ledger.charge(Charge(0, 0, "", Gaussian(100.0)), **ABOUT)
        spent = ledger.spent
    again = Ledger.open(path)
    assert (again.accountant, again.spent) == ("rdp", spent)
    with pytest.raises(LedgerError, match="accountant"):
        Ledger.open(path, accountant="basic")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["", "a", "b"]), st.integers(1, 60)),
        max_size=30,
    )
)
def test_allotments_never_exceed_the_whole(charges):
    """However it is charged, the sum of allotments and of charges past them stays within the budget."""
    ledger = Ledger(1.0)
    accounts = {"": ledger, "a": ledger.allot("a", epsilon=0.3), "b": ledger.allot("b", epsilon=0.25)}
    spent = dict.fromkeys(accounts, 0)
    room = {"": 45, "a": 30, "b": 25}
    for name, hundredths in charges:
        fits = spent[name] + hundredths <= room[name]
        try:
            accounts[name].charge(Charge(hundredths * 10**16, 0, ""), **ABOUT)
        except BudgetExceededError:
            assert not fits
        else:
            assert fits
            spent[name] += hundredths
    assert sum(spent.values()) <= 100
    assert accounts["a"].remaining.epsilon == pytest.approx(0.3 - spent["a"] / 100, abs=1e-15)


def test_allotments_are_kept(make_ledger):
    """An allotment is found again, with its entries and the ledger's identity; it is charged to the whole at once."""
    ledger = make_ledger(1.0, 1e-6)
    team = ledger.allot("team-a", epsilon=0.3, delta=1e-7)
    team.charge(Charge.of(0.1, 1e-7, "count"), **ABOUT)
    again = ledger.allotment("team-a")
    assert again.spent.epsilon == 0.1
    assert ledger.remaining.epsilon == 0.7
    assert again.identity == ledger.identity
    assert again.history()["description"].to_list() == ["count"]
    assert ledger.history()["account"].to_list() == ["", "team-a"]
    for refused in (
        lambda: ledger.allot("team-a", epsilon=0.1),
        lambda: ledger.allotment("team-b"),
        lambda: team.allot("part", epsilon=0.1),
    ):
        with pytest.raises(LedgerError):
            refused()
    with pytest.raises(BudgetExceededError):
        ledger.allot("too much", epsilon=0.8)
    with pytest.raises(LedgerError, match="no allotment"):
        ledger.allotment("too much")
    for bad in ({"epsilon": 0.1, "rho": 0.1}, {"rho": 0.1}, {}, {"epsilon": -1}):
        with pytest.raises(ParameterError):
            ledger.allot("bad", **bad)
    assert ledger.remaining.epsilon == 0.7


def test_allotments_of_rho(make_ledger):
    ledger = make_ledger(5.0, 1e-6, accountant="zcdp")
    before = ledger.remaining
    team = ledger.allot("team", rho=0.1, delta=1e-8)
    assert before.rho - ledger.remaining.rho == pytest.approx(0.1)
    assert before.delta - ledger.remaining.delta == pytest.approx(1e-8)
    with pytest.raises(BudgetExceededError):
        team.charge(Charge(0, 0, "", Gaussian(2.2)), **ABOUT)
    team.charge(Charge(0, 0, "", Gaussian(2.24)), **ABOUT)


def test_allotment_of_rho_is_no_pure_guarantee(make_ledger):
    """Soundness rule 23: what an allotment promises, it promises at the delta that converts the whole ledger's rho."""
    ledger = make_ledger(1.0, 1e-6, accountant="zcdp", conversion_delta=4e-7)
    team = ledger.allot("team", rho=0.01)
    assert team.total == Amounts(1.0, 4e-7)
    assert team.remaining.delta == 0
    team.charge(Charge(0, 0, "", Gaussian(10.0)), **ABOUT)
    report = team.report()
    assert "at delta 4e-07" in report["note"][0]
    spent = zcdp.ZCDP(Gaussian(10.0)).epsilon(4e-7)
    assert report.filter(accountant="zCDP")["epsilon"].item() == spent < 1.0
    assert ledger.allot("keys", rho=0.001, delta=1e-7).total == Amounts(1.0, 5e-7)


def test_equal_charges_are_one_entry(make_ledger):
    """Run-length encoding: equal neighbours in one call are one entry; numbers go on after all of them."""
    ledger = make_ledger(100.0)
    tenth, fifth = Charge.of(0.1, 0, "x"), Charge.of(0.2, 0, "x")
    assert ledger.charge_many([tenth] * 5 + [fifth] + [tenth] * 2, **ABOUT) == range(1, 9)
    assert ledger.charge(Charge.of(0.1, count=10**6 // 10_000), **ABOUT) == 9
    assert ledger.charge(tenth, **ABOUT) == 109
    assert ledger.history().select("entry", "count").rows() == [(1, 5), (6, 1), (7, 2), (9, 100), (109, 1)]
    assert ledger.history()["epsilon"].sum() == pytest.approx(11.0)


def test_columns_are_one_charge(make_ledger):
    """All rows or none; sums are exact; the rows come back."""
    ledger = make_ledger(1.0)
    epsilon = np.array([0.1] * 7 + [0.2])
    columns = ChargeColumns(Laplace, {"scale": 1 / epsilon, "sensitivity": np.ones(8)}, epsilon, None, "rows")
    assert ledger.charge_many([columns], **ABOUT) == range(1, 9)
    assert ledger.spent.epsilon == 0.9
    with pytest.raises(BudgetExceededError):
        ledger.charge_many([columns], **ABOUT)
    ledger.charge(Charge.of(0.1), **ABOUT)
    assert ledger.remaining.epsilon == 0.0
    (first, _) = ledger._store.entries()
    assert first.item.epsilon.tolist() == epsilon.tolist()


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": dict},
        {"kind": RandomizedResponse},
        {"parameters": {"scale": np.ones(2)}},
        {"parameters": {"scale": np.ones(2), "sensitivity": np.ones(3)}},
        {"parameters": {"scale": np.array([1.0, math.nan]), "sensitivity": np.ones(2)}},
        {"parameters": {"scale": np.array([1.0, 0.0]), "sensitivity": np.ones(2)}},
        {"parameters": {"scale": np.ones(0), "sensitivity": np.ones(0)}, "epsilon": np.ones(0)},
        {"epsilon": None},
        {"epsilon": np.array([1.0, math.nan])},
        {"epsilon": np.array([1.0, -1.0])},
        {"epsilon": np.array([1.0, 1e7])},
        {"epsilon": np.array([1, 1])},
        {"epsilon": [1.0, 1.0]},
        {"delta": np.array([1e-6, 1.0])},
        {"description": None},
    ],
    ids=str,
)
def test_bad_columns(bad):
    good = {
        "kind": Laplace,
        "parameters": {"scale": np.ones(2), "sensitivity": np.ones(2)},
        "epsilon": np.ones(2),
        "delta": None,
        "description": "",
    }
    ChargeColumns(**good)
    with pytest.raises(ParameterError):
        ChargeColumns(**{**good, **bad})


def test_report_of_one_plan(make_ledger):
    """Golden: 100 queries at 0.1, delta 1e-6, declared in one call: every accountant's figure is a guarantee.

    Row 13-3.
    """
    ledger = make_ledger(10.0, 1e-6)
    ledger.charge(Charge.of(0.1, event=Laplace(10.0), count=100), **ABOUT)
    report = {name: (epsilon, holds) for name, epsilon, holds, _ in ledger.report().rows()}
    golden = {
        "budget": 10.0,
        "basic composition": 10.0,
        "advanced composition": 5.75611,
        "optimal composition": 4.77457,
        "privacy loss distribution": 4.69267,
    }
    for name, epsilon in golden.items():
        assert report[name] == (pytest.approx(epsilon, rel=2e-4), True)
    assert report["zCDP"][0] < 5.22153
    assert "Gaussian (GDP)" not in report


def test_report_of_several_calls(make_ledger):
    """Soundness rule 23: figures for declared plans are no guarantee once a parameter may depend on an answer."""
    ledger = make_ledger(10.0, 1e-6)
    for _ in range(2):
        ledger.charge(Charge.of(0.1, event=DiscreteLaplace(10.0), count=50), **ABOUT)
    report = ledger.report()
    holding = report.filter("holds")
    assert holding["accountant"].to_list() == ["budget", "basic composition"]
    assert holding["epsilon"].to_list() == [10.0, 10.0]
    assert report.filter(~pl.col("holds"))["note"].str.contains("no guarantee").all()
    assert report.filter(accountant="privacy loss distribution")["epsilon"].item() == pytest.approx(4.77457, rel=2e-4)


def test_report_of_columns(make_ledger):
    """Columns of many parameters are composed with noise rounded down: an upper bound, and a close one."""
    generator = np.random.default_rng(5)
    scale = generator.uniform(1000.0, 2000.0, 5_000)
    ledger = make_ledger(100.0, 1e-6)
    columns = ChargeColumns(Laplace, {"scale": scale, "sensitivity": np.ones(scale.size)}, 1 / scale)
    ledger.charge_many([columns], **ABOUT)
    wanted = ["zCDP", "privacy loss distribution"]
    report = {name: epsilon for name, epsilon, *_ in ledger.report(accountants=wanted).rows()}
    mu = math.sqrt(float(np.sum(1 / scale**2)))  # many small Laplace losses are nearly Gaussian
    assert report["privacy loss distribution"] < report["zCDP"] < report["basic composition"]
    assert report["zCDP"] == pytest.approx(zcdp.ZCDP(ZeroConcentrated(mu**2 / 2)).epsilon(1e-6), rel=5e-3)


def test_report_of_nothing(make_ledger):
    assert make_ledger(1.0).report().rows() == [
        ("budget", 1.0, True, "the ledger's own bound, at delta 0, whatever is still asked")
    ]


@pytest.mark.parametrize("count", [-1, 0, 2**63, 1.0, True, None, "1"], ids=repr)
def test_bad_count(count):
    with pytest.raises(ParameterError, match="count"):
        Charge.of(0.1, count=count)


@pytest.mark.parametrize("event", [Laplace(1.0).times(2), Composed((Laplace(1.0),)), 0.1, Laplace, "Laplace"], ids=repr)
def test_bad_event(event):
    """A charge's event runs once a query: how often is the charge's own count."""
    with pytest.raises(ParameterError, match="event"):
        Charge.of(0.1, event=event)


def test_counts_do_not_wrap(make_ledger):
    """Soundness rule 10: 2**62 charges of the smallest epsilon add up exactly; more than the budget is refused."""
    ledger = make_ledger(10.0)
    ledger.charge(Charge(1, 0, "", count=2**62), **ABOUT)
    assert ledger._store.account("").spent[0] == 2**62
    with pytest.raises(BudgetExceededError):
        ledger.charge(Charge(10**6, 0, "", count=2**63 - 1), **ABOUT)


def test_whole_sensitivities():
    """Noise on integers is for whole sensitivities, in columns as in single events: a report reads them all."""
    columns = {"scale": np.array([1.0, 2.0]), "sensitivity": np.array([1.5, 1.5])}
    with pytest.raises(ParameterError, match="sensitivity"):
        ChargeColumns(DiscreteLaplace, columns, np.array([1.5, 1.5]))


def test_no_more_charges_than_numbers(make_ledger):
    """Charges have numbers of 63 bits; what would go beyond is refused, and the ledger stays as it was."""
    ledger = make_ledger(100.0)
    half = Charge(1, 0, "", count=2**62)
    ledger.charge(half, **ABOUT)
    for charges in ([half], [Charge.of(0.1), half]):
        with pytest.raises(LedgerError, match="at most"):
            ledger.charge_many(charges, **ABOUT)
    assert ledger.history()["count"].to_list() == [2**62]
    assert ledger.report(1e-6)["holds"].all()


@pytest.mark.parametrize("accountant", ["basic", "zcdp"])
@pytest.mark.parametrize(
    "event",
    [Partitioned((Gaussian(9.0), Gaussian(9.0))), PoissonSubsampled(Laplace(9.0), 0.1)],
    ids=["parts", "sample"],
)
def test_events_for_add_remove(make_ledger, accountant, event):
    """Soundness rule 13: a unit that is exchanged leaves one part and enters another: no maximum over the parts."""
    ledger = make_ledger(1.0, 1e-6, accountant=accountant)
    charge = Charge.of(0.6, 4e-7, event=event)
    with pytest.raises(LedgerError, match="add_remove"):
        ledger.charge(charge, **{**ABOUT, "neighbors": "replace"})
    assert ledger.identity.neighbors is None
    ledger.charge(charge, **ABOUT)


@pytest.mark.parametrize("value", [10**400, Decimal("sNaN"), np.ones(2)], ids=["huge", "signalling", "array"])
def test_bad_parameters_of_events(value):
    for make in (Laplace, Pure, lambda value: Approximate(0.1, value)):
        with pytest.raises(ParameterError):
            make(value)


@pytest.mark.parametrize("delta", [1, -1e-9, math.nan, "1"])
def test_report_at_a_bad_delta(make_ledger, delta):
    with pytest.raises(ParameterError, match="delta"):
        make_ledger(1.0, 1e-6).report(delta)
