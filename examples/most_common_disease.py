"""The most common disease: its name is enough, and costs what a single count costs (Dwork, Roth 2014, example 3.4).

To release all counts with noise costs epsilon for each disease that a patient may have; to release the name of the
largest costs epsilon once. The winner's count is not part of it: it is measured again, and paid for.
"""

from __future__ import annotations

import polars as pl

import dpfast as dpf

PATIENTS = {"asthma": 512, "diabetes": 867, "hypertension": 1204, "influenza": 341, "migraine": 655, "psoriasis": 88}


def main(random: object = None) -> None:
    """Print the name, the odds of a wrong one, and a count that is paid for."""
    counts = pl.Series("patients", list(PATIENTS.values()))
    names = list(PATIENTS)
    # Adding or removing a patient moves all the counts in one direction, each by at most one.
    winner = names[dpf.permute_and_flip(counts, epsilon=0.1, monotonic=True, random=random)]
    error = dpf.selection_error(len(names), epsilon=0.1, monotonic=True, miss=0.001)
    print(f"Most common, for epsilon 0.1: {winner}")
    print(f"  Its count is less than {error:.0f} below the largest, 999 times in 1000.")
    count = dpf.laplace(PATIENTS[winner], 10.0, random=random)
    print(f"  Its count, for another 0.1: about {count}")
    print(f"Together 0.2, where six noisy counts would have cost {6 * 0.1:.1f}.")


if __name__ == "__main__":
    main()
