"""A query's text taken apart by its words: its label, its plain conditions, and the frame that is
left.

Rules that people write differ in constants, and in which conditions they have. A *plain* condition
compares an attribute with a constant, and is one of those that WHERE joins with AND. Texts with the
same frame are parsed alike, and one of them tells whether all of them are queries: a plain
condition may be taken out, or put in, anywhere.

Parsing 100,000 rules takes minutes, and cutting them into words takes seconds. What can't be told
from words alone stays in the frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from cepheid.language.names import CLAUSES, RESERVED
from cepheid.language.text_constants import (
    INTEGERS,
    MARK,
    STRINGS,
    Value,
    is_space,
    kind_of,
    number_of,
    text_of,
    without_amount,
    without_constants,
)
from cepheid.language.words import lexemes
from cepheid.language.wrong_text.size import MOST_WORDS

Frame: TypeAlias = tuple[str, tuple[str, ...], str]

_CLAUSES = frozenset(CLAUSES)
_ENDINGS = _CLAUSES - {"WHERE"}
_MARKS = _CLAUSES | {"AND", "OR", "CASE", "BETWEEN", "(", ")", "[", "]"}
"""What says where conditions begin and end."""

_OPERATORS = {
    **{operator: operator for operator in ("=", "<>", "<=", ">=", "<", ">")},
    "==": "=",
    "!=": "<>",
}
_UNCLOSED = ("'", '"', "`", "/*")


@dataclass(frozen=True, slots=True)
class PlainCondition:
    """Its form, and the constants in it.

    >>> outline("PATTERN A a WHERE a.x BETWEEN 1 AND 2.5").conditions
    (PlainCondition(form='a.x BETWEEN {i} AND {f}', values=(1, 2.5)),)
    >>> outline("PATTERN A a WHERE a.s NOT IN ('u', 'v')").conditions
    (PlainCondition(form='a.s NOT IN {s*}', values=(('u', 'v'),)),)
    """

    form: str
    values: tuple[Value, ...]

    @property
    def is_listed(self) -> bool:
        """Whether it compares with a list."""
        return isinstance(self.values[0], tuple)


@dataclass(frozen=True, slots=True)
class Outline:
    """`frame` is the text before WHERE, the conditions that are not plain, and the text after,
    with marks such as `{i}` in the place of the `constants` of conditions and of the window."""

    label: str | None
    frame: Frame
    conditions: tuple[PlainCondition, ...] = ()
    constants: tuple[Value, ...] = ()

    @property
    def attributes(self) -> frozenset[str]:
        """What plain conditions read."""
        return frozenset(c.form.split(" ")[0].partition(".")[2] for c in self.conditions)

    def text(self, conditions: Iterable[str], constants: Iterable[str]) -> str:
        """The frame with other conditions, and these texts in the place of its constants."""
        texts = iter(constants)
        head, others, tail = self.frame
        head = _filled(head, texts)
        kept = [_filled(other, texts) for other in others]
        where = " AND ".join((*kept, *conditions))
        tail = _filled(tail, texts)
        return f"{head} WHERE {where} {tail}" if where else f"{head} {tail}"


def _filled(part: str, texts: Iterator[str]) -> str:
    return MARK.sub(lambda mark: next(texts), part)


def outline(text: str) -> Outline | None:
    """None if the text doesn't begin as a query does, has parameters, or is odd or long enough that
    the parser should decide."""
    words = lexemes(text)
    begin = _label(words)
    if begin is None or not _is_usual(text, words):
        return None
    label, body = begin
    apart = _taken_apart(label, body)
    if apart is not None:
        return apart
    head, constants = _clauses(body)
    return Outline(label, (head, (), ""), (), constants)


def _label(words: list[str]) -> tuple[str | None, list[str]] | None:
    """What INTO calls the query, and the words from PATTERN on."""
    at = is_space(words[0]) if words else 0
    match [word.upper() for word in words[at : at + 5]]:
        case ["PATTERN", *_]:
            return None, words[at:]
        case ["INTO", space, label, other, "PATTERN"] if is_space(space) and is_space(other):
            named = label[0].isalpha() or label[0] == "_"
            return (words[at + 2], words[at + 4 :]) if named and label not in RESERVED else None
        case _:
            return None


def _is_usual(text: str, words: list[str]) -> bool:
    """Whether no word is a parameter, never closed, or has letters whose upper case is not that of
    the lexer."""
    if len(words) > MOST_WORDS:
        return False
    if ":" in text and any(word[0] == ":" for word in words):
        return False
    if any(mark in text and mark in words for mark in _UNCLOSED) or MARK.search(text):
        return False
    return text.isascii() or all(word.isascii() for word in words if word[0] not in "'\"")


def _taken_apart(label: str | None, words: list[str]) -> Outline | None:
    """None if the conditions can't be separated."""
    marks = _marks(words)
    wheres = [at for at, mark in marks if mark == "WHERE"]
    if len(wheres) != 1:
        return None
    where = wheres[0]
    pieces, begin, end = list[list[str]](), where + 1, len(words)
    level, between = 0, False
    for at, mark in marks:
        if at <= where:
            continue
        if mark in ("(", "["):
            level += 1
        elif mark in (")", "]"):
            level -= 1
        elif level:
            continue
        elif mark in _ENDINGS:
            end = at
            break
        elif mark == "BETWEEN":
            between = True
        elif mark == "AND" and between:
            between = False
        elif mark == "AND":
            pieces.append(words[begin:at])
            begin = at + 1
        else:  # OR, CASE: their ANDs join other things
            return None
    pieces.append(words[begin:end])
    conditions, others = list[PlainCondition](), list[str]()
    head, constants = _clauses(words[:where])
    for piece in pieces:
        plain = _plain("".join(piece))
        if plain is None:
            marked, more = without_constants(piece)
            others.append(_spaced(marked))
            constants += more
        else:
            conditions.append(plain)
    tail, more = _clauses(words[end:])
    return Outline(label, (head, tuple(others), tail), tuple(conditions), constants + more)


def _clauses(words: list[str]) -> tuple[str, tuple[Value, ...]]:
    """Clauses with marks for constants in HAVING and in WITHIN, and these constants. Of groups, a
    parameter is no column, so those of GROUP BY stay."""
    clauses = [(at, mark) for at, mark in _marks(words) if mark in _CLAUSES]
    if any(mark == "GROUP" for _, mark in clauses):
        return _spaced(words), ()
    marked, constants = list(words), tuple[Value, ...]()
    for (at, mark), (end, _) in pairwise([*clauses, (len(words), "")]):
        piece = words[at + 1 : end]
        match mark:
            case "HAVING":
                piece, more = without_constants(piece)
            case "WITHIN":
                piece, more = without_amount(piece)
            case _:
                continue
        marked[at + 1 : end] = piece
        constants += more
    return _spaced(marked), constants


def _marks(words: list[str]) -> list[tuple[int, str]]:
    """The words that say where conditions are, and are no names."""
    upper = [word.upper() for word in words]
    marks = [at for at, word in enumerate(upper) if word in _MARKS]
    return [(at, upper[at]) for at in marks if not _is_name(upper, at)]


def _is_name(upper: list[str], at: int) -> bool:
    """Whether a mark is the name of an attribute (`a.and`, `[from]`) or a variable (`AS where`).
    Nor does WITHIN begin a clause in `(a, b) OCCURS WITHIN 5`."""
    before = _before(upper, at)
    match upper[before]:
        case "." | "[":
            return upper[at].isalpha()
        case "AS":
            return upper[at] == "WHERE"
        case "OCCURS":
            return upper[at] == "WITHIN" and upper[_before(upper, before)] == ")"
        case _:
            return False


def _before(words: list[str], at: int) -> int:
    """The place of the word before this one."""
    return at - 2 if at > 1 and is_space(words[at - 1]) else max(at - 1, 0)


def _spaced(words: Sequence[str]) -> str:
    """As a text, with one space wherever there is any, or a comment."""
    return "".join([" " if is_space(word) else word for word in words]).strip()


# ── plain conditions ──


@lru_cache(maxsize=1 << 16)
def _plain(text: str) -> PlainCondition | None:
    """Rules repeat each other, so the same texts come again."""
    match [word for word in lexemes(text) if not is_space(word)]:
        case [variable, ".", *rest] if len(rest) > 1 and _are_names(variable, rest[0]):
            attribute, operator, words = _attribute(rest)
            if (listed := _listed(operator.upper(), words)) is not None:
                return PlainCondition(f"{variable}.{attribute} {listed[0]}", (listed[1],))
            constants = _constants(operator.upper(), words)
        case _:
            return None
    if constants is None:
        return None
    kinds = [kind_of(value) for value in constants]
    if operator.upper() == "BETWEEN":
        return PlainCondition(
            f"{variable}.{attribute} BETWEEN {kinds[0]} AND {kinds[1]}", tuple(constants)
        )
    named = _OPERATORS.get(operator, "LIKE")
    return PlainCondition(f"{variable}.{attribute} {named} {kinds[0]}", tuple(constants))


def _attribute(words: list[str]) -> tuple[str, str, list[str]]:
    """An attribute, which may be a field of a struct; the operator behind it; and what follows."""
    at = 1
    while len(words) > at + 2 and words[at] == "." and words[at + 1].isidentifier():
        at += 2
    return "".join(words[:at]), words[at], words[at + 1 :]


def _are_names(variable: str, attribute: str) -> bool:
    return variable.isidentifier() and attribute.isidentifier() and variable.upper() not in RESERVED


def _constants(operator: str, words: list[str]) -> list[Value] | None:
    """The constants that an attribute is compared with."""
    if operator == "BETWEEN":
        at = next((at for at, word in enumerate(words) if word.upper() == "AND"), 0)
        ends = [number_of(words[:at]), number_of(words[at + 1 :])]
        return [end for end in ends if end is not None] if None not in ends else None
    if operator == "LIKE":
        return [text_of(words[0])] if len(words) == 1 and words[0][0] in "'\"" else None
    if operator not in _OPERATORS:
        return None
    if len(words) == 1 and words[0][0] in "'\"":
        # The order of texts is that of moments, if the column is one.
        return [text_of(words[0])] if _OPERATORS[operator] in ("=", "<>") else None
    number = number_of(words)
    return None if number is None else [number]


def _listed(
    operator: str, words: list[str]
) -> tuple[str, tuple[int, ...] | tuple[str, ...]] | None:
    """IN or NOT IN with a list of texts, or of whole numbers: its form, and the list."""
    if operator == "NOT" and words[0].upper() == "IN":
        operator, words = "NOT IN", words[1:]
    if operator not in ("IN", "NOT IN") or len(words) < 3 or (words[0], words[-1]) != ("(", ")"):
        return None
    inner = words[1:-1]
    if inner[1::2] != [","] * (len(inner) // 2) or not len(inner) % 2:
        return None
    texts = tuple(text_of(word) for word in inner[::2] if word[0] in "'\"")
    if len(texts) == len(inner[::2]):
        return f"{operator} {STRINGS}", texts
    numbers = tuple(n for n in (number_of([word]) for word in inner[::2]) if isinstance(n, int))
    return (f"{operator} {INTEGERS}", numbers) if len(numbers) == len(inner[::2]) else None
