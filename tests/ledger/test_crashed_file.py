"""A ledger whose file and journal were left by a crash, and then flipped, cut, removed, exchanged or restored."""

from __future__ import annotations

import random

import pytest
from torn import ABOUT, CHARGE, MAGIC, PAGE, Charged, charged, flipped, found, journal_of

from dpfast.errors import LedgerError
from dpfast.ledger import Ledger


@pytest.fixture(scope="module")
def states(tmp_path_factory) -> list[Charged]:
    """Twelve charges in turn; some change pages in their place, others add some."""
    path = tmp_path_factory.mktemp("states") / "ledger.db"
    with Ledger.open(path, epsilon=1, delta=1e-3, dataset="flights") as ledger:
        return [charged(path, ledger, number) for number in range(12)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture(params=["in place", "with more pages"])
def state(request, states):
    """The last charge of its kind."""
    grows = request.param == "with more pages"
    return next(one for one in reversed(states) if (len(one.after) > len(one.before)) == grows)


def test_every_torn_state(path, state):
    """Soundness rule 11: whichever pages were written, all acknowledged charges are there, and nothing by halves."""
    outcomes = {found(path, main, state.journal) for main in state.every_torn()}
    assert outcomes == {state.acknowledged, state.acknowledged + 1}
    assert found(path, state.after, None) == state.acknowledged + 1


def test_damaged_hot_journal(path, state):
    """Soundness rule 11: a flipped, shortened or missing hot journal: refused, or no acknowledged charge is lost."""
    generator = random.Random(1)
    journal, torn = state.journal, state.every_torn()
    records = range(512 if journal[512:516] != bytes(4) else 4096, len(journal), PAGE + 8)
    places = [*range(0, 28, 3)]
    for start in records:
        places += [start + 3, start + 4 + PAGE - 200, start + 4 + generator.randrange(PAGE), start + PAGE + 7]
    damaged = [flipped(journal, place, generator.randrange(8)) for place in places]
    damaged += [
        journal[:length] for length in (1, 8, 28, records[0], *(start + 9 for start in records), len(journal) - 1)
    ]
    damaged += [None, b"", bytes(len(journal))]
    refused = 0
    for number, one in enumerate(damaged):
        for main in (torn[number % len(torn)], torn[-1 - number % len(torn)]):
            count = found(path, main, one)
            refused += count is None
            assert count in (None, state.acknowledged, state.acknowledged + 1)
    assert refused > len(damaged) / 4


def test_damaged_file_beside_a_hot_journal(path, state):
    """Soundness rule 11: a flip in the file that a crash left torn is undone by the journal, or refused."""
    generator = random.Random(2)
    for main in state.every_torn()[1:]:
        count = found(path, flipped(main, generator.randrange(100, len(main))), state.journal)
        assert count in (None, state.acknowledged, state.acknowledged + 1)


def test_journal_of_an_earlier_charge(path, states):
    """Soundness rule 11: SQLite would take the charges since then away, and every seal would be in order."""
    last = states[-1]
    for earlier in states:
        assert found(path, last.after, earlier.journal) == last.acknowledged + 1
    damaged = flipped(last.after, last.changed[-1] + PAGE - 40)
    assert found(path, damaged, None) is None
    for earlier in states[:-1]:
        assert found(path, damaged, earlier.journal) is None


def test_journal_of_another_ledger(path, states, tmp_path):
    """Soundness rule 11: one with the same change counter may hold all pages of a ledger with a larger budget."""
    with Ledger.open(tmp_path / "other.db", epsilon=100, delta=1e-3, dataset="flights") as ledger:
        others = [charged(tmp_path / "other.db", ledger, number) for number in range(12)]
    for number in (0, 5, 6, 7):
        state = states[number]
        for main in (state.torn(state.changed[:2]), flipped(state.after, state.changed[-1] + PAGE - 40)):
            path.write_bytes(main)
            journal_of(path).write_bytes(others[number].journal)
            for _ in range(2):  # nor was it played back all the same
                with pytest.raises(LedgerError, match="of another ledger"):
                    Ledger.open(path)
            assert path.read_bytes() == main


def test_open_ledger_meets_a_journal(path, states):
    """As above for a process that has the ledger open, and for one that only reads."""
    last = states[-1]
    path.write_bytes(last.after)
    with Ledger.open(path) as ledger:
        for earlier in states:
            journal_of(path).write_bytes(earlier.journal)
            assert ledger.spent.epsilon == 0.012
            assert not journal_of(path).exists()
        journal_of(path).write_bytes(last.journal)
        path.write_bytes(last.torn(last.changed[:2]))
        with pytest.raises(LedgerError, match="lacks charges"):
            ledger.charge(CHARGE, **ABOUT)  # this process has seen the charge that the crash cut off


def test_older_copy_beside_a_newer_journal(path, states):
    """Soundness rule 11: a backup restored beside the journal of a later crash shows that it is older."""
    last = states[-1]
    for earlier in states[:-1]:
        path.write_bytes(earlier.before)
        journal_of(path).write_bytes(last.journal)
        with pytest.raises(LedgerError, match="older copy than the journal"):
            Ledger.open(path)
        assert journal_of(path).exists()


def test_restored_with_its_journal(path, states):
    """What cannot be seen without a head that was written down: a copy of everything, of an earlier time."""
    path.write_bytes(states[-1].after)
    with Ledger.open(path) as ledger:
        head = ledger.head
    earlier = states[5]
    assert found(path, earlier.torn(earlier.changed[:2]), earlier.journal) == 5
    with pytest.raises(LedgerError, match="has never had the head"):
        Ledger.open(path, expect_head=head)


def test_cleared_journal_is_inert(path, states):
    """Soundness rule 11: no flip, nor half a header, brings the journal of an acknowledged charge back."""
    last = states[-1]
    cleared = bytes(28) + last.journal[28:]
    for journal in (*(flipped(cleared, place, place % 8) for place in range(0, 600, 7)), MAGIC + cleared[8:]):
        assert found(path, last.after, journal) == last.acknowledged + 1


def test_journal_that_may_not_be_removed(path, states, monkeypatch):
    """Who may not write is told that somebody else must open the ledger first."""
    path.write_bytes(states[-1].after)
    journal_of(path).write_bytes(states[-1].journal)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.unlink", refuse)
    with pytest.raises(LedgerError, match="open it once as a user who may write"):
        Ledger.open(path)
