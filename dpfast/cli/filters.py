"""What ``--where`` says -> a filter: comparisons in Python's own words, parsed by Python, of which few are allowed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dpfast.cli.errors import CommandError, described, shortened
from dpfast.errors import ParameterError

if TYPE_CHECKING:
    from dpfast.rows.filters import Column, Filter

__all__ = ["read_filters"]

_MOST_CHARACTERS = 20_000
_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
#: What each operator is with its sides exchanged.
_EXCHANGED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def read_filters(texts: tuple[str, ...], option: str = "--where") -> Filter | None:
    """Return the rows that pass all filters that an option gives; None for none.

    Raises
    ------
    CommandError
        What is written is no filter: the place is named.

    """
    filters = [_Reader(text, option).read() for text in texts]
    if not filters:
        return None
    joined = filters[0]
    for more in filters[1:]:
        joined &= more
    return joined


class _Reader:
    """Reads one text."""

    def __init__(self, text: str, option: str) -> None:
        self._option = option
        self._mend = f"""write for example {option} 'delay > 15 and carrier in ("AA", "UA")'"""
        # One line, whose characters Python counts from its beginning.
        self._text = " ".join(text.splitlines()).strip()

    def read(self) -> Filter:
        """Return the filter."""
        if len(self._text) > _MOST_CHARACTERS:
            raise CommandError(f"{self._option} is longer than {_MOST_CHARACTERS:,} characters; {self._mend}")
        problem, place = "", 1
        try:
            tree = ast.parse(self._text, mode="eval")
        except SyntaxError as error:
            problem, place = str(error.msg), error.offset or 1
        except (ValueError, RecursionError, MemoryError) as error:
            problem = "it is nested too deep" if not isinstance(error, ValueError) else str(error)
        if problem:
            if "'=='" in problem or "assign" in problem or self._text[place - 1 : place] == "=":
                problem = "write == to compare"
            raise self._wrong(place, " ".join(problem.split()))
        try:
            return self._filter(tree.body)
        except ParameterError as error:
            raise CommandError(f"{self._option} {shortened(self._text)} does not serve: {described(error)}") from None
        except RecursionError:
            pass
        raise self._wrong(1, "it is nested too deep")

    def _wrong(self, place: int, problem: str) -> CommandError:
        text = self._text
        near = shortened(text[max(0, place - 1) :])
        return CommandError(f"{self._option} cannot be read at character {place}, {near}: {problem}; {self._mend}")

    def _refused(self, node: ast.expr, problem: str) -> CommandError:
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            problem = "write and, or"
        # Python counts bytes of UTF-8.
        before = self._text.encode()[: node.col_offset].decode(errors="replace")
        return self._wrong(len(before) + 1, problem)

    def _filter(self, node: ast.expr) -> Filter:
        from dpfast.rows.filters import Every, Some, read_filter

        if isinstance(node, ast.BoolOp):
            kind = Every if isinstance(node.op, ast.And) else Some
            return kind(tuple(map(self._filter, node.values)))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self._filter(node.operand)
        if isinstance(node, ast.Compare):
            return self._compared(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "is_nan":
            if len(node.args) == 1 and not node.keywords:
                return self._column(node.args[0]).is_nan()
            raise self._refused(node, "is_nan takes one column")
        return read_filter(self._column(node))

    def _compared(self, node: ast.Compare) -> Filter:
        """Return a comparison, or several in a chain such as ``0 < x <= 5``."""
        from dpfast.rows.filters import Every

        sides = [node.left, *node.comparators]
        found = [
            self._pair(left, operator, right) for left, operator, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return found[0] if len(found) == 1 else Every(tuple(found))

    def _pair(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Filter:
        from dpfast.rows.filters import Comparison, read_filter

        if isinstance(operator, (ast.In, ast.NotIn)):
            if not isinstance(right, (ast.Tuple, ast.List, ast.Set)):
                raise self._refused(right, "after in there is a list of values in parentheses")
            among = self._column(left).is_in([self._value(value) for value in right.elts])
            return ~among if isinstance(operator, ast.NotIn) else among
        if isinstance(operator, (ast.Is, ast.IsNot)):
            if not (isinstance(right, ast.Constant) and right.value is None):
                raise self._refused(right, "after is there is None; compare values by ==")
            null = self._column(left).is_null()
            return ~null if isinstance(operator, ast.IsNot) else null
        written = _OPERATORS[type(operator)]
        if not _names_column(left) and _names_column(right):
            left, right, written = right, left, _EXCHANGED[written]
        if _names_column(right):
            raise self._refused(right, "a column is compared with a value, not with another column; quote text")
        test = read_filter(self._column(left) == self._value(right))
        assert isinstance(test, Comparison)
        return Comparison(test.column, written, test.value)  # type: ignore[arg-type]

    def _column(self, node: ast.expr) -> Column:
        from dpfast.rows.filters import Column

        if isinstance(node, ast.Name):
            # Python folds letters that look alike.
            return Column(ast.get_source_segment(self._text, node) or node.id)
        if _names_column(node):
            assert isinstance(node, ast.Call)
            names = [name.value for name in node.args if isinstance(name, ast.Constant)]
            if len(node.args) == 1 and not node.keywords and names and isinstance(names[0], str):
                return Column(names[0])
            raise self._refused(node, """column takes a name in quotes, as column("dep delay")""")
        raise self._refused(node, """here stands a column's name, or column("...") where it is no single word""")

    def _value(self, node: ast.expr) -> Any:
        """Return a number, a text, True, False or bytes."""
        sign = 1
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            sign = -1 if isinstance(node.op, ast.USub) else 1
            node = node.operand
            if not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
                raise self._refused(node, "after a sign there is a number")
        if isinstance(node, ast.Constant) and node.value is None:
            raise self._refused(node, "write is None, or is not None")
        if isinstance(node, ast.Constant) and type(node.value) in (int, float, str, bool, bytes):
            return sign * node.value if type(node.value) in (int, float) else node.value  # type: ignore[operator]
        raise self._refused(node, "here stands a number, text in quotes, True or False")


def _names_column(node: ast.expr) -> bool:
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "column"
    return isinstance(node, ast.Name) or called
