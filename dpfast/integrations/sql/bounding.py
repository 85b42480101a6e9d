"""Which groups and which rows a privacy unit keeps, in SQL.

Guarantee: let the salt be any fixed text. The rows that a unit keeps are a function of this unit's own rows and of the
salt:

- its groups are numbered from 0 by their keys, and group p of g is kept if g is at most G, or ``(p * G + h) mod g``
  is below G, where h is a hash of the salt and the unit. Of g consecutive p exactly G fulfil this: the multiples of g
  that ``p * G + h`` passes are counted one by one, and there are G of them in the way of length ``g * G``;
- its rows in a group are numbered from 0 by their contributions, and are kept by the same rule, with R for G and a
  hash of the salt, the unit and the keys for h. Rows with equal contributions change places without a trace.

So the units that two neighbouring data share keep the same rows in both, and the figures differ by what the changed
unit keeps: at most G groups with at most R rows in each. These are the sensitivities of `Measure.sensitivity`, for
every salt; that the hash is md5, known, or badly distributed, touches none of them. It decides about utility alone:
with h uniform, each group is kept with probability G / g and each row with R / n, and the rows that are kept are spread
over the values that the unit has.

The salt and the public keys may stand in the server's log. That hurts no guarantee, as the sensitivities hold for every
salt, known or not, and public keys are public.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpfast.integrations.sql.dialects import Dialect, Kind
from dpfast.integrations.sql.encoding import encoded
from dpfast.integrations.sql.unit_figures import UnitFigure

__all__ = ["Bounding"]

# A place below 2**38 times a number below this stays below 2**62, and a hash is below 2**60.
_SPREAD = 2**24
_MOST = 2**62


@dataclass(frozen=True)
class Bounding:
    """The tables between the rows and the groups.

    Attributes
    ----------
    dialect
        The engine's words.
    keys, kinds, sums
        The columns of rows that are keys, what they hold, and those that are summed.
    unit_kind
        What names a unit; the column is ``u``.
    salt
        The salt's marker.
    max_groups, max_rows
        What a unit keeps at most.
    figures
        What units contribute themselves, of all rows in the groups that they keep.

    """

    dialect: Dialect
    keys: Sequence[str]
    kinds: Sequence[Kind]
    sums: Sequence[str]
    unit_kind: Kind
    salt: str
    max_groups: int
    max_rows: int
    figures: Sequence[UnitFigure] = ()

    def tables(self, public: str | None) -> Iterator[tuple[str, str, bool]]:
        """Yield tables as their name, their query and whether they are read twice; the last are the groups.

        Parameters
        ----------
        public
            The query of the public keys, or None if all keys may be kept.

        """
        pairs = "dpf_pairs" if public is None else "dpf_all_pairs"
        once = not self.dialect.materialized
        if once and self.sums:
            within = ("u", *self.keys)
            yield "dpf_placed", f"  SELECT *, {self._places(within, self.sums, 'n')} FROM dpf_rows", False
            yield "dpf_ordered", self._with_hash("dpf_placed", within, self.max_rows, "n", "r"), False
            yield pairs, self._pairs_of_kept_rows(), False
        else:
            yield pairs, self._pairs(), public is None
        if public is not None:
            yield "dpf_public", f"  SELECT {self._plain()} FROM ({public}) AS dpf_given", False
            same = self._same(pairs, "dpf_public")
            joined = f"  SELECT{self.dialect.joins} {pairs}.* FROM {pairs} JOIN dpf_public ON {same}"
            yield "dpf_pairs", joined, True
        if once:
            order = [f"{key} NULLS FIRST" for key in self.keys]
            yield "dpf_counted", f"  SELECT *, {self._places(('u',), order, 'g')} FROM dpf_pairs", False
            yield "dpf_numbered", self._with_hash("dpf_counted", ("u",), self.max_groups, "g", "g"), False
            yield "dpf_chosen", self._chosen_of_all(), False
        else:
            yield "dpf_large", self._units_with_more_groups(), True
            yield "dpf_chosen", self._chosen(), bool(self.sums)
        if once or not self.sums:
            yield "dpf_groups", self._groups("  SELECT *, 1 AS one FROM dpf_chosen"), False
            return
        yield "dpf_crowded", self._pairs_with_more_rows(), False
        yield "dpf_ordered", self._ordered(), False
        yield "dpf_groups", self._groups_of_both(), False

    @property
    def _shown(self) -> str:
        return ", ".join(self.keys)

    def _list(self, pattern: str, names: Sequence[str] | None = None) -> str:
        """Return the pattern for every sum, or other names, each after a comma."""
        return "".join(", " + pattern.format(name) for name in (self.sums if names is None else names))

    def _plain(self) -> str:
        """Return the keys as columns without null, which every engine joins by."""
        return ", ".join(
            f"COALESCE({key}, {self._nothing(kind)}) AS p{i}, {key} IS NULL AS q{i}"
            for i, (key, kind) in enumerate(zip(self.keys, self.kinds, strict=True))
        )

    def _nothing(self, kind: Kind) -> str:
        return self.dialect.empty if kind == "string" else "0"

    def _same(self, table: str, plain: str) -> str:
        """Return the condition that a table's keys are those of one with plain keys."""
        return " AND ".join(
            f"{plain}.p{i} = COALESCE({table}.{key}, {self._nothing(kind)}) AND {plain}.q{i} = ({table}.{key} IS NULL)"
            for i, (key, kind) in enumerate(zip(self.keys, self.kinds, strict=True))
        )

    def _hash(self, label: str, keys: Sequence[str] = ()) -> str:
        """Return the hash of a unit, or of a unit and keys: other texts are hashed wherever one of them differs."""
        terms = [f"{self.salt} || '{label}'", encoded("u", self.unit_kind, self.dialect)]
        terms += [encoded(key, kind, self.dialect) for key, kind in zip(keys, self.kinds, strict=False)]
        return self.dialect.hashed.format(" || ".join(terms))

    def _keeps(self, most: int, number: str, hashed: str) -> str:
        """Return the condition that of so many places this one is kept."""
        step = most if most < _SPREAD else 1
        return f"(place * {step} + {hashed}) % {number} < {min(most, _MOST)}"

    def _place(self, window: str) -> str:
        return f"CAST(ROW_NUMBER() OVER ({window}) AS {self.dialect.bigint}) - 1 AS place"

    def _at_most(self, column: str) -> str:
        rows = min(self.max_rows, _MOST)
        return f"CASE WHEN {column} > {rows} THEN {rows} ELSE {column} END"

    @property
    def _of_pairs(self) -> list[str]:
        """The columns of units and keys that are added up by group: sums of rows, and what units contribute."""
        return [*self.sums, *(figure.name for figure in self.figures)]

    def _pairs(self) -> str:
        """Return the query of units and keys, with their rows and sums of all of them."""
        sums = self._list(f"CAST(SUM({{0}}) AS {self.dialect.bigint}) AS {{0}}") + self._added()
        pairs = f"SELECT u, {self._shown}, COUNT(*) AS n{sums} FROM dpf_rows GROUP BY u, {self._shown}"
        return f"  {self._with_figures(pairs)}"

    def _added(self) -> str:
        """Return what is added up for what units contribute, each after a comma."""
        names = (name for figure in self.figures for name in figure.added)
        return "".join(f", CAST(SUM({name}) AS {self.dialect.bigint}) AS {name}" for name in names)

    def _with_figures(self, pairs: str) -> str:
        """Return the query that puts together what units contribute."""
        if not self.figures:
            return pairs
        found = "".join(f", {figure.of_unit()}" for figure in self.figures)
        return f"SELECT u, {self._shown}, n{self._list('{0}')}{found} FROM ({pairs}) AS dpf_summed"

    def _ordered(self) -> str:
        """Return the query of the rows of crowded pairs, numbered within their pair."""
        within = ", ".join(f"dpf_rows.{name}" for name in ("u", *self.keys))
        order = ", ".join(f"dpf_rows.{name}" for name in self.sums)
        same = f"dpf_rows.u = dpf_crowded.u AND {self._same('dpf_rows', 'dpf_crowded')}"
        place = self._place(f"PARTITION BY {within} ORDER BY {order}")
        return f"  SELECT dpf_rows.*, dpf_crowded.n, dpf_crowded.h, {place} FROM dpf_rows JOIN dpf_crowded ON {same}"

    def _places(self, within: Sequence[str], order: Sequence[str], number: str) -> str:
        """Return the place within a part, and how many there are: by one window, so that rows pass through one."""
        window = f"PARTITION BY {', '.join(within)} ORDER BY {', '.join(order)}"
        all_of_it = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        return f"{self._place(window)}, COUNT(*) OVER ({window} {all_of_it}) AS {number}"

    def _with_hash(self, table: str, within: Sequence[str], most: int, number: str, label: str) -> str:
        """Return the query that adds their hash to crowded parts; it is computed at the first place alone."""
        hashed = f"CASE WHEN place = 0 AND {number} > {min(most, _MOST)} THEN {self._hash(label, within[1:])} END"
        return f"  SELECT *, MAX({hashed}) OVER (PARTITION BY {', '.join(within)}) AS h FROM {table}"

    def _pairs_of_kept_rows(self) -> str:
        """Return the query of units and keys, with the sums of the rows that are kept."""
        rows = min(self.max_rows, _MOST)
        kept = f"CASE WHEN n > {rows} THEN {self._keeps(self.max_rows, 'n', 'h')} ELSE 1 = 1 END"
        if self.figures:
            sums = self._list(f"CAST(SUM(CASE WHEN {kept} THEN {{0}} ELSE 0 END) AS {self.dialect.bigint}) AS {{0}}")
            pairs = f"SELECT u, {self._shown}, n{sums}{self._added()} FROM dpf_ordered GROUP BY u, {self._shown}, n"
            return f"  {self._with_figures(pairs)}"
        sums = self._list(f"CAST(SUM({{0}}) AS {self.dialect.bigint}) AS {{0}}")
        return f"  SELECT u, {self._shown}, n{sums} FROM dpf_ordered\n  WHERE {kept} GROUP BY u, {self._shown}, n"

    def _units_with_more_groups(self) -> str:
        most = min(self.max_groups, _MOST)
        return (
            f"  SELECT u, g, {self._hash('g')} AS h\n"
            f"  FROM (SELECT u, COUNT(*) AS g FROM dpf_pairs GROUP BY u HAVING COUNT(*) > {most}) AS dpf_counted"
        )

    def _chosen(self) -> str:
        """Return the query of the pairs that are kept: only the groups of units with too many are numbered."""
        columns = f"u, {self._shown}, n{self._list('{0}', self._of_pairs)}"
        order = ", ".join(f"dpf_pairs.{key} NULLS FIRST" for key in self.keys)
        place = self._place(f"PARTITION BY dpf_pairs.u ORDER BY {order}")
        large = "dpf_pairs JOIN dpf_large ON dpf_large.u = dpf_pairs.u"
        numbered = f"SELECT dpf_pairs.*, dpf_large.g, dpf_large.h, {place} FROM {large}"
        all_columns = ", ".join(f"dpf_pairs.{column}" for column in columns.split(", "))
        return (
            f"  SELECT {all_columns} FROM dpf_pairs LEFT JOIN dpf_large ON dpf_large.u = dpf_pairs.u\n"
            f"  WHERE dpf_large.u IS NULL\n  UNION ALL\n  SELECT {columns} FROM ({numbered}) AS dpf_numbered\n"
            f"  WHERE {self._keeps(self.max_groups, 'g', 'h')}"
        )

    def _chosen_of_all(self) -> str:
        """Return the same where all pairs are numbered, since none can be read twice."""
        kept = self._keeps(self.max_groups, "g", "h")
        return (
            f"  SELECT u, {self._shown}, n{self._list('{0}', self._of_pairs)} FROM dpf_numbered\n"
            f"  WHERE CASE WHEN g > {min(self.max_groups, _MOST)} THEN {kept} ELSE 1 = 1 END"
        )

    def _pairs_with_more_rows(self) -> str:
        rows = min(self.max_rows, _MOST)
        return (
            f"  SELECT u, {self._plain()}, n, {self._hash('r', self.keys)} AS h\n"
            f"  FROM (SELECT u, {self._shown}, n FROM dpf_chosen WHERE n > {rows}) AS dpf_counted"
        )

    def _groups(self, pairs: str) -> str:
        sums = self._list("SUM({0}) AS {0}", self._of_pairs)
        return (
            f"  SELECT {self._shown}, SUM(one) AS units, SUM({self._at_most('n')}) AS n{sums}\n"
            f"  FROM ({pairs}) AS dpf_added GROUP BY {self._shown}"
        )

    def _groups_of_both(self) -> str:
        """Return the query of the groups: pairs that keep all their rows, and the rows that the others keep."""
        rows = min(self.max_rows, _MOST)
        names = [figure.name for figure in self.figures]
        whole = self._list(f"CASE WHEN n > {rows} THEN 0 ELSE {{0}} END AS {{0}}") + self._list("{0}", names)
        none = self._list("{0}") + self._list("0 AS {0}", names)
        return self._groups(
            f"  SELECT {self._shown}, 1 AS one, n{whole} FROM dpf_chosen\n  UNION ALL\n"
            f"  SELECT {self._shown}, 0 AS one, 0 AS n{none} FROM dpf_ordered\n"
            f"  WHERE {self._keeps(self.max_rows, 'n', 'h')}"
        )
