"""For tests: randomness that can be repeated, which a ledger refuses."""

from __future__ import annotations

import hashlib
from typing import Annotated

from dpfast.arguments import Whole
from dpfast.showing import Facts, Shown

__all__ = ["SeededRandom"]

_SEED = Whole(-(2**256), 2**256)


class SeededRandom(Shown):
    """Keys derived from a seed: the same seed and the same calls give the same noise.

    Guarantee
        None: anyone who knows the seed can subtract the noise. Releases charged to a ledger refuse it.

    Parameters
    ----------
    seed
        An integer from -2**256 to 2**256.

    Examples
    --------
    >>> import dpfast as dpf
    >>> from dpfast.testing import SeededRandom
    >>> bool((dpf.laplace([1, 2, 3], 2.0, random=SeededRandom(7)) ==
    ...       dpf.laplace([1, 2, 3], 2.0, random=SeededRandom(7))).all())
    True

    """

    def __init__(self, seed: Annotated[int, _SEED]) -> None:
        self._seed = _SEED.read("seed", seed)
        self._calls = 0

    def key(self) -> bytes:
        """Return the next key of the sequence that the seed fixes."""
        self._calls += 1
        return hashlib.sha256(f"dpfast seeded test randomness {self._seed} {self._calls}".encode()).digest()

    def _facts(self) -> Facts:
        """Return the seed, which is no secret: it is for tests."""
        return [("seed", self._seed)]
