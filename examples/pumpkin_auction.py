"""One price for pumpkins: the best one is sensitive to a single bid, a private choice is not.

Anna, Fritz and Iris bid $1.00 each, Karl bids $4.01 (Dwork, Roth 2014, example 3.5, with bids for which its moral
holds: at $4.01 the seller earns as much as at $1.00 and a cent more, at $4.02 nothing). A thousand times as many
bidders show what the mechanism is for: with four, noise drowns all. Revenues and odds are private; they are printed
here because these bids are made up.
"""

from __future__ import annotations

import numpy as np

import dpfast as dpf
from dpfast.mechanisms.selection.probabilities import selection_probabilities

EPSILON = 1.0
PRICES = np.arange(1, 501)  # one cent to five dollars, whatever the bids are


def main(copies: int = 1000, random: object = None) -> None:
    """Print the revenues, the odds and one private choice."""
    four = [100, 100, 100, 401]
    print("What each price earns from the four bids $1.00, $1.00, $1.00 and $4.01:")
    for price, revenue in zip((100, 400, 401, 402), dpf.price_revenues(four, [100, 400, 401, 402]), strict=True):
        print(f"  ${price / 100:.2f}  ${revenue / 100:.2f}")
    for bids, name in ((four, "four bidders"), (four * copies, f"{4 * copies} bidders")):
        revenues = dpf.price_revenues(bids, PRICES)
        odds = selection_probabilities(revenues, EPSILON, sensitivity=int(PRICES[-1]))
        best = revenues.max()
        expected = float(odds @ revenues)
        print(f"With {name} the private price earns {expected / best:.1%} of the best revenue on average,")
        print(f"  and some price above $4.01, which earns nothing, has the probability {odds[401:].sum():.2g}.")
    chosen = dpf.select_price(four * copies, PRICES, EPSILON, random=random)
    error = dpf.selection_error(len(PRICES), EPSILON, int(PRICES[-1]), miss=0.05)
    print(f"One private choice among {4 * copies} bidders: ${chosen / 100:.2f},")
    print(f"  at most ${error / 100:.2f} below the best revenue of ${best / 100:.2f}, 19 times in 20.")


if __name__ == "__main__":
    main()
