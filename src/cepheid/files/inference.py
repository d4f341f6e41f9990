"""What the columns of text files are, decided from samples of their cells.

As a person would: a column that is numbers but for a few cells is numbers, and those few don't fit.
Local runs, Spark and streams all use it, so a file has the same columns everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa

from cepheid.files import cell_values
from cepheid.files.cell_values import MISSING, MOMENT

FEW = 20
"""One cell in this many may misfit its column; with fewer cells, but at least `_ENOUGH`, one."""

_ENOUGH = 4
_FEW_CODES = 1000
"""One number in this many may begin with a zero; if there are more, they are names: 007."""

_EXAMPLES = 3
_BEYOND, _DIGITS = 2**63, 18
"""The first integer that needs more than 64 bits, and the digits that always fit."""


class CellKind(StrEnum):
    """The kind of a single cell."""

    EMPTY = "empty"
    BOOLEAN = "boolean"
    CODE = "code"  # digits that begin with a zero: 007
    INTEGER = "integer"
    HUGE = "huge"  # an integer beyond 64 bits
    FLOAT = "float"
    DATE = "date"
    TIME = "time"
    NESTED = "nested"  # an object or an array of JSON
    TEXT = "text"
    QUOTED = "quoted"  # a number in quotes, in JSON


_NUMBERS = (CellKind.INTEGER, CellKind.HUGE, CellKind.FLOAT, CellKind.CODE)
_QUOTED = {**dict.fromkeys(_NUMBERS, CellKind.QUOTED), CellKind.BOOLEAN: CellKind.TEXT}
"""The kinds of quoted JSON cells: they can be times, but not numbers."""

_FORMS = re.compile(
    rf"(?P<code>[+-]?0[0-9]+)|(?P<integer>{cell_values.INTEGER})|(?P<float>{cell_values.FLOAT})"
    rf"|(?P<boolean>{cell_values.BOOLEAN})|(?P<date>{cell_values.DATE})|(?P<time>{cell_values.TIME})"
)


def kind_of(cell: str) -> CellKind:
    """
    >>> [kind_of(c).value for c in ("7", "007", "1e3", " 2026-01-31", "n/a", "-", "9" * 19)]
    ['integer', 'code', 'float', 'date', 'empty', 'text', 'huge']
    """
    form = _FORMS.fullmatch(cell) or _FORMS.fullmatch(cell.strip())
    if form is None:
        return CellKind.EMPTY if cell.strip().lower() in MISSING else CellKind.TEXT
    kind = CellKind(str(form.lastgroup))
    if kind is CellKind.INTEGER and len(cell) > _DIGITS and not -_BEYOND <= int(cell) < _BEYOND:
        return CellKind.HUGE
    return kind


@dataclass(frozen=True, slots=True)
class InferredColumn:
    """A column as the sample of its cells decides it. `cells` are those that aren't empty, and
    `misfits` those of them that don't fit the type; `numbers` look like numbers. `examples` are
    misfits, and of text some that aren't numbers."""

    name: str
    type: pa.DataType
    cells: int = 0
    misfits: int = 0
    numbers: int = 0
    examples: tuple[str, ...] = ()

    @property
    def mostly_numbers(self) -> bool:
        return self.numbers * 2 > self.cells


@dataclass(slots=True)
class CellSample:
    """Cells of a column; those of JSON may stand in quotes, or be objects and arrays."""

    cells: list[str] = field(default_factory=list)
    quoted: list[str] = field(default_factory=list)
    nested: list[object] = field(default_factory=list)

    def counts(self) -> dict[str, tuple[CellKind, int]]:
        """The kind and the number of each nonempty cell."""
        kinds = {}
        for cell, count in Counter(self.cells).items():
            kinds[cell] = (kind_of(cell), count)
        for cell, count in Counter(self.quoted).items():
            kind = kind_of(cell)
            kinds[cell] = (_QUOTED.get(kind, kind), count)
        for value in self.nested:
            kinds[str(value)] = (CellKind.NESTED, 1)
        return {cell: pair for cell, pair in kinds.items() if pair[0] is not CellKind.EMPTY}


def decide(
    name: str, sample: CellSample, *, exact: bool = False, time: bool = False
) -> InferredColumn:
    """The type that all cells have but a few; text if there is none, and null without cells.

    `exact`: all cells must have it. `time`: this is the column of the event time, and the type is
    that of a time if most of its cells are.
    """
    cells = sample.counts()
    counts: Counter[CellKind] = Counter()
    for kind, count in cells.values():
        counts[kind] += count
    total = counts.total()
    if not total:
        return InferredColumn(name, pa.null())
    few = _few(total, exact, time)
    candidates = _candidates(counts, _nested_type(sample.nested), time)
    type_, fitting = next(
        (pair for pair in candidates if total - sum(counts[kind] for kind in pair[1]) <= few),
        (pa.string(), frozenset({*_NUMBERS, CellKind.QUOTED})),
    )
    misfits = 0 if cell_values.is_text(type_) else total - sum(counts[kind] for kind in fitting)
    numbers = sum(counts[kind] for kind in (*_NUMBERS, CellKind.QUOTED))
    examples = [cell for cell, (kind, _) in cells.items() if kind not in fitting]
    return InferredColumn(name, type_, total, misfits, numbers, tuple(examples[:_EXAMPLES]))


def _few(total: int, exact: bool, time: bool) -> int:
    """How many cells may misfit."""
    if time:
        return (total - 1) // 2
    return 0 if exact or total < _ENOUGH else max(1, total // FEW)


def _candidates(
    counts: Counter[CellKind], nested: pa.DataType | None, time: bool
) -> Iterator[tuple[pa.DataType, frozenset[CellKind]]]:
    """Candidate types, the narrowest first, and the kinds of cells that fit them."""
    whole, moments = {CellKind.INTEGER, CellKind.CODE}, {CellKind.DATE, CellKind.TIME}
    named = counts[CellKind.CODE] > counts.total() // _FEW_CODES
    if time or not named:
        if time or not counts[CellKind.FLOAT]:
            yield pa.int64(), frozenset(whole)
        if counts[CellKind.FLOAT]:
            # Beside fractions a huge integer is a quantity; alone it is a name, which stays exact.
            huge = {CellKind.HUGE} if counts[CellKind.FLOAT] >= counts[CellKind.HUGE] else set()
            yield pa.float64(), frozenset({*whole, CellKind.FLOAT, *huge})
    if not counts[CellKind.TIME]:
        yield pa.date32(), frozenset({CellKind.DATE})
    yield MOMENT, frozenset(moments)
    if not time:
        yield pa.bool_(), frozenset({CellKind.BOOLEAN})
        if nested is not None:
            yield nested, frozenset({CellKind.NESTED})


def _nested_type(values: Sequence[object]) -> pa.DataType | None:
    """The type of objects and arrays of JSON, if they have one in common."""
    if not values:
        return None
    try:
        return pa.array(values).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def agree(columns: Sequence[InferredColumn], *, exact: bool = False) -> InferredColumn:
    """The type on which most of the files agree; text if there is none.

    Files without cells don't count. Integers beside fractions are fractions, and dates beside times
    are times: no cell of them fails to fit.
    """
    voting = [column for column in columns if not pa.types.is_null(column.type)]
    if not voting:
        return columns[0]
    votes = Counter(column.type for column in voting)
    for narrow, wide in ((pa.int64(), pa.float64()), (pa.date32(), MOMENT)):
        if votes[wide]:
            votes[wide] += votes.pop(narrow, 0)
    type_, most = votes.most_common(1)[0]
    if most * 2 <= votes.total() or (exact and most < votes.total()):
        type_ = pa.string()
    return _merged(type_, voting)


def _merged(type_: pa.DataType, columns: Sequence[InferredColumn]) -> InferredColumn:
    narrower = {pa.float64(): pa.int64(), MOMENT: pa.date32()}
    fitting = {type_, narrower.get(type_, type_)}
    text = cell_values.is_text(type_)
    misfits = 0 if text else sum(c.misfits if c.type in fitting else c.cells for c in columns)
    examples = [e for c in columns for e in c.examples if text or c.misfits or c.type != type_]
    return InferredColumn(
        columns[0].name,
        type_,
        sum(c.cells for c in columns),
        misfits,
        sum(c.numbers for c in columns),
        tuple(dict.fromkeys(examples))[:_EXAMPLES],
    )
