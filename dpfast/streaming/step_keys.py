"""The key of a step's noise: a function of a secret and of everything that was counted so far.

A counter that is kept in a file can be continued twice from one state: a backup is put back, a file is copied, a
process ends after its figures were computed and before they were written. Noise made afresh would be a second draw for
one charge; noise that depends on the number of the step alone would be the same beside other increments, and cancel on
subtraction. So the key of step t is HMAC-SHA-256(secret, label, t, n, H_t) for the n-th draw of the step, where
H_t = SHA-256(H_(t-1), SHA-256(increments of step t)):

1. Who takes the same steps again gets the same figures, bit for bit, and learns nothing.
2. Who takes other steps gets, from the first one that differs on, noise that nobody can tell from independent noise
   who cannot tell HMAC under a random key from a random function. Nothing cancels. It is a second release of those
   steps, and no charge has paid for it: a file is to be continued once.
3. No two draws share a key.
"""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
from numpy.typing import NDArray

__all__ = ["SECRET_BYTES", "StepKeys", "follow"]

SECRET_BYTES = 32
_LABEL = b"dpfast: the key of a step of a counter, 1"


def follow(history: bytes, increments: NDArray[np.int64]) -> bytes:
    """Return the digest of a history and one step more."""
    inner = hashlib.sha256(np.ascontiguousarray(increments).astype("<i8", copy=False).data)
    return hashlib.sha256(history + inner.digest()).digest()


class StepKeys:
    """The keys of one step: a source of randomness.

    Parameters
    ----------
    secret
        32 bytes, of one counter.
    step
        The step's number.
    history
        What `follow` says of all steps up to this one.

    """

    __slots__ = ("_draws", "_place", "_secret")

    def __init__(self, secret: bytes, step: int, history: bytes) -> None:
        self._secret, self._place, self._draws = secret, _LABEL + step.to_bytes(8, "big") + history, 0

    def key(self) -> bytes:
        """Return the key of the next draw."""
        self._draws += 1
        return hmac.digest(self._secret, self._place + self._draws.to_bytes(8, "big"), hashlib.sha256)
