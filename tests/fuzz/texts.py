"""Texts to try, each made by a seed and a number alone.

    derived   a sentence of the grammar, with a clause for everything
    mutated   a query of this repository with a few words or characters changed
    soup      words of the grammar in any order
    nested    one construct inside itself, up to thousands of levels deep
    numbers   a query with numbers that fit nowhere
    unicode   a query with characters that nobody types
    long      a query with thousands of names, conditions or steps, or a name of a million letters
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tests.fuzz import known
from tests.fuzz.known import NAMES

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


def _sentence(symbol: str, budget: int, chance: random.Random) -> list[str]:
    if symbol in known.terminals():
        return [chance.choice(known.terminals()[symbol])]
    depths, rules = _depths(), known.rules()[symbol]

    def depth(rule: known.Rule) -> int:
        return max((depths[s.name] for s in rule.expansion), default=0)

    fitting = [rule for rule in rules if depth(rule) < budget]
    least = [rule for rule in rules if depth(rule) == min(map(depth, rules))]
    rule = chance.choice(fitting or least)
    return [w for part in rule.expansion for w in _sentence(part.name, budget - 1, chance)]


def derived(chance: random.Random) -> str:
    """Names are drawn anew, so that conditions often name variables of the pattern."""
    words = _sentence("query", chance.randrange(12, 34), chance)
    text = " ".join(words[:400])
    if chance.random() < 0.5 and "WITHIN" not in text:
        text += f" WITHIN {chance.randrange(1, 50)}"
    return text


# ── mutations ──


def _mutate(words: list[str], chance: random.Random) -> list[str]:
    if not words:
        return [chance.choice(known.words())]
    at, other = chance.randrange(len(words)), chance.randrange(len(words))
    low, high = sorted((at, other))
    match chance.randrange(8):
        case 0:
            return words[:at] + words[at + 1 :]
        case 1:
            return words[:at] + [words[at]] + words[at:]
        case 2:
            words[at], words[other] = words[other], words[at]
            return words
        case 3:
            return [*words[:at], chance.choice(known.words()), *words[at + 1 :]]
        case 4:
            return [*words[:at], f" {chance.choice(known.words())} ", *words[at:]]
        case 5:
            return words[:high] + words[low:high] + words[high:]
        case 6:
            second = _WORD.findall(chance.choice(known.queries()))
            return words[:at] + second[chance.randrange(len(second) + 1) :]
        case _:
            names = [n for n, word in enumerate(words) if word in NAMES]
            for n in names[:1] and chance.sample(names, 1):
                words[n] = chance.choice(NAMES)
            return words


def mutated(chance: random.Random) -> str:
    words = _WORD.findall(chance.choice(known.queries()))
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        words = _mutate(words, chance)
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
    ("PATTERN A a ; B b WHERE a.x > ", "CASE WHEN a.x > 1 THEN ", "b.x", " ELSE 2 END", " WITHIN 5"),
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
    digits = "".join(chance.choices("0123456789", k=chance.choice((1, 3, 18, 19, 20, 40, 99, 1000))))
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
    *("ß", "ſ", "K", "İ", "ı", "ﬁ", "שלום", "مرحبا", "ａ", "＋", "；", "‘", "’", "“", "−", "→", "≠"),
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


_LONG: tuple[Callable[[int], str], ...] = (
    lambda n: f"PATTERN A a ; B b WHERE a.{'x' * 100 * n} > 1 WITHIN 5",
    lambda n: f"PATTERN {'A' * 100 * n} a ; B b WITHIN 5",
    lambda n: f"PATTERN A a ; B b WHERE a.name = '{'x' * 100 * n}' WITHIN 5",
    lambda n: f"PATTERN A a ; B b WHERE a.name LIKE '{'%a' * n}' WITHIN 5",
    lambda n: "PATTERN " + " ; ".join(f"A a{k}" for k in range(n)) + " WITHIN 5",
    lambda n: "PATTERN " + " -> ".join(f"A a{k}" for k in range(n)) + " WITHIN 5",
    lambda n: "PATTERN " + " & ".join(f"A a{k}" for k in range(n)) + " WITHIN 5",
    lambda n: "PATTERN " + " | ".join(f"A a{k}" for k in range(n)) + " WITHIN 5",
    lambda n: "PATTERN " + " ; ".join(f"(A a{k} | B b{k})" for k in range(n)) + " WITHIN 5",
    lambda n: "PATTERN A a ; " + " ; ".join(f"!B b{k}" for k in range(n)) + " ; C c WITHIN 5",
    lambda n: "PATTERN " + " ; ".join(f"A a{k} ; B+ b{k}" for k in range(n)) + " ; C WITHIN 5",
    lambda n: "PATTERN " + " ; ".join(f"A a{k}" for k in range(n)) + " WHERE [id] WITHIN 5",
    lambda n: "PATTERN (" + " | ".join(f"A a{k}" for k in range(n)) + ") ; B WHERE [id] WITHIN 5",
    lambda n: f"PATTERN ANY({', '.join(f'T{k}' for k in range(n))}) a ; B b WITHIN 5",
    lambda n: "PATTERN A a ; B b WHERE " + " AND ".join(f"a.x > {k}" for k in range(n)) + " WITHIN 5",
    lambda n: "PATTERN A a ; B b WHERE " + " OR ".join(f"a.x > {k}" for k in range(n)) + " WITHIN 5",
    lambda n: "PATTERN A a ; B b WHERE " + " AND ".join(f"a.x = b.y{k}" for k in range(n)) + " WITHIN 5",
    lambda n: f"PATTERN A a ; B b WHERE a.x IN ({', '.join(map(str, range(n)))}) WITHIN 5",
    lambda n: f"PATTERN A a ; B b WHERE concat({', '.join(['a.name'] * n)}) = 'x' WITHIN 5",
    lambda n: "PATTERN A a ; B b WHERE a.x > CASE "
    + " ".join(f"WHEN a.x = {k} THEN {k}" for k in range(n))
    + " END WITHIN 5",
    lambda n: "PATTERN A a ; B b WITHIN 5 RETURN " + ", ".join(f"a.x + {k} AS c{k}" for k in range(n)),
    lambda n: "PATTERN A a ; B b WITHIN 5 RETURN " + ", ".join(f"a.x{k}" for k in range(n)),
    lambda n: "PATTERN A a FROM " + ", ".join(f"S{k}" for k in range(n)),
    lambda n: "PATTERN A a ; B b WITHIN 5 " + "-- a comment\n" * n,
    lambda n: "PATTERN A a" + " " * 100 * n + "; B b WHERE a.x > > 1",
    lambda n: "\n" * n + "PATTERN A a ; B b WHER a.x > 1",
    lambda n: "PATTERN A a ; B b WHERE " + "a.x > 1 AND nosuch(b.y) AND " * n + "TRUE WITHIN 5",
    lambda n: "PATTERN A a ; B b WHERE " + "zz.x > 1 AND " * n + "TRUE WITHIN 5",
    lambda n: "PATTERN A a ; B b WHERE " + "'" * n + " WITHIN 5",
    lambda n: "PATTERN A a ; B b WHERE " + "`" * n + " WITHIN 5",
    lambda n: "PATTERN A a ; B b WHERE " + "/*" * n + " WITHIN 5",
    lambda n: "PATTERN A a ; B b WHERE a.x > 5 " + "%" * n + " WITHIN 5",
)  # fmt: skip


def long(chance: random.Random) -> str:
    return chance.choice(_LONG)(int(2 ** chance.uniform(2, 13.3)))


_KINDS: dict[str, tuple[float, Callable[[random.Random], str]]] = {
    "derived": (20, derived),
    "mutated": (45, mutated),
    "soup": (15, soup),
    "nested": (1, nested),
    "numbers": (8, numbers),
    "unicode": (10, odd_unicode),
    "long": (0.5, long),
}
