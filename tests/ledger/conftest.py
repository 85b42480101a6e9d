from __future__ import annotations

import pytest

from dpfast.ledger import Ledger


@pytest.fixture(params=["memory", "durable"])
def make_ledger(request, tmp_path):
    """Make a ledger of either kind: every rule holds for both."""

    def make(*args, **kwargs):
        if request.param == "memory":
            return Ledger(*args, **kwargs)
        return Ledger.open(tmp_path / "ledger.db", *args, **kwargs)

    return make
