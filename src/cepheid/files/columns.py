"""What the columns of text files are, decided from samples of their cells.

As a person would: a column that is numbers but for a few cells is numbers, and those few don't fit.
Local runs, Spark and streams ask here, so a file has the same columns everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from cepheid.files import cells
from cepheid.files.cells import MISSING, MOMENT

FEW = 20
"""One cell in so many may not fit its column; where there are fewer but `_ENOUGH`, one."""

_ENOUGH = 4
_FEW_CODES = 1000
"""One number in so many may begin with a zero; if there are more, they are names: 007."""

_EXAMPLES = 3
_BEYOND = 2**63


class Kind(StrEnum):
    """What a cell looks like by itself."""

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


_NUMBERS = (Kind.INTEGER, Kind.HUGE, Kind.FLOAT, Kind.CODE)
_FORMS = re.compile(
    rf"(?P<code>[+-]?0[0-9]+)|(?P<integer>{cells.INTEGER})|(?P<float>{cells.FLOAT})"
    rf"|(?P<boolean>{cells.BOOLEAN})|(?P<date>{cells.DATE})|(?P<time>{cells.TIME})"
)


def kind_of(cell: str) -> Kind:
    """
    >>> [kind_of(c).value for c in ("7", "007", "1e3", " 2026-01-31", "n/a", "-", "9" * 19)]
    ['integer', 'code', 'float', 'date', 'empty', 'text', 'huge']
    """
    text = cell.strip()
    if text.lower() in MISSING:
        return Kind.EMPTY
    form = _FORMS.fullmatch(text)
    if form is None:
        return Kind.TEXT
    kind = Kind(str(form.lastgroup))
    if kind is Kind.INTEGER and not -_BEYOND <= int(text) < _BEYOND:
        return Kind.HUGE
    return kind


@dataclass(frozen=True, slots=True)
class Column:
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
    def looks_numeric(self) -> bool:
        """Whether it is text, though most of its cells are numbers."""
        return cells.is_text(self.type) and self.numbers * 2 > self.cells


@dataclass(frozen=True, slots=True)
class Sample:
    """Cells of a column. Those of JSON that stand in quotes can be times, but not numbers."""

    cells: Sequence[str] = ()
    quoted: Sequence[str] = ()
    nested: Sequence[object] = ()

    def kinds(self) -> list[tuple[Kind, str]]:
        found = [(kind_of(cell), cell) for cell in self.cells]
        for cell in self.quoted:
            kind = kind_of(cell)
            timed = kind in (Kind.DATE, Kind.TIME, Kind.EMPTY)
            found.append((kind if timed else Kind.TEXT, cell))
        return [*found, *((Kind.NESTED, str(value)) for value in self.nested)]


def decide(name: str, sample: Sample, *, exact: bool = False, time: bool = False) -> Column:
    """The type that all cells have but a few; text if there is none, and null without cells.

    `exact`: all cells must have it. `time`: this is the column of the event time, and the type is
    that of a time if most of its cells are.
    """
    kinds = [pair for pair in sample.kinds() if pair[0] is not Kind.EMPTY]
    counts = Counter(kind for kind, _ in kinds)
    total = counts.total()
    if not total:
        return Column(name, pa.null())
    few = _few(total, exact, time)
    candidates = _candidates(counts, _nested_type(sample.nested), time)
    type_, fitting = next(
        (pair for pair in candidates if total - sum(counts[kind] for kind in pair[1]) <= few),
        (pa.string(), frozenset(_NUMBERS)),
    )
    others = [cell for kind, cell in kinds if kind not in fitting]
    return Column(
        name,
        type_,
        total,
        0 if cells.is_text(type_) else len(others),
        sum(kind_of(cell) in _NUMBERS for cell in (*sample.cells, *sample.quoted)),
        tuple(dict.fromkeys(others))[:_EXAMPLES],
    )


def _few(total: int, exact: bool, time: bool) -> int:
    """How many cells may not fit."""
    if time:
        return (total - 1) // 2
    return 0 if exact or total < _ENOUGH else max(1, total // FEW)


def _candidates(
    counts: Counter[Kind], nested: pa.DataType | None, time: bool
) -> Iterator[tuple[pa.DataType, frozenset[Kind]]]:
    """Types that the cells might have, and the kinds of cells that do; the narrowest first."""
    whole, moments = {Kind.INTEGER, Kind.CODE}, {Kind.DATE, Kind.TIME}
    named = counts[Kind.CODE] > counts.total() // _FEW_CODES
    if time or not named:
        if time or not counts[Kind.FLOAT]:
            yield pa.int64(), frozenset(whole)
        if counts[Kind.FLOAT]:
            # Beside fractions a huge integer is a quantity; alone it is a name, which stays exact.
            huge = {Kind.HUGE} if counts[Kind.FLOAT] >= counts[Kind.HUGE] else set()
            yield pa.float64(), frozenset({*whole, Kind.FLOAT, *huge})
    if not counts[Kind.TIME]:
        yield pa.date32(), frozenset({Kind.DATE})
    yield MOMENT, frozenset(moments)
    if not time:
        yield pa.bool_(), frozenset({Kind.BOOLEAN})
        if nested is not None:
            yield nested, frozenset({Kind.NESTED})


def _nested_type(values: Sequence[object]) -> pa.DataType | None:
    """The type of objects and arrays of JSON, if they have one in common."""
    if not values:
        return None
    try:
        return pa.array(values).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def agree(columns: Sequence[Column], *, exact: bool = False) -> Column:
    """What most of the files say that a column is; text if they don't agree.

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


def _merged(type_: pa.DataType, columns: Sequence[Column]) -> Column:
    narrower = {pa.float64(): pa.int64(), MOMENT: pa.date32()}
    fitting = {type_, narrower.get(type_, type_)}
    text = cells.is_text(type_)
    misfits = 0 if text else sum(c.misfits if c.type in fitting else c.cells for c in columns)
    examples = [e for c in columns for e in c.examples if text or c.misfits or c.type != type_]
    return Column(
        columns[0].name,
        type_,
        sum(c.cells for c in columns),
        misfits,
        sum(c.numbers for c in columns),
        tuple(dict.fromkeys(examples))[:_EXAMPLES],
    )
