"""From rows and a public domain to synthetic records: charge once, count, measure, draw."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from dpfast.accounting.budget import Delta, Epsilon, Rho
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.aggregation.sources import Data, Schema
from dpfast.domain.arguments import RECORDS, Records
from dpfast.domain.domain import Domain
from dpfast.domain.impossible import OwnImpossible
from dpfast.ledger import Ledger
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import LEDGER
from dpfast.progress import TellStages
from dpfast.synthesis.fitted.request import READING
from dpfast.synthesis.fitted.rounds import ROUNDS, SELECTION
from dpfast.synthesis.graphical.synthesizing import MEGABYTES, Asked
from dpfast.synthesis.planning import DOMAIN, plan_read
from dpfast.synthesis.synthesis import Synthesis
from dpfast.workloads.workload import OwnQueries

__all__ = ["READING", "synthesize"]


def synthesize(
    data: Data,
    domain: Annotated[Domain, DOMAIN],
    workload: OwnQueries | Asked = None,
    *,
    ledger: Annotated[Ledger, LEDGER],
    epsilon: Epsilon = None,
    delta: Delta = 0,
    rho: Rho = None,
    rows: Records = None,
    impossible: OwnImpossible = None,
    rounds: Annotated[int | None, replace(ROUNDS, optional=True)] = None,
    max_megabytes: Annotated[float, MEGABYTES] = 16.0,
    selection: Annotated[str, SELECTION] = "exponential",
    neighbors: Neighbors = "add_remove",
    dataset: OwnName = None,
    schema: Schema = None,
    progress: TellStages = None,
) -> Synthesis:
    """Make records that answer queries nearly as the data do, by private measurements of them.

    Guarantee
        The records, and the estimate that they are drawn from, are together (epsilon, delta)-differentially private, or
        rho-zCDP, where neighbouring data differ in one row. The ledger is charged before any row is read, whatever the
        data (an empty frame is charged too), and a charge is never given back. No error after the charge depends on
        values.

        Of a domain whose cells memory holds it is `dpfast.mwem` over the counts of `dpfast.Domain`, whose guarantees
        are proved there, unless a delta is given. Of any other it is a model (Notes).

        Proof for the model. A row is in one cell of each marginal at most, so that neighbours' counts differ by one in
        one cell of each, or in two where rows are replaced. Their number is measured, and chooses one of a few ways
        that are planned beforehand, each of which costs what is left of the budget at most. Either single attributes
        are measured with noise for that change, and then, in each round, a set of attributes is selected by the
        exponential mechanism, whose scores such a change moves by at most their sensitivity whatever was measured
        before, and measured; or all sets are measured at once, as `dpfast.release_marginals` does. The costs add up to
        the budget, in rho where there is a delta (Bun, Steinke 2016), also where noisy numbers choose the next
        mechanism (Whitehouse, Ramdas, Rogers, Wu 2023); or in Gaussian differential privacy, which buys less noise,
        where the ledger is charged (epsilon, delta) itself (Dong, Roth, Su 2022). All else is made of noisy counts.

    Parameters
    ----------
    data
        As for `dpfast.plan`: a frame, an Arrow table, or paths of files. Each row is a privacy unit.
    domain
        The public values of the columns that the records shall have; nothing of it is read from the data.
    workload
        What shall be answered well: one of `dpfast.workloads` over the domain's cells; or, for a model, the sets of
        columns whose counts it shall know, a list of tuples of names. Of `dpfast.workloads` a model takes what is made
        of marginals, rectangles, and products of queries of one column each (`dpfast.workloads.about`), and knows the
        counts of the columns that each query is about. Of those of three columns or more it may measure parts, where
        their own noise would be too large. By default the counts of all pairs of columns, or of the only one; of pairs
        with few enough cells for the model.
    ledger
        The budget.
    epsilon, delta, rho
        The whole budget of the records: epsilon, perhaps with a delta, or rho, which is for ledgers with the accountant
        "zcdp" or "rdp".
    rows
        How many records. By default about as many as the data have: the estimate's total.
    impossible
        Combinations of values that no record has: a filter of `dpfast.column`, as ``where=`` takes it, or a
        `polars.DataFrame` of them, one a row (bins by their left edges), or a list of these. A model is made, in which
        they have no weight, and no record drawn has one. They are public, and cost nothing. Rows of the data that have
        one are left out, as those with values that were not declared.
    rounds
        How many queries, or sets of columns, are selected and measured. By default 30; for a model as many as promise
        the least error, three times as many as there are columns at most, or all sets at once.
    max_megabytes
        How much memory the model's tables may take, from 0.01 to 16,000. It takes no more than what is worth its noise:
        room beyond that changes nothing (benchmarks/census_errors.md), unless the budget is raised.
    selection
        "exponential" or "permute_and_flip": how the next one to be measured is selected; the first, for a model.
    neighbors
        "add_remove"; or "replace", where the number of rows is public, and the domain must leave none of them out.
    dataset
        The name under which the ledger knows the data; by default the path, or the ledger's own name.
    schema
        The dtypes of a CSV file's columns, or of columns that folders name.
    progress
        Called with the name of each stage as it begins. If it returns False after a round, no more rounds are run, and
        the records are those of what was measured (`Estimate.complete`); all of it is paid for.

    Returns
    -------
    Synthesis
        With ``frame``, ``estimate``, ``spent`` and ``entry``.

    Raises
    ------
    ParameterError, ColumnError
        An argument is of another kind or range, or a column is missing or of a type that does not serve; nothing is
        charged.
    BudgetExceededError, LedgerError
        The charge does not fit, or the ledger is about something else; nothing is charged.
    DpfastError
        The data cannot be read to their end, after the charge; the message shows nothing of them.

    Notes
    -----
    A model is a tree of tables over a few columns each, which agree where they meet: of all histograms the one of least
    relative entropy to the even one plus squared misfits (`dpfast.graphical.tree_weights`). How large the tables are is
    known before anything is measured, and a set of columns is measured only if the model stays within
    ``max_megabytes``. After McKenna, Mullins, Sheldon, Miklau (2022), with these changes: the number of records, which
    gets a hundredth of the budget, decides how much single columns get of the rest (from a fifth to four fifths: the
    more, the less they are known) and how many rounds there are; a column gets more the more values it has; most of
    the noise of single columns is taken out (`dpfast.synthesis.graphical.columns`); values that are rare by these
    counts are one value to the model from then on, as McKenna, Miklau, Sheldon (2021) do, and records get them by their
    shares; all rounds have one share of the budget; a set's score counts in each cell only what the noise of a
    measurement leaves to be mended; and the fit holds a noisy count softly, the more so the less it says
    (`dpfast.synthesis.graphical.softness`). Where a model of all sets together has room, a delta or rho is given, and
    noise alone would make a small mean error, all of them are measured at once by residuals (Xiao, He, Zhang, Kifer
    2023), and none is selected.

    References
    ----------
    Hardt, Ligett, McSherry (2012); see `dpfast.mwem`. McKenna, Sheldon, Miklau (2019), McKenna, Miklau, Sheldon (2021),
    and McKenna, Mullins, Sheldon, Miklau (2022), for models.

    Examples
    --------
    >>> import dpfast as dpf
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 500, "age": [20, 40, 60, 80] * 250})
    >>> domain = dpf.Domain({"sex": ["f", "m"], "age": dpf.bins("age", [0, 30, 60, 120])})
    >>> ledger = dpf.Ledger(epsilon=1.0)
    >>> made = dpf.synthesize(people, domain, epsilon=0.5, rows=200, ledger=ledger)
    >>> made.frame.columns, made.frame.height, made.spent.epsilon, ledger.remaining.epsilon
    (['sex', 'age'], 200, 0.5, 0.5)

    Nobody below 30 years is a manager:

    >>> staff = pl.DataFrame({"age": [20, 40, 50, 29] * 250, "role": ["clerk", "manager", "clerk", "clerk"] * 250})
    >>> domain = dpf.Domain({"age": dpf.bins("age", [0, 30, 60]), "role": ["clerk", "manager"]})
    >>> young = (dpf.column("age") < 30) & (dpf.column("role") == "manager")
    >>> made = dpf.synthesize(staff, domain, impossible=young, epsilon=0.5, rows=300, ledger=ledger)
    >>> made.frame.filter(pl.col("age") < 30)["role"].unique().to_list()
    ['clerk']

    """
    LEDGER.read("ledger", ledger)
    number = RECORDS.read_optional("rows", rows)
    asked = epsilon, delta, rho, impossible, rounds, max_megabytes, selection, neighbors
    plan = plan_read(domain, workload, *asked, ledger.accountant)
    return plan.run(data, ledger=ledger, rows=number, dataset=dataset, schema=schema, progress=progress)
