"""The privacy budget: charged durably before anything is computed, never refunded."""

from __future__ import annotations

from dpfast.ledger.account import Identity
from dpfast.ledger.charges import Charge, ChargeColumns
from dpfast.ledger.filters import Budget
from dpfast.ledger.ledger import Ledger

__all__ = ["Budget", "Charge", "ChargeColumns", "Identity", "Ledger"]
