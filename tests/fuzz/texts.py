"""Texts to try, each made by a seed and a number alone.

derived   a sentence of the grammar, with a clause for everything
mutated   a query of this repository with a few words or characters changed
soup      words of the grammar in any order
nested    one construct inside itself, up to thousands of levels deep
numbers   a query with numbers that fit nowhere
unicode   a query with characters that nobody types
long      a query with thousands of names, conditions or steps, or a name of a million letters
statement SQL with a MATCH_RECOGNIZE clause, drawn or of this repository, some words changed
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tests.fuzz import known
from tests.fuzz.known import NAMES
from tests.row_patterns.clauses import draw_clause

_WORD = re.compile(r"\w+|\s+|->|=>|<>|<=|>=|\|\||.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Text:
    """A text, how it was made, and its number in the run."""

    number: int
    kind: str
    text: str


def make(seed: int, number: int) -> Text:
    """The text of this number; kinds that take long are rare."""
    chance = random.Random(f"{seed}/{number}")
    (kind,) = chance.choices(list(_KINDS), [weight for weight, _ in _KINDS.values()])
    return Text(number, kind, _KINDS[kind][1](chance))


# ── sentences of the grammar ──


@lru_cache
def _depths() -> dict[str, int]:
    """How deep the least sentence of each symbol is."""
    depths = dict.fromkeys(known.terminals(), 0)
    while True:
        found = {
            name: 1 + min(deepest)
            for name, rules in known.rules().items()
            if (
                deepest := [
                    max((depths[s.name] for s in rule.expansion), default=0)
                    for rule in rules
                    if all(s.name in depths for s in rule.expansion)
                ]
            )
        }
        if found.items() <= depths.items():
            return depths
        depths.update(found)


def _grow(symbol: str, budget: int, chance: random.Random, words: list[str], most: int) -> None:
    """A sentence of the symbol, not deeper than the budget if it can be, and short once there are
    so many words. Most operators are left out, or there would be one at every level."""
    if symbol in known.terminals():
        words.append(chance.choice(known.terminals()[symbol]))
        return
    rules = _by_depth(symbol)
    fitting = [rule for depth, rule in rules if depth < budget] if len(words) < most else []
    fitting = fitting or [rule for depth, rule in rules if depth == rules[0][0]]
    weights = [4 if len(rule.expansion) == 1 else 1 for rule in fitting]
    parts = [part.name for part in chance.choices(fitting, weights)[0].expansion]
    if parts[:2] == ["NAME", "LPAR"]:
        words.append(chance.choice(known.functions()))
        parts = parts[1:]
    for part in parts:
        _grow(part, budget - 1, chance, words, most)


@lru_cache
def _by_depth(symbol: str) -> tuple[tuple[int, known.Rule], ...]:
    """The rules of the symbol with the depth of their least sentences, the least first."""
    depths = _depths()
    found = [
        (max((depths[s.name] for s in rule.expansion), default=0), rule)
        for rule in known.rules()[symbol]
    ]
    return tuple(sorted(found, key=lambda pair: pair[0]))


_FRAMES = (
    "PATTERN A a ; B b WHERE {} WITHIN 10",
    "PATTERN A a ; B+ b ; C c WHERE {} WITHIN 10 EVENTS",
    "PATTERN A a -> B b* -> C c WHERE [id] AND {} WITHIN 5 minutes",
    "PATTERN A a ; !B b ; C c WHERE {} HAVING a.x < c.x WITHIN 10",
    "PATTERN A a & B b & (C c | D d) HAVING {} WITHIN 10",
    "PATTERN A a ; (B b ; C c)+ ; D d WHERE {} WITHIN 10",
    "PATTERN A a ; B{{1,3}} b SUBSETS ; D d WITHIN 10 RETURN {}, a.x",
    "PATTERN A a => B+ b UNTIL ({}) => C c WITHIN 10",
    "PATTERN {}",
    "PATTERN A a ; ({}) ; D d WITHIN 10",
    "PATTERN A a ; B b WHERE [id] WITHIN 10 GROUP BY {}, TUMBLE(1 hour) RETURN count(*) AS n",
    "FROM A a, B b WHERE {} WITHIN 10 GROUP BY a.x RETURN a.x, sum(b.y) AS s, max(a.y) AS m",
    "FROM A a GROUP BY a.x, HOP(5, 10) HAVING count(*) > 2 RETURN a.x, stddev({}) AS s LIMIT 3",
    "PATTERN A a ; !B b FOR 30 minutes ; C c WHERE [id] AND {}",
    "PATTERN A a ; B+ b WHERE reduce(b, 0.0, m -> {}) > 3 WITHIN 10 RETURN reduce(b, 1, n -> n)",
    "PATTERN A a -> B b WHERE {} WITHIN 10 AFTER MATCH SKIP FOR 5 minutes LIMIT 3 PER KEY",
)


def derived(chance: random.Random) -> str:
    """A query, or a condition or pattern that stands in one, of which it often names events."""
    words: list[str] = []
    budget, most = chance.randrange(12, 34), chance.choice((5, 10, 30, 100))
    frame = chance.choice(("{}", *_FRAMES))
    start = (
        "query" if frame == "{}" else "pattern" if "PATTERN {" in frame or "; ({})" in frame else ""
    )
    _grow(start or "expression", budget, chance, words, most)
    if start != "query":
        words = [chance.choice("abc") if w in NAMES and n % 2 else w for n, w in enumerate(words)]
    text = frame.format(" ".join(words))
    if chance.random() < 0.5 and "WITHIN" not in text:
        text += f" WITHIN {chance.randrange(1, 50)}"
    return text


# ── mutations ──


def _mutate(
    words: list[str], chance: random.Random, others: Sequence[str], vocabulary: Sequence[str]
) -> list[str]:
    """One change; `others` are texts whose words may follow."""
    if not words:
        return [chance.choice(vocabulary)]
    at, other = chance.randrange(len(words)), chance.randrange(len(words))
    low, high = sorted((at, other))
    match chance.randrange(8):
        case 0:
            return words[:at] + words[at + 1 :]
        case 1:
            return [*words[:at], words[at], *words[at:]]
        case 2:
            words[at], words[other] = words[other], words[at]
            return words
        case 3:
            return [*words[:at], chance.choice(vocabulary), *words[at + 1 :]]
        case 4:
            return [*words[:at], f" {chance.choice(vocabulary)} ", *words[at:]]
        case 5:
            return words[:high] + words[low:high] + words[high:]
        case 6:
            second = _WORD.findall(chance.choice(others))
            return words[:at] + second[chance.randrange(len(second) + 1) :]
        case _:
            names = [n for n, word in enumerate(words) if word in NAMES]
            for n in names[:1] and chance.sample(names, 1):
                words[n] = chance.choice(NAMES)
            return words


def mutated(chance: random.Random) -> str:
    words = _WORD.findall(chance.choice(known.queries()))
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        words = _mutate(words, chance, known.queries(), known.words())
    text = "".join(words)
    if chance.random() < 0.2 and text:
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice(["", chr(chance.randrange(32, 127))]) + text[at + 1 :]
    return text


def soup(chance: random.Random) -> str:
    words = chance.choices(known.words(), k=chance.randrange(1, 40))
    start = chance.choice(["", "PATTERN ", "PATTERN A a ; B b WHERE ", "PATTERN A a WITHIN 5 "])
    return start + chance.choice(["", " ", " "]).join(words)


# ── deep, large, odd ──

_NESTED: tuple[tuple[str, str, str, str, str], ...] = (
    # what stands before, then opening, middle and closing of the nest, and what stands after
    ("PATTERN ", "(", "A a", ")", " WITHIN 5"),
    ("PATTERN ", "!", "A a", "", " ; B b WITHIN 5"),
    ("PATTERN ", "SEQ(A, ", "B", ")", " WITHIN 5"),
    ("PATTERN ", "A ; (B | ", "C", ")", " WITHIN 5"),
    ("PATTERN ", "(A & ", "B", ")", " WITHIN 5"),
    ("PATTERN X x ; ", "(", "A ; B", ")+", " ; C WITHIN 5"),
    ("PATTERN ", "(A -> ", "B", ")", ""),
    ("PATTERN ", "NOT(", "A", ")", " ; B WITHIN 5"),
    ("PATTERN ", "", "A a", " @ 1 ms", " ; B b WITHIN 5"),
    ("PATTERN ", "", "A a", " \\ B", " WITHIN 5"),
    ("PATTERN A a ; B b WHERE ", "(", "a.x > b.x", ")", " WITHIN 5"),
    ("PATTERN A a ; B b WHERE ", "NOT ", "a.x > b.x", "", " WITHIN 5"),
    ("PATTERN A a ; B b WHERE a.x > ", "-", "b.x", "", " WITHIN 5"),
    ("PATTERN A a ; B b WHERE a.x > ", "1 + (", "b.x", ")", " WITHIN 5"),
    ("PATTERN A a ; B b WHERE a.x > ", "", "b.x", " + b.x", " WITHIN 5"),
    ("PATTERN A a ; B b WHERE ", "(a.x > b.x OR (b.x < 3 AND ", "TRUE", "))", " WITHIN 5"),
    ("PATTERN A a ; B b WHERE ", "", "a.x > 1", " AND a.x > b.x", " WITHIN 5"),
    ("PATTERN A a ; B b WHERE ", "", "a.x > 1", " OR a.x > b.x", " WITHIN 5"),
    ("PATTERN A a ; B b WHERE a.x ", "", "= b.x", " = a.x", " WITHIN 5"),
    ("PATTERN A a ; B b WHERE ", "abs(", "a.x", ")", " > b.x WITHIN 5"),
    (
        "PATTERN A a ; B b WHERE a.x > ",
        "CASE WHEN a.x > 1 THEN ",
        "b.x",
        " ELSE 2 END",
        " WITHIN 5",
    ),
    ("PATTERN A a ; B b WHERE a.x > ", "CASE WHEN ", "a.x > 1", " THEN TRUE END", " WITHIN 5"),
    ("PATTERN A a ; B b WHERE a.x IN (", "abs(", "1", ")", ") WITHIN 5"),
    ("PATTERN A a ; B b WHERE ", "a.x IN (1, (", "2", "))", " WITHIN 5"),
    ("PATTERN A a ; B b RETURN ", "(", "a.x", ")", " AS x"),
    ("PATTERN A a ; B b HAVING ", "NOT (a.x > b.x AND ", "TRUE", ")", " WITHIN 5"),
)


def nested(chance: random.Random) -> str:
    before, opening, middle, closing, after = chance.choice(_NESTED)
    depth = int(2 ** chance.uniform(1, 13))
    return before + opening * depth + middle + closing * depth + after


def _number(chance: random.Random) -> str:
    digits = "".join(
        chance.choices("0123456789", k=chance.choice((1, 3, 18, 19, 20, 40, 99, 1000)))
    )
    return chance.choice(
        (
            digits,
            f"{digits}.{digits[:5]}",
            f"0.{digits}",
            f"1e{digits[:4]}",
            f"1e-{digits[:4]}",
            f"{digits}%",
            str(2 ** chance.choice((31, 32, 53, 62, 63, 64, 127)) + chance.choice((-1, 0, 1))),
        )
    )


def numbers(chance: random.Random) -> str:
    words = _WORD.findall(chance.choice(known.queries()))
    places = [n for n, word in enumerate(words) if word.isdecimal()]
    for n in places:
        if chance.random() < 0.6:
            words[n] = _number(chance)
    text = "".join(words)
    match chance.randrange(5):
        case 0:
            text = text.replace("+ ", f"{{{_number(chance)},{_number(chance)}}} ", 1)
        case 1:
            text = text.replace("+ ", f"{{{_number(chance)}}} ", 1)
        case 2:
            unit = chance.choice(("weeks", "EVENTS", "us", "days"))
            text = text.partition(" WITHIN")[0] + f" WITHIN {_number(chance)} {unit}"
        case 3:
            text = text.replace("a.x", _number(chance), 1)
        case _:
            pass
    return text


_ODD = (
    *("\x00", "\ufeff", "\u200b", "\u202e", "\u2028", "\x85", "\u00a0", "\u3000", "\x1b[31m", "\r"),
    *("\ud800", "\udfff", "\ud83d\ude00", "😀", "e\u0301", "\u0301", "\u0663", "５", "²", "½", "Ⅷ"),
    *(
        "ß",
        "ſ",
        "K",
        "İ",
        "ı",
        "ﬁ",
        "שלום",
        "مرحبا",
        "ａ",
        "＋",
        "；",
        "‘",
        "’",
        "“",
        "−",
        "→",
        "≠",
    ),
    *("\U0010ffff", "\x7f", "\t", "\v", "\f", "\\", "`", "``", "'", "''", '"', "--", "/*", "*/"),
)


def odd_unicode(chance: random.Random) -> str:
    words = _WORD.findall(chance.choice(known.queries()))
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(words)) if words else 0
        odd = "".join(chance.choices(_ODD, k=chance.randrange(1, 3)))
        match chance.randrange(3):
            case 0:
                words[at : at + 1] = [odd]
            case 1:
                words[at:at] = [odd]
            case _:
                name = odd.replace("`", "``")
                words = [f"`{name}`" if w == words[at] else w for w in words]
    return "".join(words)


_PAIR = "PATTERN A a ; B b "
_LONG: tuple[tuple[str, str, str, str], ...] = (
    # what stands before, what is repeated (with its number for `#`), what between, and what after
    (f"{_PAIR} WHERE a.", "x" * 100, "", " > 1 WITHIN 5"),
    ("PATTERN ", "A" * 100, "", " a ; B b WITHIN 5"),
    (f"{_PAIR} WHERE a.name = '", "x" * 100, "", "' WITHIN 5"),
    (f"{_PAIR} WHERE a.name LIKE '", "%a", "", "' WITHIN 5"),
    ("PATTERN ", "A a#", " ; ", " WITHIN 5"),
    ("PATTERN ", "A a#", " -> ", " WITHIN 5"),
    ("PATTERN ", "A a#", " & ", " WITHIN 5"),
    ("PATTERN ", "A a#", " | ", " WITHIN 5"),
    ("PATTERN ", "(A a# | B b#)", " ; ", " WITHIN 5"),
    ("PATTERN A a ; ", "!B b#", " ; ", "; C c WITHIN 5"),
    ("PATTERN ", "A a# ; B+ b#", " ; ", " ; C WITHIN 5"),
    ("PATTERN ", "A a#", " ; ", " WHERE [id] WITHIN 5"),
    ("PATTERN (", "A a#", " | ", ") ; B WHERE [id] WITHIN 5"),
    ("PATTERN ANY(", "T#", ", ", ") a ; B b WITHIN 5"),
    (f"{_PAIR} WHERE ", "a.x > #", " AND ", " WITHIN 5"),
    (f"{_PAIR} WHERE ", "a.x > #", " OR ", " WITHIN 5"),
    (f"{_PAIR} WHERE ", "a.x = b.y#", " AND ", " WITHIN 5"),
    (f"{_PAIR} WHERE a.x IN (", "#", ", ", ") WITHIN 5"),
    (f"{_PAIR} WHERE concat(", "a.name", ", ", ") = 'x' WITHIN 5"),
    (f"{_PAIR} WHERE a.x > CASE ", "WHEN a.x = # THEN #", " ", " END WITHIN 5"),
    (f"{_PAIR} WITHIN 5 RETURN ", "a.x + # AS c#", ", ", ""),
    (f"{_PAIR} WITHIN 5 RETURN ", "a.x#", ", ", ""),
    ("PATTERN A a FROM ", "S#", ", ", ""),
    (f"{_PAIR} WITHIN 5 ", "-- a comment\n", "", ""),
    ("PATTERN A a", " " * 100, "", "; B b WHERE a.x > > 1"),
    ("", "\n", "", "PATTERN A a ; B b WHER a.x > 1"),
    (f"{_PAIR} WHERE ", "a.x > 1 AND nosuch(b.y)", " AND ", " WITHIN 5"),
    (f"{_PAIR} WHERE ", "zz.x > 1", " AND ", " WITHIN 5"),
    (f"{_PAIR} WHERE ", "'", "", " WITHIN 5"),
    (f"{_PAIR} WHERE ", "`", "", " WITHIN 5"),
    (f"{_PAIR} WHERE ", "/*", "", " WITHIN 5"),
    (f"{_PAIR} WHERE a.x > 5 ", "%", "", " WITHIN 5"),
    (f"{_PAIR} WHERE a.x > 5 ", "a.x a.x", " ", " WITHIN 5"),
)


def long(chance: random.Random) -> str:
    before, repeated, between, after = chance.choice(_LONG)
    times = int(2 ** chance.uniform(2, 13.3))
    return before + between.join(repeated.replace("#", str(n)) for n in range(times)) + after


# ── SQL ──


def statement(chance: random.Random) -> str:
    if chance.random() < 0.3:
        clause = draw_clause(chance)
    else:
        clause = chance.choice(known.clauses())
    words = _WORD.findall(clause)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 5))):
        words = _mutate(words, chance, known.clauses(), known.words_of_clauses())
    return f"SELECT * FROM t MATCH_RECOGNIZE ({''.join(words)})"


_KINDS: dict[str, tuple[float, Callable[[random.Random], str]]] = {
    "derived": (20, derived),
    "mutated": (45, mutated),
    "soup": (15, soup),
    "nested": (1, nested),
    "numbers": (8, numbers),
    "unicode": (10, odd_unicode),
    "long": (0.5, long),
    "statement": (12, statement),
}
