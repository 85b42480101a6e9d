"""`dpfast.plan` and `dpfast.release`: a request -> its blueprint -> a plan, and its run."""

from __future__ import annotations

from typing import Annotated

from dpfast.accounting.budget import Delta, Epsilon, Rho
from dpfast.accounting.privacy_unit import AskedBound, Neighbors
from dpfast.aggregation.sources import AskedEngine, Data, Schema
from dpfast.errors import ParameterError
from dpfast.ledger import Ledger
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import LEDGER
from dpfast.queries import Query
from dpfast.releases.adaptive_blueprint import draw_up_adaptive
from dpfast.releases.blueprint import Blueprint
from dpfast.releases.clipped_planning import clips_whole_units, draw_up_clipped
from dpfast.releases.cut_report import AskedShare, refuse_cut
from dpfast.releases.group_planning import draw_up_groups
from dpfast.releases.plan import Plan
from dpfast.releases.population_intervals import AskedInterval, refuse_population
from dpfast.releases.release import Release
from dpfast.releases.request import (
    AskedMechanism,
    AskedRule,
    AskedStrategy,
    By,
    Keys,
    OwnColumn,
    Population,
    Request,
)
from dpfast.releases.splitting import Splitting
from dpfast.releases.staged_planning import choices_of, draw_up_staged
from dpfast.releases.wishes import Limit, Wishes, limit_of, refuse_wishes
from dpfast.releases.workload_blueprint import draw_up_workload
from dpfast.rows.filters import OwnFilter
from dpfast.workloads.workload import OwnQueries

__all__ = ["draw_up", "plan", "release"]


def plan(
    data: Data,
    by: By = None,
    *,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    error: Wishes = None,
    budget: Limit = None,
    split: Splitting = "even",
    interval: AskedInterval = "noise",
    keys: Keys = None,
    privacy_unit: OwnColumn = None,
    max_groups: AskedBound = None,
    max_rows_per_group: AskedBound = None,
    report_cut: AskedShare = None,
    neighbors: Neighbors = "add_remove",
    mechanism: AskedMechanism = "auto",
    key_selection: AskedRule = "auto",
    population: Population = None,
    dataset: OwnName = None,
    schema: Schema = None,
    engine: AskedEngine = "auto",
    workload: OwnQueries = None,
    strategy: AskedStrategy = "auto",
    where: OwnFilter = None,
    **queries: Query,
) -> Plan:
    """Plan a release of statistics by group, without looking at the data.

    Guarantee
        Running the plan is (epsilon, delta)-differentially private, where neighbouring data differ in one
        privacy unit, and charges at most that; with rho, it is rho-zCDP, and with delta, apart from an event of
        that probability. The charges carry the mechanisms' events, none of which costs more than its share. What
        is checked and chosen here depends on the schema and the parameters alone.

    Parameters
    ----------
    data
        A Polars DataFrame or LazyFrame, a PyArrow table or record batch, a pandas DataFrame (its columns of ``object``
        cannot be used), a relation of DuckDB, `dpfast.sql`, any other Arrow stream (which is read once), or a path,
        glob, folder or list of paths of Parquet, CSV or Arrow IPC files, which are scanned and must not change until
        the plan is run. The footers or headers of all files are read here: columns may come in
        any order, and their dtypes may differ where one holds both without loss; a file that does not fit is refused
        by its name. Folders may name columns, as in ``year=2024/``: strings, or what ``schema`` says. Addresses in
        stores, such as ``s3://bucket/day*.parquet``, are read with what the environment says of the store; other
        options go to Polars: ``pl.scan_parquet("s3://bucket/day*.parquet", storage_options={...})``. With a privacy
        unit, rows that outgrow their share of memory (of control groups, ``ulimit -v``, ``DPFAST_MEMORY_LIMIT``)
        wait encrypted in a nameless file in the folder for temporary files. Its rows are taken as they are given:
        what was joined or exploded before may put one person's data into another's rows. A LazyFrame's own
        expressions must not fail on any value (no strict casts): a run that fails tells one bit about the data.
    by
        The grouping columns: strings, bytes, categoricals, integers, decimals, Booleans, dates, datetimes, times and
        durations; floats by way of `dpf.bins`; months, weekdays, hours and other parts of dates by way of
        `dpf.calendar`. Null is a key like any other. None for one group of all rows.
    epsilon, delta
        The budget of the whole release; delta is needed to select keys, for values that `dpf.top_k` finds in the data,
        and for Gaussian noise.
    rho
        The budget in zero-concentrated privacy, in place of epsilon, for ledgers with the accountant "zcdp" or
        "rdp". Gaussian noise needs no delta then: it is for the selection of keys and of values alone.
    error
        In place of epsilon and rho: how far answers may be off. The plan has the least budget, and division of it, by
        which the noise exceeds each of these with probability 0.05 at most, which is ``error95`` in `Plan.to_frame`. A
        mapping with a wish for every query: for counts, sums, each bin of a histogram, and for quantiles and modes (in
        ranks, and in rows) a number (of dates and times in seconds); for a mean or a proportion, whose error depends on
        the size of the group, such as ``("mean", 2.0, 200)``: within 2.0 in every group of 200 rows or more, or
        units for a mean of these. What clipping and bounds on a unit's rows lose is not in it. The selection of keys
        gets as much as a query does on average, and nothing but delta where a count is the test. With a workload a
        number: the root mean square error over all queries, ``rmse`` in `Plan.to_frame`.
    budget
        What ``error`` may cost: a largest epsilon; ``"rho"`` or ``("rho", 0.1)`` to count it in rho; by default
        epsilon without limit, and for `release` what its ledger adds up.
    split
        How epsilon or rho is divided between the queries. ``"even"``: equal shares. A mapping such as
        ``{"n": 1, "late": 3}``: shares by these weights. ``"optimal"``: the least sum of the variances of all
        queries, each in its own unit (rows, minutes), so that a query of large values gets most;
        ``("optimal", {"n": 1, "late": 1e-4})`` says how much a squared error of each counts. A mean counts as the
        sum that it is made of. What several queries need is measured once, with the shares of all of them. The
        selection of keys gets an even share, or its weight under the name ``"keys"`` in a mapping. delta is divided
        between the selection of keys and all Gaussian noise together, not by queries; but each `dpf.top_k` has an equal
        part first.
    interval
        ``"population"`` adds columns ``q_population_lower`` and ``q_population_upper`` to counts, sums, means and
        proportions: 95% intervals of noise and sample together, where the privacy units are drawn from a larger
        population, independently of each other. Of a count or a sum they hold its mean over all such samples, of a
        mean or a proportion that of the population's rows, of what bounds keep; by bounds that are declared, and
        for groups of any size, so that they are wide where a unit may have many rows. They cost nothing.
    keys
        A frame of public keys: each appears in the release, zeros included, and no other does. None to select
        keys privately, at a share of epsilon and delta; categoricals and enums come out as strings then, since their
        dtypes tell of the keys that were not selected.
    privacy_unit
        The column that says whose row it is, whose values are never shown; rows where it is null are dropped.
        ``"row"`` where each row is a unit by itself, as nobody has two; where the data have a column of that name, it
        is the column, and needs the bounds. Left out, each row is a unit as well, with a `PrivacyUnitWarning`.
    max_groups, max_rows_per_group
        What is kept of each unit, chosen at random: needed with ``privacy_unit``; without ``by`` there is one group,
        and ``max_groups`` may be left out. Where each query takes one number of
        a unit (`dpf.units`, `dpf.sum` with ``unit_bounds``, `dpf.mean` ``per="unit"``), all its rows in the groups that
        it keeps count, and ``max_rows_per_group`` may be left out; beside other queries it is for these. ``"auto"`` for
        one of them or both: chosen first and privately, with 15% of the budget, by noisy histograms of how many groups
        units have, and of how many rows there, such that the predicted error of all queries is least, of what is cut
        and of the noise. `Release.chosen` has them. For rows that are read here. With ``"auto"`` for both, counts, sums
        and means of rows by public ``keys``, and a budget for Gaussian noise, all rows count in place of that: what a
        unit adds to all groups together is scaled down where it is longer, as a vector, than a norm that is chosen
        privately, with a twentieth of the budget or less.
    report_cut
        The share of the budget, from 1e-6 to 0.5, for telling what ``max_groups`` and ``max_rows_per_group`` cut off:
        about how many units lost rows, and about which part of all rows was kept (`Release.cut`), with a warning where
        more than a tenth was cut. Counts, sums and numbers of units get an estimate beside them, ``n_corrected``: what
        all groups together lack is added to each, in proportion to its figure as far as that is more than noise. It
        has no interval. None tells nothing. For rows that are read here, of named privacy units.
    neighbors
        ``"add_remove"`` or ``"replace"``.
    mechanism
        ``"laplace"``, ``"gaussian"``, or ``"auto"`` for the one of less noise.
    key_selection
        How keys are selected where none are given: ``"auto"`` for what needs the fewest units to show a key, which
        `Plan.explain` says. ``"count"``: the first count is itself the test, with the selection's share of the budget:
        a group is shown where its noisy count reaches a threshold, which is post-processing of the count; so counts
        that are shown are too high on average near the threshold, and their intervals hold for counts that are shown
        or not, taken together. ``"weighted"``: each unit shares one unit of weight
        among its keys, whose noisy sums are compared with a threshold; ``"iterated"`` in three rounds, each without
        the keys shown before (DP-SIPS); ``"policy"``: units come one after the other, and each spends its weight on
        those of its keys whose sums still lack it (policy Gaussian), which shows the most keys where units hold
        several and few keys are common. ``"threshold"``: the same with the number of units. ``"optimal"``: the
        optimal rule for one key, at a share of the budget for each of a unit's keys.
    population
        How many privacy units there are, as far as that is public: only for the warnings about delta, and that keys
        need more units than there are.
    dataset
        The name under which the ledger knows the data; by default the path, or the ledger's own name.
    schema
        The dtypes of a CSV file's columns, or of columns that folders name.
    engine
        Who aggregates data that a database holds (`dpfast.sql`, relations of DuckDB, tables of Ibis): ``"rows"`` to
        read rows and aggregate them here; ``"sql"`` to let the database do it, so that no row leaves it: for counts,
        sums and means, and keys that are public or selected by their units one by one; ``"auto"`` for rows where the
        database gives them as Arrow.
    workload
        Linear queries over the counts of all ``keys``, one of `dpf.workloads`, in place of other queries: cell i of
        its histogram is row i of ``keys``, of which there are as many as it has cells. Where each column in ``by`` is
        an attribute of the workload, the last one runs fastest.
    strategy
        What is measured for a workload: ``"auto"`` for what makes the least predicted error, or one of
        `dpf.strategies`. ``mechanism`` is chosen with it, and may be ``"laplace"`` alone. ``"adaptive"`` for
        `dpf.estimate_histogram`: where records are few for the budget its errors are several times smaller. It has no
        intervals.
    where
        Which rows count, such as ``(dpf.column("delay") > 15) & dpf.column("carrier").is_in(["AA", "UA"])``
        (`dpf.column`): all others are dropped before anything else, and so before what is kept of a unit is chosen.
        No sensitivity changes by it. Comparisons with null or NaN are false, and none fails on a value, as
        expressions of an engine may; frames may be filtered by these beforehand: ``frame.filter(...)``.
    **queries
        `dpf.count`, `dpf.units`, `dpf.sum`, `dpf.mean`, `dpf.proportion`, `dpf.variance`, `dpf.std`, `dpf.covariance`,
        `dpf.histogram`, `dpf.cdf`, `dpf.quantile`, `dpf.minimum`, `dpf.maximum`, `dpf.mode`, `dpf.top_k` and
        `dpf.count_distinct` by the name that they get in the release; the names of the other parameters are taken. A
        sum of integers is Int64 as long as the bounds stay below 2**24, and Float64 beyond, like every other sum of
        numbers; one of decimals is a decimal, and one of durations a duration. What a sum or mean is made of is rounded
        to steps, of which the bounds have 2**23 to 2**24: of a decimal's last places, or of the units of times, a power
        of two.

        With ``bounds="auto"`` the release has two stages. 15% of the budget, and 5% more for each further column
        up to 30%, pays for noisy histograms in which each privacy unit is counted once, by a value
        of one of its rows; bounds are chosen from these, such that the predicted error of noise and clipping is least,
        and rounded. All else is drawn with the rest of the budget, and whatever is chosen, nothing costs more than
        `Plan.explain` says. `Release.chosen` and `Release.explain` say what was chosen, ``q_scale`` how large the noise
        is then. Rows are read twice. Where there are too few units to tell, bounds are some next to 0, the days from
        1970 to 2070 or the whole day. Sums with such bounds are Float64, of numbers.

    Returns
    -------
    Plan
        With ``explain()``, ``to_frame()``, ``error()``, ``warnings`` and ``run(ledger)``.

    Raises
    ------
    ParameterError
        A parameter is not allowed.
    ColumnError
        A column is missing or of a type that does not serve.

    References
    ----------
    Dwork, Roth (2014), theorems 3.6 and 3.16 and appendix A; Desfontaines, Voss, Gipson, Mandayam (2022), Gopi,
    Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin (2020) and Swanberg, Desfontaines, Haney (2023) for keys; Wilson et al.
    (2020) for bounding what a unit contributes.

    Examples
    --------
    >>> import dpfast as dpf
    >>> import polars as pl
    >>> trips = pl.DataFrame({"city": ["Rome", "Oslo"] * 500, "rider": range(1000)})
    >>> plan = dpf.plan(trips, by="city", rides=dpf.count(), keys=pl.DataFrame({"city": ["Oslo", "Rome", "Bonn"]}),
    ...                 privacy_unit="row", epsilon=0.5)
    >>> release = plan.run(dpf.Ledger(epsilon=1.0))
    >>> release.frame["city"].to_list(), release.frame["rides_scale"].to_list()
    (['Oslo', 'Rome', 'Bonn'], [2.0, 2.0, 2.0])

    The least epsilon at which the noise stays within 20 with probability 0.95, and intervals that cover the sample too:

    >>> within = dpf.plan(trips, by="city", rides=dpf.count(), keys=pl.DataFrame({"city": ["Oslo", "Rome"]}),
    ...                   privacy_unit="row", error={"rides": 20}, interval="population")
    >>> round(within.epsilon, 4), within.error()["one"].item()
    (0.146, 20.0)
    >>> within.run(dpf.Ledger(epsilon=1.0)).frame.columns[-3:]
    ['rides_upper', 'rides_population_lower', 'rides_population_upper']

    All 2,016 ranges of ages, from one release of which all answers are sums:

    >>> people = pl.DataFrame({"age": [16 + i % 60 for i in range(10_000)]})
    >>> ages = pl.DataFrame({"age": range(16, 79)})
    >>> ranges = dpf.workloads.all_range(63)
    >>> plan = dpf.plan(people, by="age", keys=ages, workload=ranges, privacy_unit="row", epsilon=0.5)
    >>> plan.to_frame()["rmse"][0] < 12 < plan.to_frame().filter(strategy="identity")["rmse"][0]
    True
    >>> plan.run(dpf.Ledger(epsilon=1.0)).frame.columns
    ['lower', 'upper', 'answer', 'scale', 'answer_lower', 'answer_upper']

    """
    # A request has these arguments as its fields.
    request = Request(**locals())
    return Plan(draw_up(request), request, draw_up)


def release(
    data: Data,
    by: By = None,
    *,
    ledger: Annotated[Ledger, LEDGER],
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    error: Wishes = None,
    budget: Limit = None,
    split: Splitting = "even",
    interval: AskedInterval = "noise",
    keys: Keys = None,
    privacy_unit: OwnColumn = None,
    max_groups: AskedBound = None,
    max_rows_per_group: AskedBound = None,
    report_cut: AskedShare = None,
    neighbors: Neighbors = "add_remove",
    mechanism: AskedMechanism = "auto",
    key_selection: AskedRule = "auto",
    population: Population = None,
    dataset: OwnName = None,
    schema: Schema = None,
    engine: AskedEngine = "auto",
    workload: OwnQueries = None,
    strategy: AskedStrategy = "auto",
    where: OwnFilter = None,
    **queries: Query,
) -> Release:
    """Plan a release and run it: `plan` and `Plan.run` in one call.

    Guarantee
        That of `plan` and `Plan.run`, which explain the parameters.

    Examples
    --------
    >>> import dpfast as dpf
    >>> import polars as pl
    >>> frame = pl.DataFrame({"late": [True, False] * 100})
    >>> keys = pl.DataFrame({"late": [True, False]})
    >>> ledger = dpf.Ledger(epsilon=1.0)
    >>> dpf.release(
    ...     frame, by="late", keys=keys, n=dpf.count(), privacy_unit="row", epsilon=0.5, ledger=ledger
    ... ).frame.height
    2
    >>> ledger.remaining.epsilon
    0.5

    """
    asked = {name: given for name, given in locals().items() if name != "ledger"}
    if error is not None:
        asked["budget"] = limit_of(budget, LEDGER.read("ledger", ledger).accountant)
    request = Request(**asked)
    return Plan(draw_up(request), request, draw_up).run(ledger)


def draw_up(request: Request) -> Blueprint:
    """Return the blueprint of what is asked: queries by group, or a workload."""
    if request.workload is None:
        if request.strategy != "auto":
            raise ParameterError("strategy", request.strategy, '"auto" without a workload', "give workload= as well")
        if not (request.clips and clips_whole_units(request)):
            choices = choices_of(request)
            return draw_up_staged(request, choices) if choices else draw_up_groups(request)
        refuse_cut(request.report_cut, 'None with max_groups="auto", whose release says about how many units are cut')
        refuse_wishes(request.error, 'with max_groups="auto", whose noise is not known beforehand')
        refuse_population(request.interval, 'with max_groups="auto", where what a unit adds has no bound')
        return draw_up_clipped(request)
    refuse_cut(request.report_cut, "None with a workload")
    refuse_population(request.interval, "with a workload, of which all answers follow from one histogram")
    if request.queries:
        mend = "plan them apart: each plan has a charge of its own"
        raise ParameterError("queries", sorted(request.queries), "none beside a workload", mend)
    if not isinstance(request.split, str) or request.split != "even":
        raise ParameterError("split", request.split, '"even" with a workload, whose strategy divides the budget')
    if request.key_selection != "auto":
        allowed = '"auto" with a workload, whose keys are public'
        raise ParameterError("key_selection", request.key_selection, allowed)
    if request.strategy == "adaptive":
        refuse_wishes(request.error, 'with strategy="adaptive", whose error depends on the data')
    return draw_up_adaptive(request) if request.strategy == "adaptive" else draw_up_workload(request)
