"""Texts of queries in which some constants are marked: these may become columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class MarkedValue:
    """A value, and the name of what it is compared with."""

    value: str | int | float
    name: str


Piece: TypeAlias = str | MarkedValue
Wording: TypeAlias = tuple[Piece, ...]


def literal(value: str | int | float | bool) -> str:
    """
    >>> literal("it's"), literal(5), literal(True)
    ("'it''s'", '5', 'TRUE')
    """
    match value:
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bool():
            return "TRUE" if value else "FALSE"
        case _:
            return f"{value:.15f}".rstrip("0") if "e" in repr(value) else repr(value)


def joined(separator: str, wordings: Iterable[Wording]) -> Wording:
    """The wordings one after another, with the separator between them."""
    pieces: list[Piece] = []
    for number, wording in enumerate(wordings):
        if number:
            pieces.append(separator)
        pieces.extend(wording)
    return tuple(pieces)


def constants(wording: Wording) -> tuple[MarkedValue, ...]:
    return tuple(piece for piece in wording if isinstance(piece, MarkedValue))


def text(wording: Wording, parameters: Sequence[str | None] = ()) -> str:
    """The text; a constant for which there is a parameter's name is that parameter."""
    names = iter(parameters)
    return "".join(
        piece if isinstance(piece, str) else _constant(piece, next(names, None))
        for piece in wording
    )


def _constant(constant: MarkedValue, parameter: str | None) -> str:
    return literal(constant.value) if parameter is None else f":{parameter}"


def shape(wording: Wording) -> tuple[str | type, ...]:
    """What rules have in common that differ only in their constants: texts, and types of values."""
    return tuple(piece if isinstance(piece, str) else type(piece.value) for piece in wording)
