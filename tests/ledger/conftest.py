from __future__ import annotations

import pytest

from dpfast.ledger import Ledger


@pytest.fixture(params=["memory", "durable", "postgresql"])
def make_ledger(request, tmp_path):
    """Make a ledger of every kind: every rule holds for all."""
    server = request.getfixturevalue("postgresql") if request.param == "postgresql" else None
    name = server and next(server.names)

    def make(*args, **kwargs):
        if request.param == "memory":
            return Ledger(*args, **kwargs)
        if server is not None:
            return Ledger.open(server.url, *args, name=name, **kwargs)
        return Ledger.open(tmp_path / "ledger.db", *args, **kwargs)

    return make
