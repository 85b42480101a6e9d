"""What a crash may leave of a ledger: the file with some pages of a charge and not others, and its hot journal."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass

from dpfast.errors import LedgerError
from dpfast.ledger import Charge, Ledger

ABOUT = {"dataset": "flights", "privacy_unit": "row", "neighbors": "add_remove"}
CHARGE = Charge.of(0.001, 1e-9, "a charge with a description of some length " * 12)
PAGE = 4096
MAGIC = bytes.fromhex("d9d505f920a163d7")


def journal_of(path):
    return path.with_name(path.name + "-journal")


@dataclass
class Charged:
    """A file before and after one charge, and the journal as it was just before the commit."""

    before: bytes
    after: bytes
    journal: bytes
    acknowledged: int

    @property
    def changed(self):
        """The numbers of the pages that the charge changed or added."""
        places = range(0, len(self.after), PAGE)
        return [place for place in places if self.before[place : place + PAGE] != self.after[place : place + PAGE]]

    def torn(self, written):
        """The file where these of its new pages are written."""
        content = bytearray(self.before)
        for place in written:
            content.extend(bytes(max(0, place + PAGE - len(content))))
            content[place : place + PAGE] = self.after[place : place + PAGE]
        return bytes(content)

    def every_torn(self):
        return [
            self.torn(some)
            for size in range(len(self.changed) + 1)
            for some in itertools.combinations(self.changed, size)
        ]


def charged(path, ledger, acknowledged):
    """Charge once more, and find out what a crash in the middle would have left."""
    before = path.read_bytes()
    journal_of(path).unlink(missing_ok=True)
    ledger.charge(CHARGE, **ABOUT)
    return Charged(before, path.read_bytes(), hot(journal_of(path).read_bytes(), len(before) // PAGE), acknowledged)


def hot(cleared, pages):
    """Put the header back that the commit cleared: its random part follows from the first checksum."""
    assert not any(cleared[:28])
    sector = next(size for size in (512, 4096) if 1 <= int.from_bytes(cleared[size : size + 4]) <= pages)
    page, check = cleared[sector + 4 : sector + 4 + PAGE], cleared[sector + 4 + PAGE : sector + 8 + PAGE]
    nonce = (int.from_bytes(check) - sum(page[PAGE - 200 : 0 : -200])) % 2**32
    records, rest = divmod(len(cleared) - sector, PAGE + 8)
    assert rest == 0
    return MAGIC + struct.pack(">5I", records, nonce, pages, sector, PAGE) + cleared[28:]


def found(path, main, journal):
    """Return how many charges a ledger of these files has, or None where it is refused."""
    path.write_bytes(main)
    journal_of(path).unlink(missing_ok=True)
    if journal is not None:
        journal_of(path).write_bytes(journal)
    try:
        with Ledger.open(path) as ledger:
            account = ledger._store.account("")
            ledger.verify()
            ledger.charge(CHARGE, **ABOUT)
    except LedgerError:
        return None
    assert account.spent == (account.entries * CHARGE.epsilon_units, account.entries * CHARGE.delta_units)
    return account.entries


def flipped(content, place, bit=0):
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    return bytes(changed)
