"""MATCH_RECOGNIZE by its definition: every way to match, in order of preference.

The pattern is tried by backtracking over one partition, and conditions are evaluated on the syntax
tree, with Python's values. Nothing of the matcher is used but the parser's nodes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from cepheid.language import ast
from cepheid.row_patterns.syntax import (
    Alternation,
    Anchor,
    Concatenation,
    EmptyPattern,
    Exclusion,
    Label,
    PartitionEdge,
    Permutation,
    Quantified,
    Recognition,
    RowPattern,
    RowsPerMatch,
    SkipTo,
)

Row = dict[str, Any]


@dataclass(frozen=True)
class Taken:
    row: int
    label: str
    shown: bool


Path = tuple[Taken, ...]


class NoSkip(Exception):
    """AFTER MATCH SKIP TO has no row to go to, or the match's first."""


def recognize(recognition: Recognition, rows: Sequence[Row]) -> list[Row]:
    """The rows that are returned, for one partition whose rows are in order."""
    return _Partition(recognition, rows).output()


def single_rows(recognition: Recognition, rows: Sequence[Row]) -> list[tuple[int, Row]]:
    """ONE ROW PER MATCH: where each match begins, and its row."""
    partition = _Partition(recognition, rows)
    return [
        (start, partition.row(start, path, path, number))
        for start, path, number in partition.matches()
    ]


class _Partition:
    def __init__(self, recognition: Recognition, rows: Sequence[Row]) -> None:
        self.recognition = recognition
        self.rows = rows
        self.conditions = {d.label: d.condition for d in recognition.definitions}
        self.sets = {s.name: set(s.labels) for s in recognition.subsets}

    # ── matches ──

    def ways(
        self, pattern: RowPattern, start: int, path: Path, shown: bool, number: int
    ) -> Iterator[Path]:
        """Every way to go on with the pattern, the preferred one first."""
        at = start + len(path)

        def again(item: RowPattern, taken: Path, show: bool = shown) -> Iterator[Path]:
            return self.ways(item, start, taken, show, number)

        match pattern:
            case Label(name):
                longer = (*path, Taken(at, name, shown))
                if at < len(self.rows) and self.allowed(name, longer, number):
                    yield longer
            case EmptyPattern():
                yield path
            case Anchor(edge):
                if at == (0 if edge is PartitionEdge.START else len(self.rows)):
                    yield path
            case Concatenation(()):
                yield path
            case Concatenation((first, *rest)):
                for taken in again(first, path):
                    yield from again(Concatenation(tuple(rest)), taken)
            case Alternation(items):
                for item in items:
                    yield from again(item, path)
            case Permutation(items):
                for order in permutations(items):
                    yield from again(Concatenation(order), path)
            case Exclusion(item):
                yield from again(item, path, False)
            case Quantified():
                yield from self.repeated(pattern, path, 0, again)

    def repeated(
        self,
        pattern: Quantified,
        path: Path,
        count: int,
        again: Callable[[RowPattern, Path], Iterator[Path]],
    ) -> Iterator[Path]:
        """An iteration that isn't needed and takes no row ends the loop."""
        if count < pattern.low:
            for taken in again(pattern.item, path):
                yield from self.repeated(pattern, taken, count + 1, again)
            return
        if not pattern.greedy:
            yield path
        if pattern.high is None or count < pattern.high:
            for taken in again(pattern.item, path):
                if len(taken) == len(path):
                    yield taken
                else:
                    yield from self.repeated(pattern, taken, count + 1, again)
        if pattern.greedy:
            yield path

    def allowed(self, label: str, path: Path, number: int) -> bool:
        within = self.recognition.within
        if within is not None:
            time = self.recognition.order[0].column
            first, last = (self.rows[path[n].row][time] for n in (0, -1))
            if (last is None) is not (first is None):
                return False
            if last is not None and last - first >= within.amount:
                return False
        condition = self.conditions.get(label)
        if condition is None:
            return True
        return _Reading(self, path, path, number).value(condition) is True

    def matches(self) -> Iterator[tuple[int, Path, int]]:
        start, number = 0, 0
        while start < len(self.rows):
            ways = self.ways(self.recognition.pattern, start, (), True, number + 1)
            path = next(ways, None)
            if path is None:
                start += 1
                continue
            number += 1
            yield start, path, number
            start = self.next_start(start, path)

    def next_start(self, start: int, path: Path) -> int:
        after = self.recognition.after
        if not path or after.skip is SkipTo.NEXT_ROW:
            return start + 1
        if after.skip is SkipTo.PAST_LAST_ROW:
            return start + len(path)
        assert after.label is not None
        labels = self.labels(after.label)
        rows = [t.row for t in path if t.label in labels]
        target = None if not rows else rows[0 if after.skip is SkipTo.FIRST else -1]
        if target is None or target == start:
            raise NoSkip
        return target

    def labels(self, name: str) -> set[str]:
        return self.sets.get(name.upper(), {name.upper()})

    # ── output ──

    def output(self) -> list[Row]:
        result: list[tuple[int, Row]] = []
        covered: set[int] = set()
        mode = self.recognition.rows
        for start, path, number in self.matches():
            covered.update(t.row for t in path)
            if not path:
                covered.add(start)
                if mode is not RowsPerMatch.OMIT_EMPTY:
                    result.append((start, self.row(start, path, path, number)))
            elif mode is RowsPerMatch.ONE:
                result.append((start, self.row(start, path, path, number)))
            else:
                result += [
                    (start, self.row(t.row, path[: n + 1], path, number))
                    for n, t in enumerate(path)
                    if t.shown
                ]
        if mode is RowsPerMatch.UNMATCHED:
            for row in range(len(self.rows)):
                if row not in covered:
                    nothing = {m.name: None for m in self.recognition.measures}
                    result.append((row, {**self.rows[row], **nothing}))
            result.sort(key=lambda item: item[0])
        return [row for _, row in result]

    def row(self, source: int, so_far: Path, path: Path, number: int) -> Row:
        reading = _Reading(self, so_far, path, number)
        measures = {m.name: reading.value(m.expression) for m in self.recognition.measures}
        if self.recognition.rows is RowsPerMatch.ONE:
            keys = [name for name, _ in self.recognition.partition]
            return {**{k: self.rows[source][k] for k in keys}, **measures}
        return {**self.rows[source], **measures}


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda x, y: x == y,
    "<>": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
}
_FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "coalesce": lambda values: next(iter(_known(values)), None),
    "greatest": lambda values: max(_known(values), default=None),
    "least": lambda values: min(_known(values), default=None),
    "length": lambda values: None if None in values else len(values[0]),
    "concat": lambda values: None if None in values else "".join(values),
}
_AGGREGATES = ("count", "sum", "avg", "min", "max", "stddev", "array_agg")


class _Reading:
    """Evaluates expressions over the rows taken so far (RUNNING) and all rows (FINAL)."""

    def __init__(self, partition: _Partition, so_far: Path, path: Path, number: int) -> None:
        self.partition = partition
        self.paths = {False: so_far, True: path}
        self.number = number

    def value(self, node: ast.Expression) -> Any:
        match node:
            case ast.Literal(value):
                return value
            case ast.Name() | ast.Attribute():
                return self.navigate(node, True, 0, 0, False)
            case ast.Binary(operator, left, right):
                x, y = self.value(left), self.value(right)
                return None if x is None or y is None else _ARITHMETIC[operator](x, y)
            case ast.Comparison((left, right), (operator,)):
                x, y = self.value(left), self.value(right)
                return None if x is None or y is None else _COMPARE[operator](x, y)
            case ast.Logical(operator, operands):
                return _logical(operator, [self.value(o) for o in operands])
            case ast.Unary("NOT", operand):
                x = self.value(operand)
                return None if x is None else not x
            case ast.IsNull(operand, negated):
                return (self.value(operand) is None) is not negated
            case ast.IsDistinct(left, right, negated):
                return (self.value(left) != self.value(right)) is not negated
            case ast.Call("match_number"):
                return self.number
            case ast.Call("classifier"):
                return self.navigate(node, True, 0, 0, False)
            case ast.Call():
                return self.call(node, False)
        raise AssertionError(node)

    def call(self, node: ast.Call, final: bool) -> Any:
        match node:
            case ast.Call("running" | "final", (ast.Call() as inner,)):
                return self.call(inner, node.name == "final")
            case ast.Call("first" | "last", (argument, *rest)):
                return self.navigate(argument, node.name == "last", _number(rest, 0), 0, final)
            case ast.Call("prev" | "next", (argument, *rest)):
                steps = _number(rest, 1)
                shift = -steps if node.name == "prev" else steps
                return self.shifted(argument, shift)
            case ast.Call(name, (argument,)) if name in _AGGREGATES:
                return self.aggregate(name, argument, node.distinct, final)
            case ast.Call(name, arguments) if name in _FUNCTIONS:
                return _FUNCTIONS[name]([self.value(a) for a in arguments])
        raise AssertionError(node)

    def shifted(self, node: ast.Expression, shift: int) -> Any:
        final = False
        if isinstance(node, ast.Call) and node.name in ("running", "final"):
            final = node.name == "final"
            (node,) = node.arguments
        if isinstance(node, ast.Call) and node.name in ("first", "last"):
            argument, *rest = node.arguments
            return self.navigate(argument, node.name == "last", _number(rest, 0), shift, final)
        return self.navigate(node, True, 0, shift, final)

    def selected(self, node: ast.Expression, final: bool) -> list[Taken]:
        """The rows that an argument is read from."""
        names = {n.variable for n in _nodes(node) if isinstance(n, ast.Attribute)}
        names |= {n.variable for n in _nodes(node) if isinstance(n, ast.Star) and n.variable}
        for call in _nodes(node):
            if isinstance(call, ast.Call) and call.name == "classifier" and call.arguments:
                (label,) = call.arguments
                assert isinstance(label, ast.Name)
                names.add(label.name)
        path = self.paths[final]
        if not names:
            return list(path)
        (name,) = names
        labels = self.partition.labels(name)
        return [t for t in path if t.label in labels]

    def navigate(
        self, node: ast.Expression, last: bool, offset: int, shift: int, final: bool
    ) -> Any:
        rows = self.selected(node, final)
        if offset >= len(rows):
            return None
        at = rows[-1 - offset] if last else rows[offset]
        row = at.row + shift
        if any(isinstance(n, ast.Call) and n.name == "classifier" for n in _nodes(node)):
            labels = {t.row: t.label for t in self.paths[True]}
            return labels.get(row)
        if not 0 <= row < len(self.partition.rows):
            return None
        return self.of_row(node, row)

    def of_row(self, node: ast.Expression, row: int) -> Any:
        match node:
            case ast.Name(name) | ast.Attribute(_, name):
                return self.partition.rows[row][name]
            case ast.Literal(value):
                return value
            case ast.Binary(operator, left, right):
                x, y = self.of_row(left, row), self.of_row(right, row)
                return None if x is None or y is None else _ARITHMETIC[operator](x, y)
        raise AssertionError(node)

    def aggregate(self, name: str, node: ast.Expression, distinct: bool, final: bool) -> Any:
        rows = self.selected(node, final)
        if isinstance(node, ast.Star):
            return len(rows)
        if isinstance(node, ast.Call):
            values: list[Any] = [t.label for t in rows]
        else:
            values = [self.of_row(node, t.row) for t in rows]
        known = _known(values)
        if distinct:
            known = values = list(dict.fromkeys(known))
        match name:
            case "array_agg":
                return values
            case "count":
                return len(known)
            case _ if not known:
                return None
            case "sum":
                return sum(known)
            case "avg":
                return sum(known) / len(known)
            case "stddev":
                return statistics.stdev(known) if len(known) > 1 else None
            case "min":
                return min(known)
            case _:
                return max(known)


def _nodes(node: object) -> Iterator[Any]:
    """The node and all below it."""
    yield node
    for name in ("left", "right", "operand"):
        if hasattr(node, name):
            yield from _nodes(getattr(node, name))
    for name in ("arguments", "operands"):
        for part in getattr(node, name, ()):
            yield from _nodes(part)


def _known(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _number(rest: Sequence[ast.Expression], default: int) -> int:
    if not rest:
        return default
    (literal,) = rest
    assert isinstance(literal, ast.Literal) and isinstance(literal.value, int)
    return literal.value


def _logical(operator: str, values: list[Any]) -> bool | None:
    decisive = operator == "OR"
    if decisive in values:
        return decisive
    return None if None in values else not decisive
