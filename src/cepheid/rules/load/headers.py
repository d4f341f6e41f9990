"""What a query's header says of its rules: comments above it, `-- @severity: high`.

The values go to the output with the matches of its rules, like the columns of a table. The sign
distinguishes them from other comments: `-- note: …` stays a comment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cepheid.engine.attribution.json_rows import RULE

_LINE = re.compile(r"^\s*--\s*@(?P<text>.*)$")
_FIELD = re.compile(r"(?P<name>[^\W\d]\w*)\s*:\s*(?P<value>.*\S)\s*$")
_WHOLE = re.compile(r"[+-]?\d{1,18}$")
_FRACTION = re.compile(r"[+-]?\d+\.\d+$")
_WORDS: Mapping[str, bool] = {"true": True, "false": False}

SIGN = "@"
"""A text without it has no header, and isn't searched for one."""


@dataclass(frozen=True)
class Header:
    """The values by name, and for each line that can't be read its number and why."""

    values: Mapping[str, object]
    wrong: tuple[tuple[int, str], ...] = ()


NOTHING = Header({})


def header_above(lines: Sequence[str], first: int) -> Header:
    """The header in the comments above a query, whose first line has this index.

    >>> header_above(["-- Many refusals.", "-- @severity: high", "-- @score: 7", "PATTERN …"], 3)
    Header(values={'severity': 'high', 'score': 7}, wrong=())
    """
    begin = first
    while begin and _is_comment(lines[begin - 1]):
        begin -= 1
    values: dict[str, object] = {}
    wrong = []
    for number in range(begin, first):
        line = _LINE.match(lines[number])
        if line is None:
            continue
        field = _FIELD.match(line["text"])
        if field is None:
            wrong.append((number + 1, f"`{line[0].strip()}` is no header: write `-- @name: value`"))
        elif field["name"] == RULE:
            wrong.append((number + 1, "a header can't name the rule: INTO does, or the file"))
        elif field["name"] in values:
            wrong.append((number + 1, f"the header has `{field['name']}` twice: keep one"))
        else:
            values[field["name"]] = _value(field["value"])
    return Header(values, tuple(wrong))


def stray_headers(lines: Sequence[str], firsts: Sequence[int]) -> list[int]:
    """The numbers of header lines that stand above no query: inside one, or after the last."""
    taken: set[int] = set()
    for first in firsts:
        at = first - 1
        while at >= 0 and _is_comment(lines[at]):
            taken.add(at)
            at -= 1
    return [n + 1 for n, line in enumerate(lines) if n not in taken and _LINE.match(line)]


def _is_comment(line: str) -> bool:
    text = line.strip()
    return not text or text.startswith("--")


def _value(text: str) -> object:
    """A number, true, false, or a text. In quotes everything is a text.

    >>> [_value(text) for text in ("3", "0.5", "true", "high", '"3"', "007")]
    [3, 0.5, True, 'high', '3', '007']
    """
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.lstrip("+-")[:1] == "0" and text.lstrip("+-")[1:2].isdigit():
        return text  # a code
    if _WHOLE.match(text):
        return int(text)
    if _FRACTION.match(text):
        return float(text)
    return _WORDS.get(text, text)
