"""Measure and draw what docs/limits.md shows: errors of local sums, and the price of synthetic data that are hard.

python scripts/draw_limits.py            writes docs/local_sums.svg and docs/signatures.svg, and prints the figures
python scripts/draw_limits.py --quick    smaller sizes, for tests; with --out FOLDER to another folder
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import dpfast as dpf
from benchmarks.drawing import DOT, FAINT, LINE, footnote, save, start_chart, written

EPSILON = 1.0
MESSAGE_BITS = 6


def local_sums(most: int, repeats: int) -> list[tuple[int, float, float]]:
    """Return for each number of people the errors (root mean square) of a sum, asked locally and centrally."""
    keep = math.exp(EPSILON) / (math.exp(EPSILON) + 1)
    rows = []
    for power in range(2, most + 1):
        people = 10**power
        truth = np.arange(repeats * people) % 3 == 0
        answers = dpf.randomized_response(truth.astype(np.int64), 2, EPSILON).reshape(repeats, people)
        exact = truth.reshape(repeats, people).sum(axis=1)
        local = (answers.sum(axis=1) - (1 - keep) * people) / (2 * keep - 1) - exact
        central = dpf.laplace(exact, 1 / EPSILON) - exact
        rows.append((people, *(float(np.sqrt(np.square(errors).mean())) for errors in (local, central))))
    return rows


def signed_records(bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which cells hold a message with its right signature, and a histogram of 1,000 records that all do.

    A cell is a message of 6 bits and a signature of the others: a hash, cut off, under a key that the query knows.
    """
    signature_bits = bits - MESSAGE_BITS
    messages = np.arange(2**MESSAGE_BITS)
    digests = [hashlib.sha256(b"key" + bytes([message])).digest()[:4] for message in messages.tolist()]
    signatures = np.array([int.from_bytes(digest, "big") >> (32 - signature_bits) for digest in digests])
    right = np.zeros(2**bits, np.int64)
    right[(messages << signature_bits) | signatures] = 1
    return right, right * (1000 // 2**MESSAGE_BITS)


def signatures(most: int) -> list[tuple[int, float, float, float]]:
    """Return for each number of bits: the seconds to fit all cells, and the share of right signatures, of two fits.

    The first is fitted to the one query "is the signature right?", and walks over all cells to do so; the second to
    marginals of two bits, which never needs to.
    """
    rows = []
    dpf.mwem([1, 2], dpf.workloads.total(2), epsilon=EPSILON, rounds=1)  # compiles
    for bits in range(10, most + 1, 2):
        right, histogram = signed_records(bits)
        asked = dpf.workloads.matrix(right[None, :])
        begun = time.perf_counter()
        fitted = dpf.mwem(histogram, asked, epsilon=EPSILON, rounds=10, repeat=True).histogram
        seconds = time.perf_counter() - begun
        shape = (2,) * bits
        pairs = dpf.workloads.marginals(shape, k=2)
        by_pairs = dpf.mwem(histogram.reshape(shape), pairs, epsilon=EPSILON, rounds=10).histogram
        shares = [float((made.reshape(-1) * right).sum() / made.sum()) for made in (fitted, by_pairs)]
        rows.append((bits, seconds, *shares))
    return rows


def draw_local_sums(rows: list[tuple[int, float, float]], path: Path) -> None:
    figure, axes = start_chart("A sum of everybody's bit, at epsilon 1", 4.4, grid="both")
    people = [row[0] for row in rows]
    axes.loglog(people, [row[1] for row in rows], "o-", color=LINE, label="everybody answers for themselves (local)")
    axes.loglog(people, [row[2] for row in rows], "o-", color=DOT, label="one trusted party adds noise (central)")
    axes.loglog(people, np.sqrt(people), "--", color=FAINT, linewidth=1, label="square root of the number of people")
    axes.xaxis.set_major_formatter(written)
    axes.yaxis.set_major_formatter(written)
    axes.set_xlabel("people", color=FAINT, fontsize=9)
    axes.set_ylabel("error of the sum (root mean square)", color=FAINT, fontsize=9)
    axes.legend(frameon=False, fontsize=9)
    footnote(figure, "Measured by scripts/draw_limits.py.")
    save(figure, path)


def draw_signatures(rows: list[tuple[int, float, float, float]], path: Path) -> None:
    figure, axes = start_chart("Synthetic records with a right signature", 4.4, grid="both")
    bits = [row[0] for row in rows]
    axes.semilogy(bits, [row[1] for row in rows], "o-", color=LINE, label="seconds to fit the query over all cells")
    axes.semilogy(bits, [row[3] for row in rows], "o-", color=DOT, label="share of right signatures, fitted by pairs")
    axes.set_xlabel("bits of a record, 6 of them the message", color=FAINT, fontsize=9)
    axes.yaxis.set_major_formatter(written)
    axes.legend(frameon=False, fontsize=9)
    footnote(figure, "Measured by scripts/draw_limits.py.")
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure and draw what docs/limits.md shows.")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs", help="the folder")
    given = parser.parse_args()
    sums = local_sums(4 if given.quick else 6, 100 if given.quick else 40)
    print("people      local error  central error")
    for people, local, central in sums:
        print(f"{people:<11,} {local:<12.4g} {central:.3g}")
    fits = signatures(12 if given.quick else 22)
    print("bits  seconds   right, of all cells  right, by pairs")
    for bits, seconds, fitted, by_pairs in fits:
        print(f"{bits:<5} {seconds:<9.3g} {fitted:<20.3f} {by_pairs:.2g}")
    draw_local_sums(sums, given.out / "local_sums.svg")
    draw_signatures(fits, given.out / "signatures.svg")


if __name__ == "__main__":
    main()
