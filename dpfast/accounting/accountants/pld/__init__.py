"""Privacy loss distributions: the exact curve of a fixed plan, between two certified bounds."""

from dpfast.accounting.accountants.pld.accountant import PLD

__all__ = ["PLD"]
