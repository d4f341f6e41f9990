"""A query's text taken apart: its label, its plain conditions, and the frame that is left.

Rules that people write differ in constants, and in which conditions they have. A *plain* condition
compares an attribute with a constant, and is one of those that WHERE joins with AND. Texts with the
same frame are parsed alike, and one of them tells whether all of them are queries: a plain
condition may be taken out, or put in, anywhere.

No text is parsed here, so all that is not as plain as most texts are stays in the frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from cepheid.language.names import CLAUSES, RESERVED

Value: TypeAlias = int | float | str
Frame: TypeAlias = tuple[str, tuple[str, ...], str]

_NAME = rf"(?!(?:{'|'.join(sorted(RESERVED))})\b)[^\W\d]\w*"
_NUMBER = r"-?[0-9]{1,15}(?:\.[0-9]{1,25})?"
_ODD = ('"', "`", ":", "--", "/*", ". ", ".\t", ".\n", " .", "\t.", "\n.")
_QUERY = re.compile(rf"\s*(?:INTO\s+({_NAME})\s+)?(PATTERN\s.*)", re.IGNORECASE | re.DOTALL)
_WHERE = re.compile(r"\s(?<!\bAS\s)WHERE\s")
_CLAUSE = re.compile(rf"(?:[^\w.\[]|(\d))(?=(?:{'|'.join(CLAUSES)})\b)")
_AND = re.compile(r"\sAND\s", re.IGNORECASE)
_LEFT = re.compile(r"(?<![^\W\d])(?:AND|OR|CASE)(?![^\W\d])", re.IGNORECASE)
_BETWEEN = re.compile(r"\sBETWEEN\s", re.IGNORECASE)
_INNERMOST = re.compile(r"\([^()]*\)")
_STRING = re.compile(r"'(\d+)'")
_COMPARED = re.compile(
    rf"\s*({_NAME}\.[^\W\d]\w*)\s*(<>|!=|<=|>=|==|=|<|>)\s*({_NUMBER}|'\d+')\s*", re.IGNORECASE
)
_RANGE = re.compile(rf"\s*({_NAME}\.[^\W\d]\w*)\s+BETWEEN\s+({_NUMBER})\s*", re.IGNORECASE)
_END = re.compile(rf"\s*({_NUMBER})\s*")
_OPERATORS = {"==": "=", "!=": "<>"}
INTEGER, FLOAT, STRING = "{i}", "{f}", "{s}"
"""What stands in the place of a constant, by its type."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A plain condition: its form, and the constants in it.

    >>> written("PATTERN A a WHERE a.x BETWEEN 1 AND 2.5").conditions
    (Condition(form='a.x BETWEEN {i} AND {f}', values=(1, 2.5)),)
    """

    form: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """`frame` is the text before WHERE, the conditions that are not plain, and the text after."""

    label: str | None
    frame: Frame
    conditions: tuple[Condition, ...] = ()

    @property
    def attributes(self) -> frozenset[str]:
        """What plain conditions read."""
        return frozenset(c.form.split(" ")[0].partition(".")[2] for c in self.conditions)

    def text(self, conditions: Iterable[str]) -> str:
        """The frame with other conditions."""
        head, others, tail = self.frame
        where = " AND ".join((*others, *conditions))
        return f"{head} WHERE {where} {tail}" if where else f"{head} {tail}"


def written(text: str) -> Written | None:
    """None if the text has quotes, comments or parameters that would have to be looked into."""
    masked, strings = text, list[str]()
    if "'" in text:
        parts = text.split("'")
        strings = parts[1::2]
        if not len(parts) % 2 or "" in parts[2:-1:2]:
            return None
        masked = "".join(f"{part}'{n}'" for n, part in enumerate(parts[:-1:2])) + parts[-1]
    query = _QUERY.fullmatch(masked)
    if query is None or not masked.isascii() or any(odd in masked for odd in _ODD):
        return None
    label, body = query.groups()
    found = _taken_apart(body, strings) or Written(None, (_spaced(body), (), ""))
    head, others, tail = found.frame
    again = (_restored(head, strings), tuple(_restored(other, strings) for other in others))
    return Written(label, (*again, _restored(tail, strings)), found.conditions)


def _taken_apart(body: str, strings: list[str]) -> Written | None:
    """None if the conditions can't be told apart."""
    upper = body.upper()
    wheres = [found.span() for found in _WHERE.finditer(upper)]
    if len(wheres) != 1 or "HAVING" in upper:
        return None
    ((begin, end),) = wheres
    clause = _CLAUSE.search(upper, end)
    if clause is not None and clause[1]:
        return None
    close = len(body) if clause is None else clause.end()
    conditions, others = list[Condition](), list[str]()
    pieces = iter(_AND.split(body[end:close]))
    for piece in pieces:
        found = _compared(piece, strings) if "'" in piece else _compared_numbers(piece)
        if found is None and _RANGE.fullmatch(piece):
            high = next(pieces, "")
            found = _between(piece, high)
            if found is None:
                others.append(f"{_spaced(piece)} AND {_spaced(high)}")
                continue
        if found is not None:
            conditions.append(found)
            continue
        while piece.count("(") > piece.count(")") and (more := next(pieces, None)) is not None:
            piece = f"{piece} AND {more}"
        if _BETWEEN.search(piece) or _LEFT.search(_outside(piece)):
            return None
        others.append(_spaced(piece))
    frame = (_spaced(body[:begin]), tuple(others), _spaced(body[close:]))
    return Written(None, frame, tuple(conditions))


def _outside(text: str) -> str:
    """Without what is in parentheses."""
    while "(" in text:
        shorter = _INNERMOST.sub("", text)
        if shorter == text:
            break
        text = shorter
    return text


def _compared(piece: str, strings: list[str]) -> Condition | None:
    found = _COMPARED.fullmatch(piece)
    if found is None:
        return None
    attribute, written_as, constant = found.groups()
    operator = _OPERATORS.get(written_as, written_as)
    value, kind = _value(constant, strings)
    if kind == STRING and operator not in ("=", "<>"):
        return None
    return Condition(f"{attribute} {operator} {kind}", (value,))


@lru_cache(maxsize=1 << 16)
def _compared_numbers(piece: str) -> Condition | None:
    """Rules repeat each other."""
    return _compared(piece, [])


@lru_cache(maxsize=1 << 16)
def _between(low: str, high: str) -> Condition | None:
    first, second = _RANGE.fullmatch(low), _END.fullmatch(high)
    if first is None or second is None:
        return None
    (least, one), (most, other) = _value(first[2], []), _value(second[1], [])
    return Condition(f"{first[1]} BETWEEN {one} AND {other}", (least, most))


def _value(constant: str, strings: list[str]) -> tuple[Value, str]:
    if constant.startswith("'"):
        return strings[int(constant[1:-1])], STRING
    return (float(constant), FLOAT) if "." in constant else (int(constant), INTEGER)


def _spaced(text: str) -> str:
    """With one space wherever there is any."""
    return " ".join(text.split())


def _restored(text: str, strings: list[str]) -> str:
    return _STRING.sub(lambda found: f"'{strings[int(found[1])]}'", text) if "'" in text else text
