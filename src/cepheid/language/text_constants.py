"""Constants as words of a text: which they are, and which may be parameters instead.

Texts that differ in such constants alone are parsed alike. In a condition, that is a side of a
comparison, or a factor. Not so a number that says which element or how many, `LAST(b.x, 2)`, or an
amount of time, which has a unit; nor a window of zero, which is an error.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from decimal import Decimal
from typing import TypeAlias

Value: TypeAlias = int | float | str | tuple[int, ...] | tuple[str, ...]

INTEGER, FLOAT, STRING = "{i}", "{f}", "{s}"
"""What stands in the place of a constant, by its type."""
INTEGERS, STRINGS = "{i*}", "{s*}"
"""What stands in the place of a list of constants."""
MARK = re.compile(r"\{[ifs]\}")

_SPACE = frozenset(string.whitespace)
_LONGEST = 15
"""Digits of a number that is plain: it is exact as an integer and as a double."""
_EQUAL = frozenset({"=", "==", "<>", "!="})
_COMPARED = _EQUAL | {"<", "<=", ">", ">="}
_BEFORE = _COMPARED | {"*"}
_AFTER = _COMPARED | {"", "AND", "OR", ")", "*", "/", "+", "-"}
_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600),
    **dict.fromkeys(("day", "days"), 86_400),
    **dict.fromkeys(("week", "weeks"), 604_800),
}


def is_space(word: str) -> bool:
    return word[0] in _SPACE or word.startswith(("--", "/*"))


def text_of(word: str) -> str:
    return word[1:-1].replace(word[0] * 2, word[0])


def number_of(words: list[str]) -> int | float | None:
    """The number, if that is plain."""
    sign, digits = ("-", words[1:]) if words[:1] == ["-"] else ("", words)
    if len(digits) != 1 or not digits[0].isascii():
        return None
    whole, point, fraction = digits[0].partition(".")
    if not whole.isdigit() or len(whole) > _LONGEST:
        return None
    if not point:
        return int(sign + whole)
    return float(sign + digits[0]) if fraction.isdigit() and len(fraction) <= 25 else None


def kind_of(value: Value) -> str:
    return STRING if isinstance(value, str) else FLOAT if isinstance(value, float) else INTEGER


def without_constants(words: Sequence[str]) -> tuple[list[str], tuple[Value, ...]]:
    """The words of a condition with marks in the place of constants, and these constants.

    >>> without_constants(["sum", "(", "b", ".", "x", ")", " ", ">", " ", "2.5"])
    (['sum', '(', 'b', '.', 'x', ')', ' ', '>', ' ', '{f}'], (2.5,))
    """
    marked, constants = list(words), list[Value]()
    places = [at for at, word in enumerate(words) if not is_space(word)]
    said = ["", "", *(words[at].upper() for at in places), ""]
    brackets = 0
    for n, at in enumerate(places):
        earlier, before, word, after = said[n : n + 4]
        brackets += (word == "[") - (word == "]")
        negative = before == "-" and earlier in _BEFORE
        if brackets or not (before in _BEFORE or negative) or after not in _AFTER:
            continue
        value: Value | None = number_of([words[at]])
        if value is None and word[0] in "'\"" and before in _EQUAL:
            value = text_of(words[at])
        if value is not None:
            marked[at] = kind_of(value)
            constants.append(value)
    return marked, tuple(constants)


def without_amount(words: Sequence[str]) -> tuple[list[str], tuple[Value, ...]]:
    """The words of a window with a mark in the place of its amount, and the amount; of time with a
    unit, in seconds.

    >>> without_amount([" ", "2", " ", "hours", " "])
    ([' ', '{i}', ' ', 'seconds', ' '], (7200,))
    """
    places = [at for at, word in enumerate(words) if not is_space(word)]
    if not places or len(places) > 2 or number_of([words[places[0]]]) is None:
        return list(words), ()
    amount, factor, marked = Decimal(words[places[0]]), 1, list(words)
    if len(places) == 2:
        unit = words[places[1]].lower()
        if unit in ("event", "events"):
            return marked, ()
        if unit in _SECONDS:
            factor, marked[places[1]] = _SECONDS[unit], "seconds"
    amount *= factor
    if amount <= 0 or amount != int(amount):
        return list(words), ()
    marked[places[0]] = INTEGER
    return marked, (int(amount),)
