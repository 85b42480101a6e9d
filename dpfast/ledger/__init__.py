"""The privacy budget: charged durably before anything is computed, never refunded."""

from __future__ import annotations

from dpfast.ledger.account import Budget, Charge, Identity
from dpfast.ledger.ledger import Ledger

__all__ = ["Budget", "Charge", "Identity", "Ledger"]
