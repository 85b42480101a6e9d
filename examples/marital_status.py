"""The most common marital status among 32,561 people of the Adult census data (Near, Abuah: Programming DP).

Their score is the count in thousands, as if one person moved it by 1: noise a thousand times too wide, which makes a
good picture of the mechanisms. With the true sensitivity of 1/1000 the answer is as good as certain.
"""

from __future__ import annotations

import numpy as np

import dpfast as dpf
from dpfast.mechanisms.selection.probabilities import selection_probabilities

COUNTS = {
    "Married-civ-spouse": 14976,
    "Never-married": 10683,
    "Divorced": 4443,
    "Separated": 1025,
    "Widowed": 993,
    "Married-spouse-absent": 418,
    "Married-AF-spouse": 23,
}


def main(draws: int = 200, random: object = None) -> None:
    """Print the exact probabilities of two mechanisms beside what they selected."""
    names = list(COUNTS)
    thousands = np.array(list(COUNTS.values())) / 1000
    rows = np.broadcast_to(thousands, (draws, len(names)))
    print(f"{'':22}  exponential           permute-and-flip")
    print(f"{'':22}  exact    of {draws:<7}  exact    of {draws}")
    columns = []
    for mechanism, select in (("exponential", dpf.exponential), ("permute_and_flip", dpf.permute_and_flip)):
        exact = selection_probabilities(thousands, epsilon=1.0, mechanism=mechanism)
        columns += [exact, np.bincount(select(rows, epsilon=1.0, random=random), minlength=len(names))]
    for name, one, won, other, also in zip(names, *columns, strict=True):
        print(f"{name:22}  {one:.5f}  {won:<10}  {other:.5f}  {also}")
    gap = (COUNTS[names[0]] - COUNTS[names[1]]) / 2
    print(f"With the true sensitivity the odds against {names[0]} are 1 to e**{gap}.")


if __name__ == "__main__":
    main()
