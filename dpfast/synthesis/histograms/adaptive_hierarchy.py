"""The adaptive hierarchy: boxes of cells are split where many records are, and measured once more where few are."""

from __future__ import annotations

from dpfast.accounting.budget import Delta, Epsilon, Rho
from dpfast.accounting.privacy_unit import Neighbors
from dpfast.arguments import Threads
from dpfast.ledger.account import OwnName
from dpfast.ledger.payment import Payer
from dpfast.progress import TellStages, read_progress
from dpfast.randomness import Random
from dpfast.synthesis.estimate import Estimate
from dpfast.synthesis.histograms.tree_noise import Noise
from dpfast.synthesis.histograms.trees import Tree
from dpfast.synthesis.preparing import Task
from dpfast.workloads.histograms import Counts
from dpfast.workloads.workload import OwnQueries

__all__ = ["adaptive_hierarchy"]


def adaptive_hierarchy(
    histogram: Counts,
    workload: OwnQueries = None,
    *,
    epsilon: Epsilon = None,
    delta: Delta = 0,
    rho: Rho = None,
    neighbors: Neighbors = "add_remove",
    ledger: Payer = None,
    dataset: OwnName = None,
    privacy_unit: OwnName = None,
    random: Random = None,
    threads: Threads = None,
    progress: TellStages = None,
) -> Estimate:
    """Estimate a histogram by a tree of boxes that grows where the records are.

    Guarantee
        epsilon-differential privacy, (epsilon, delta) with a delta, or rho-zCDP, for the histogram and all that is
        computed from the estimate. A cell lies in one box of each level of the tree, and a box in one union of boxes at
        most. Which of them are measured, and with how much of the budget, depends on noisy counts alone, and what those
        around a cell are measured with adds up to the budget at most, in whole thousandths: so a record that comes or
        goes changes the probability of the whole tree by a factor of exp(epsilon) at most (sequential composition along
        the path, parallel beside it). A box is looked at with part of what is left. If it is not split it is published
        once more, with the noise that all of what is left buys, and both cost what is left: the coarse count is the
        fine one with more noise on top (`dpfast.mechanisms.noise.gradual_release`). Of a box that is split the fine
        count is never published, and nothing depends on it. For rho, and amounts chosen as the measurements come in,
        that they add up is the theorem of Feldman and Zrnic, and for an epsilon with a delta what
        `dpfast.synthesis.shares.SharedBudget` shows; two measurements of a box are independent there. Under
        "replace" two paths change: all noise is twice as wide (for rho sqrt(2) times), and the number of records is
        public and used as it is. Counts are exact integers with discrete Laplace or rounded Gaussian noise, exactly
        sampled.

    Parameters
    ----------
    histogram
        int64 counts of the cells, 0 or more, of one dimension or several. No nulls.
    workload
        What will be asked, one of `dpfast.workloads`; the tree does not depend on it. None: every cell.
    epsilon
        The budget: a number from 1e-18 to 1e6, read as the decimal it was written as.
    delta
        Allows Gaussian noise where that is less: all of it together is (epsilon, delta)-private, exactly where a ledger
        adds up epsilons or there is none, else by rho. Else the noise is what epsilon alone buys, and no delta is
        spent.
    rho
        The budget in zero-concentrated differential privacy instead.
    neighbors
        ``"add_remove"``: one cell has one record more or fewer; ``"replace"``: one record moves to another cell.
    ledger
        A `dpfast.Ledger` that is charged the whole budget first, or None.
    dataset, privacy_unit
        What the ledger's guarantee is about; by default its own, or "data" and "row".
    random
        None for a fresh key from the operating system, or a `dpfast.testing.SeededRandom` in tests.
    threads
        How many threads draw noise; None uses all cores where that pays.
    progress
        Called with the name of each stage as it begins.

    Returns
    -------
    Estimate
        No cell is negative. Its ``rounds`` have a row for each level of the tree: how many boxes and unions of boxes
        there are, how many of them have others below, and the cells of the largest.

    Raises
    ------
    ParameterError
        An argument is not as above.
    DataError
        A count is negative or too large, and there is no ledger.
    BudgetExceededError, LedgerError
        The ledger refuses.

    Notes
    -----
    A box with a large count, in scales of the noise that its budget would buy, is split (into 16 parts along one axis,
    8 x 8 in two) and the parts looked at with a share of what is left: an even one for each level where all cells
    can be seen; else a quarter (in the plane 0.3) three levels above the cells, 0.6 (0.4) two levels above, and all of
    it for cells. A box with a small one is measured with all that is left; its cells are taken to be alike. Where
    several boxes of a family look alike, and each holds less than what is left could measure, their sum is measured in
    their place. So a few records are measured at the resolution that they allow, and many as by a hierarchy H_b. A
    box that stands out of its family may hold a spike: it is split from half as many records on, with a smaller share,
    and if it holds few records two levels above the cells then into these at once. Least squares bring all measurements
    together; the number of records, which may be noise alone, is drawn to 0 by 2.25 times its variance over itself;
    then, from the root down, the parts of a box are moved to their mean or to 0, except those that stand out, where an
    estimate of the error is less for it, and all to the nearest nonnegative numbers that have the box's sum.

    A spike is a cell that holds far more than its neighbours. One of 30 scales (of 30 / epsilon records) is found with
    probability at least 0.9, and its estimate is within a tenth in the median draw and in three fifths of all draws.
    One of 100 scales is within a tenth in nine tenths of the draws, and one of 300 in nearly all. A single cell that is
    known beforehand can be measured better: Laplace noise of the whole budget is within a tenth of 30 scales with
    probability 1 - exp(-3), 95%. To find the cell costs part of it. All this is what was measured for epsilon and up to
    three levels, alone, beside others and above a floor of records (tests/synthesis/test_spikes.py): no proof.

    References
    ----------
    Cormode, Procopiuc, Srivastava, Shen, Yu (2012) and Qardaji, Yang, Li (2013) for trees and grids in the plane that
    fit the data; Hay et al. (2010) for consistency; Mallows (1973) and Foster, George (1994) for the estimate of the
    error; Koufogiannis, Han, Pappas (2016) for gradual release; Feldman, Zrnic (2021).

    Examples
    --------
    >>> import numpy as np
    >>> import dpfast as dpf
    >>> from dpfast.testing import SeededRandom
    >>> counts = np.repeat([0, 9000, 20], [400, 32, 592])
    >>> estimate = dpf.adaptive_hierarchy(counts, dpf.workloads.prefix(1024), epsilon=1.0, random=SeededRandom(1))
    >>> np.round(estimate.answers[[399, 431, 1023]], -2).tolist()
    [0.0, 288000.0, 299800.0]

    """
    task = Task.read(histogram, workload, epsilon, delta, rho, neighbors, 3, ledger=ledger, only_noise=True)
    noise, show = Noise(task, threads), read_progress(progress, "the name of a stage")
    prepared = task.prepare(histogram, "adaptive hierarchy", ledger, dataset, privacy_unit, random, threads)
    tree = Tree(task, prepared, noise)
    tree.grow(show)
    return tree.estimate()
