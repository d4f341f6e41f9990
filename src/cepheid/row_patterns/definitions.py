"""DEFINE: conditions of single rows become a word of bits per row; all others become lines of the
matcher's kernel.

A condition that reads only the row at hand and its neighbors (PREV, NEXT) is evaluated once, for
all rows. One that reads rows taken before (`A.price`, `sum(B.price)`) is checked when a row is
taken. What it reads is kept in *registers*: numbers that have a value after each row taken, so
giving rows back needs no work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.expressions import Attribute, Call, Constant, Expr, transform, walk
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import Column, KernelColumn, kernel_values
from cepheid.engine.arrays.interner import Interner
from cepheid.engine.arrays.vector import evaluate
from cepheid.engine.lowering import FoldPart, Inputs, KernelLowering, NotLowered, Term, accumulate
from cepheid.engine.lowering.folds import finalized
from cepheid.engine.lowering.terms import DOUBLES, zero
from cepheid.kernels.code import INDENT
from cepheid.row_patterns.arrangement import ArrangedRows
from cepheid.row_patterns.leaves import (
    CLASSIFIER,
    Labels,
    Leaf,
    MatchNumber,
    Navigation,
    RowAggregate,
    RowExpression,
    leaf_attribute,
    leaf_number,
    reads_classifier,
)
from cepheid.row_patterns.row_machine import Checks

Bits = NDArray[np.int64]
_TEXTS = (Type.STRING, Type.BINARY)
_LEVEL = 5
"""How deep the kernel's checks stand."""

_NOT_STRICT = frozenset({"and", "or", "case", "coalesce", "greatest", "least", "is_null", "in"})
"""All operators but these are NULL if an operand is."""
_OF_CODES = frozenset({"=", "<>", "<", "<=", ">", ">=", *_NOT_STRICT})
"""Operators that do the same to the ranks of texts as to the texts."""


def of_rows(label: str, condition: RowExpression) -> bool:
    """Whether the condition depends on the row and its neighbors alone."""
    return all(isinstance(leaf, Navigation) and leaf.at_row(label) for leaf in condition.leaves)


def row_bits(
    labels: tuple[str, ...], conditions: Mapping[str, RowExpression], rows: ArrangedRows
) -> Bits:
    """A word per row with a bit for each label that the row may have."""
    bits = np.zeros(rows.length, np.int64)
    for number, label in enumerate(labels):
        condition = conditions.get(label)
        if condition is None or not of_rows(label, condition):
            bits |= 1 << number
        else:
            bits |= _holds(condition, rows).astype(np.int64) << number
    return bits


def _holds(condition: RowExpression, rows: ArrangedRows) -> NDArray[np.bool_]:
    def read(attribute: Attribute) -> pa.Array:
        leaf = condition.leaves[leaf_number(attribute)]
        assert isinstance(leaf, Navigation)
        return rows.shifted(leaf.argument, leaf.shift)

    result = evaluate(condition.expression, read, rows.length)
    if pa.types.is_null(result.type):
        return np.zeros(rows.length, np.bool_)
    held: NDArray[np.bool_] = pc.fill_null(result, False).to_numpy(zero_copy_only=False)
    return held


# ── conditions in the kernel ─────────────────────────────────────────────────


def path_checks(
    labels: tuple[str, ...], conditions: Mapping[str, RowExpression], rows: ArrangedRows
) -> Checks:
    """The conditions that read rows taken before. `NotLowered`, if one has no form in a kernel."""
    dependent = {
        number: conditions[label]
        for number, label in enumerate(labels)
        if label in conditions and not of_rows(label, conditions[label])
    }
    if not dependent:
        return Checks()
    writer = _CheckWriter(labels, rows, [absorbed(c) for c in dependent.values()])
    updates = writer.updates()  # this gives registers to what the tests read
    tests = [
        line
        for number, condition in zip(dependent, writer.conditions, strict=True)
        for line in writer.test(number, condition)
    ]
    lines = ["if ok:", *(INDENT + line for line in [*updates, *tests])]
    return Checks(
        labels=frozenset(dependent),
        unpack="".join(f"{INDENT}{line}\n" for line in writer.inputs.unpack(0)),
        lines="".join(f"{INDENT * _LEVEL}{line}\n" for line in lines),
        columns=tuple(writer.columns()),
        params=tuple(writer.params()),
        ints=writer.registers.ints,
        floats=writer.registers.floats,
    )


def absorbed(condition: RowExpression) -> RowExpression:
    """The same condition, with what is computed from one row moved into its leaf: `LAST(A.name)
    LIKE 'x%'` reads one Boolean of a row, and is computed once for all rows."""
    leaves: list[Leaf] = list(condition.leaves)

    def change(expr: Expr) -> Expr | None:
        if not isinstance(expr, Call) or expr.operator in _NOT_STRICT:
            return None
        read = [a for a in expr.arguments if isinstance(a, Attribute)]
        constants = [a for a in expr.arguments if isinstance(a, Constant) and a.value is not None]
        if len(read) != 1 or len(read) + len(constants) != len(expr.arguments):
            return None
        leaf = leaves[leaf_number(read[0])]
        if not isinstance(leaf, Navigation):
            return None
        argument = Call(
            expr.operator,
            tuple(leaf.argument if isinstance(a, Attribute) else a for a in expr.arguments),
            expr.type,
        )
        moved = Navigation(argument, leaf.labels, leaf.last, leaf.offset, leaf.shift, leaf.final)
        if moved not in leaves:
            leaves.append(moved)
        return leaf_attribute(leaves.index(moved), moved)

    return RowExpression(transform(condition.expression, change), tuple(leaves))


@dataclass
class _Registers:
    """Registers by what they hold. The first is of depth 0: before any row is taken."""

    ints: int = 0
    floats: int = 0
    sources: dict[object, str] = field(default_factory=dict)

    def named(self, what: object, double: bool = False) -> str:
        """The source of the register's array."""
        if what not in self.sources:
            if double:
                self.sources[what] = f"floats[{self.floats}]"
                self.floats += 1
            else:
                self.sources[what] = f"ints[{self.ints}]"
                self.ints += 1
        return self.sources[what]


class _CheckWriter:
    """Writes the checks of all conditions. In the kernel, `depth` rows were taken before `row`."""

    def __init__(
        self, labels: tuple[str, ...], rows: ArrangedRows, conditions: list[RowExpression]
    ) -> None:
        self.labels = labels
        self.rows = rows
        self.conditions = conditions
        self.texts = _text_ranks(conditions, rows, labels)
        self.values: dict[Column, tuple[NDArray[np.generic], NDArray[np.bool_] | None]] = {}
        for condition in conditions:
            for leaf in condition.leaves:
                if not isinstance(leaf, MatchNumber) and leaf.argument is not None:
                    self._load(leaf.argument)
        nullable = frozenset(c for c, (_, valid) in self.values.items() if valid is not None)
        self.inputs = Inputs(nullable, objects=False)
        self.registers = _Registers()

    def _load(self, argument: Expr) -> None:
        column = Column(argument)
        if column in self.values:
            return
        if reads_classifier(argument):
            array = _of_labels(argument, self.labels)
        else:
            array = self.rows.values(argument)
        if argument.type in _TEXTS:
            self.values[column] = self.texts.codes(array)
        else:
            self.values[column] = kernel_values(array, argument.type, Interner())

    def columns(self) -> list[NDArray[np.generic]]:
        arrays: list[NDArray[np.generic]] = []
        for column in self.inputs.columns:
            assert isinstance(column, Column)
            values, valid = self.values[column]
            arrays.append(np.ascontiguousarray(values))
            if valid is not None:
                arrays.append(np.ascontiguousarray(valid))
        return arrays

    def params(self) -> list[object]:
        values: list[object] = []
        for constant in self.inputs.params:
            assert isinstance(constant, Constant)
            value = constant.value
            values.append(self.texts.rank(value) if isinstance(value, str | bytes) else value)
        return values

    # ── what is kept after each row ──

    def member(self, labels: Labels) -> str:
        """Whether the label at hand is one of these."""
        if labels is None:
            return "True"
        numbers = sum(1 << self.labels.index(name) for name in labels)
        return f"(({numbers} >> label) & 1) == 1"

    def updates(self) -> list[str]:
        """Lines that give every register its value after this row."""
        low = _PathLowering(self, (), "r")
        low.line("depth = row - start")
        low.line("path[depth] = pc")  # the row at hand has its label, also where labels are read
        for condition in self.conditions:
            for leaf in condition.leaves:
                match leaf:
                    case Navigation() if leaf.labels is not None:
                        self._update_place(low, leaf)
                    case RowAggregate(argument=None, labels=labels) if labels is not None:
                        self._update_count(low, labels)
                    case RowAggregate() if leaf.argument is not None and not leaf.distinct:
                        self._update_fold(low, leaf)
                    case _:
                        pass
        return low.code.lines

    def _update_place(self, low: KernelLowering, leaf: Navigation) -> None:
        """The last or first row so far with one of the labels, plus 1; 0 if there is none."""
        key = ("place", leaf.labels, leaf.last)
        if key in self.registers.sources:
            return
        place = self.registers.named(key)
        kept = f"{place}[depth] if depth > 0 else 0"
        before = low.let(kept)
        if leaf.last:
            low.line(f"{place}[depth + 1] = row + 1 if {self.member(leaf.labels)} else {before}")
        else:
            new = f"(row + 1 if {self.member(leaf.labels)} else 0)"
            low.line(f"{place}[depth + 1] = {before} if {before} > 0 else {new}")

    def _update_count(self, low: KernelLowering, labels: Labels) -> None:
        key = ("count", labels)
        if key in self.registers.sources:
            return
        count = self.registers.named(key)
        before = low.let(f"{count}[depth] if depth > 0 else 0")
        low.line(f"{count}[depth + 1] = {before} + 1 if {self.member(labels)} else {before}")

    def _update_fold(self, low: _PathLowering, leaf: RowAggregate) -> None:
        assert leaf.argument is not None
        key = ("fold", leaf.function, leaf.argument, leaf.labels)
        if key in self.registers.sources:
            return
        function = AGGREGATES[leaf.function]
        if not function.folds:
            raise NotLowered(leaf)
        type_ = _coded(leaf.argument.type)
        total = self.registers.named(key, type_ in DOUBLES)
        count = self.registers.named((*key, "count"))
        part = FoldPart(
            low.let(f"{total}[depth] if depth > 0 else {zero(type_)}"),
            low.let(f"{count}[depth] if depth > 0 else 0"),
        )
        with low.block(f"if {self.member(leaf.labels)}:"):
            accumulate(low, function, part, low.argument(leaf.argument, "row"), type_)
        low.line(f"{total}[depth + 1] = {part.total}")
        low.line(f"{count}[depth + 1] = {part.count}")

    # ── what is checked ──

    def test(self, label: int, condition: RowExpression) -> list[str]:
        low = _PathLowering(self, condition.leaves, f"t{label}_")
        with low.block(f"if label == {label}:"):
            low.line(f"ok = {low.true(_in_codes(condition.expression))}")
        return low.code.lines


class _PathLowering(KernelLowering):
    """Reads leaves: from registers, and from columns at the rows that registers name."""

    def __init__(self, writer: _CheckWriter, leaves: tuple[Leaf, ...], prefix: str) -> None:
        super().__init__(writer.inputs, {}, prefix)
        self.writer = writer
        self.leaves = leaves

    def read(self, variable: str, column: KernelColumn) -> Term:
        if not isinstance(column, Column) or not isinstance(column.expression, Attribute):
            raise NotLowered(column)
        match self.leaves[int(variable[1:])]:
            case Navigation() as leaf:
                return self._navigated(leaf)
            case RowAggregate() as leaf:
                return self._aggregated(leaf)
            case MatchNumber():
                return Term("(number + 1)")

    def argument(self, argument: Expr, row: str) -> Term:
        """A column at a row; what is computed from CLASSIFIER() is a column of labels."""
        column = Column(argument)
        n = self.inputs.column(column)
        if reads_classifier(argument):
            row = f"label_of[path[{row} - start]]"
        valid = f"v{n}[{row}]" if column in self.inputs.nullable else None
        return Term(f"c{n}[{row}]", valid)

    def _navigated(self, leaf: Navigation) -> Term:
        place = self._place(leaf)
        shifted = place if leaf.shift == 0 else self.let(f"{place} + {leaf.shift}")
        first, last = ("start", "row + 1") if reads_classifier(leaf.argument) else ("begin", "end")
        inside = self.let(f"{place} >= 0 and {shifted} >= {first} and {shifted} < {last}")
        at = self.let(f"{shifted} if {inside} else {first}")
        term = self.argument(leaf.argument, at)
        value = self.let(term.value)
        return Term(value, inside if term.valid is None else self.let(f"{inside} and {term.valid}"))

    def _place(self, leaf: Navigation) -> str:
        """The number of the row, or -1."""
        if leaf.labels is None:
            if leaf.last:
                return self.let(f"row - {leaf.offset} if row - {leaf.offset} >= start else -1")
            return self.let(f"start + {leaf.offset} if start + {leaf.offset} <= row else -1")
        register = self.writer.registers.sources[("place", leaf.labels, leaf.last)]
        place = self.let(f"{register}[depth + 1] - 1")
        if leaf.offset == 0:
            return place
        numbers = sum(1 << self.writer.labels.index(name) for name in leaf.labels)
        member = f"(({numbers} >> label_of[path[{place} - start]]) & 1) == 1"
        left = self.let(f"{leaf.offset} if {place} >= 0 else 0")
        step, more = ("-", f"{place} >= start") if leaf.last else ("+", f"{place} <= row")
        with self.block(f"while {left} > 0:"):
            self.line(f"{place} = {place} {step} 1")
            with self.block(f"if not ({more}):"):
                self.line(f"{place} = -1")
                self.line("break")
            with self.block(f"if {member}:"):
                self.line(f"{left} = {left} - 1")
        return place

    def _aggregated(self, leaf: RowAggregate) -> Term:
        if leaf.argument is None:
            if leaf.labels is None:
                return Term("(depth + 1)")
            return Term(f"{self.writer.registers.sources[('count', leaf.labels)]}[depth + 1]")
        if leaf.distinct:
            return self._distinct(leaf)
        key = ("fold", leaf.function, leaf.argument, leaf.labels)
        sources = self.writer.registers.sources
        total = self.let(f"{sources[key]}[depth + 1]")
        count = self.let(f"{sources[(*key, 'count')]}[depth + 1]")
        return finalized(AGGREGATES[leaf.function], FoldPart(total, count))

    def _distinct(self, leaf: RowAggregate) -> Term:
        """Each value is compared with those before it: groups are small where this is checked."""
        assert leaf.argument is not None
        function = AGGREGATES[leaf.function]
        if not function.folds:
            raise NotLowered(leaf)
        type_ = _coded(leaf.argument.type)
        part = FoldPart(self.let(zero(type_)), self.let("0"))
        at, previous, new = self.name(), self.name(), self.name()
        with self.block(f"for {at} in range(start, row + 1):"):
            member = self._member_at(leaf.labels, at)
            value = self.argument(leaf.argument, at)
            with self.block(f"if {member} and {value.valid or 'True'}:"):
                self.line(f"{new} = True")
                with self.block(f"for {previous} in range(start, {at}):"):
                    earlier = self.argument(leaf.argument, previous)
                    known = (
                        f"{self._member_at(leaf.labels, previous)} and {earlier.valid or 'True'}"
                    )
                    with self.block(f"if {known} and {earlier.value} == {value.value}:"):
                        self.line(f"{new} = False")
                with self.block(f"if {new}:"):
                    accumulate(self, function, part, value, type_)
        return finalized(function, part)

    def _member_at(self, labels: Labels, row: str) -> str:
        if labels is None:
            return "True"
        numbers = sum(1 << self.writer.labels.index(name) for name in labels)
        return f"(({numbers} >> label_of[path[{row} - start]]) & 1) == 1"


# ── texts ────────────────────────────────────────────────────────────────────


def _coded(type_: Type) -> Type:
    return Type.INTEGER if type_ in _TEXTS else type_


def _in_codes(expr: Expr) -> Expr:
    """The same with texts as their ranks, which are integers."""
    for call in (node for node in walk(expr) if isinstance(node, Call)):
        reads_texts = any(part.type in _TEXTS for part in (call, *call.arguments))
        if reads_texts and call.operator not in _OF_CODES:
            raise NotLowered(call)
    return transform(expr, _as_code)


def _as_code(expr: Expr) -> Expr | None:
    code = isinstance(expr, Attribute | Constant | Call) and expr.type in _TEXTS
    return replace(expr, type=Type.INTEGER) if code else None


@dataclass(frozen=True)
class _TextRanks:
    """All texts that conditions compare, in order: a text's rank is its place."""

    ranks: Mapping[str | bytes, int]

    def rank(self, text: str | bytes) -> int:
        return self.ranks[text]

    def codes(self, array: pa.Array) -> tuple[NDArray[np.generic], NDArray[np.bool_] | None]:
        encoded = pc.dictionary_encode(array)
        known = np.array([self.ranks[t] for t in encoded.dictionary.to_pylist()] or [0], np.int64)
        indices = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
        valid = None
        if array.null_count:
            valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
        return known[indices], valid


def _of_labels(argument: Expr, labels: tuple[str, ...]) -> pa.Array:
    """An expression of CLASSIFIER() for each label."""
    if any(isinstance(node, Attribute) and node != CLASSIFIER for node in walk(argument)):
        raise NotLowered(argument)
    names = pa.array(labels, pa.string())
    return evaluate(argument, lambda _: names, len(labels))


def _text_ranks(
    conditions: list[RowExpression], rows: ArrangedRows, labels: tuple[str, ...]
) -> _TextRanks:
    texts: set[str | bytes] = set()
    for condition in conditions:
        for leaf in condition.leaves:
            argument = None if isinstance(leaf, MatchNumber) else leaf.argument
            if argument is not None and argument.type in _TEXTS:
                array = (
                    _of_labels(argument, labels)
                    if reads_classifier(argument)
                    else rows.values(argument)
                )
                texts.update(pc.unique(array).drop_null().to_pylist())
        transform(condition.expression, lambda e: _note(e, texts))
    return _TextRanks({t: n for n, t in enumerate(sorted(texts, key=_bytes))})


def _note(expr: Expr, texts: set[str | bytes]) -> None:
    if isinstance(expr, Constant) and isinstance(expr.value, str | bytes):
        texts.add(expr.value)


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()
