"""The privacy budget: charged durably before anything is computed, never refunded."""

from __future__ import annotations

from dpfast.ledger.account import Identity
from dpfast.ledger.charges import Charge, ChargeColumns
from dpfast.ledger.ledger import Ledger

__all__ = ["Charge", "ChargeColumns", "Identity", "Ledger"]
