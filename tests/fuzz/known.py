"""The queries and the clauses of SQL that this repository has, right and wrong ones, and the words
of both."""

from __future__ import annotations

import re
from functools import lru_cache

from lark import Lark
from lark.lexer import PatternStr
from lark.parsers.lalr_analysis import Rule

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.functions import FUNCTIONS, SYNONYMS
from cepheid.language.parser import _grammar
from tests.docs.blocks import ROOT, blocks

_FIELD = re.compile(r"^query +(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
_CLAUSE = re.compile(r"^clause +(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
_CLAUSE_WORD = re.compile(r"\{-|-\}|\w+|[^\w\s]")
_CASE_HEAD = re.compile(r"\A(?:\s*(?:schema|params) .*\n)*")

NAMES = ("A", "B", "C", "a", "b", "c", "d", "id", "x", "y", "price", "name", "ts", "type", "b2")
NUMBERS = ("0", "1", "2", "5", "10", "100", "3.5", ".5", "1e3", "9223372036854775807", "1e-300")

# Words for the terminals whose text is no constant.
_SAMPLES: dict[str, tuple[str, ...]] = {
    "SEQUENCE_OPERATOR": (";", "->", "=>"),
    "QUANTIFIER": ("+", "*", "?", "{2}", "{1,3}", "{2,}", "{0,1}"),
    "MODE": ("PREFIXES", "SUBSETS", "RUNS", "STRICT"),
    "SEQ_FUNCTION": ("SEQ",),
    "AND_FUNCTION": ("AND",),
    "OR_FUNCTION": ("OR",),
    "NOT_FUNCTION": ("NOT",),
    "ANY_FUNCTION": ("ANY",),
    "GROUP_BY": ("GROUP BY", "group by"),
    "TUMBLE": ("TUMBLE",),
    "HOP": ("HOP",),
    "SESSION": ("SESSION",),
    "RANGE": ("RANGE", "range"),
    "EVENTS": ("EVENTS", "event"),
    "EXTENT": ("RUNNING", "final"),
    "INTERVAL": ("INTERVAL", "interval"),
    "MOMENT": ("DATE", "timestamp"),
    "UNIT": ("units", "ms", "seconds", "min", "hours", "days", "weeks"),
    "COMPARISON": ("<>", "!=", "<=", ">=", "==", "=", "<", ">"),
    "_EQUALS": ("=", "=="),
    "SUM_OPERATOR": ("+", "-", "||"),
    "PRODUCT_OPERATOR": ("*", "/", "%"),
    "SIGN": ("+", "-"),
    "NUMBER": NUMBERS,
    "PERCENT": ("20%", "0%", "100.5%"),
    "STRING": ("'x'", "''", '"it"', "'2024-05-01 12:30:00'", "'a%_'"),
    "PARAMETER": (":p", ":q"),
    "NAME": NAMES,
    "FIELD": NAMES,
}


@lru_cache
def queries() -> tuple[str, ...]:
    """Every query of the corpus, the fixtures, the examples and the pages."""
    found: list[str] = []
    for folder in ("tests/corpus", "tests/rewrites/fixtures"):
        for path in sorted((ROOT / folder).glob("*.txt")):
            found += _FIELD.findall(path.read_text())
    for path in sorted((ROOT / "tests/diagnostics").rglob("*.txt")):
        for case in path.read_text().split("=" * 80 + "\n"):
            found.append(_CASE_HEAD.sub("", case).partition("\n---")[0])
    found += [path.read_text() for path in sorted((ROOT / "examples").rglob("*.cep"))]
    for page in sorted((ROOT / "docs").glob("*.md")):
        for block in blocks(str(page.relative_to(ROOT))):
            if block.kind.startswith(("cep", "sql")):
                written = _FIELD.findall(block.text) or [block.text.partition("\n---")[0]]
                found += written
    return tuple(dict.fromkeys(text.strip("\n") for text in found))


@lru_cache
def clauses() -> tuple[str, ...]:
    """What stands between the parentheses of MATCH_RECOGNIZE in the corpus."""
    found: list[str] = []
    for path in sorted((ROOT / "tests/row_patterns/corpus").glob("*.txt")):
        found += _CLAUSE.findall(path.read_text())
    return tuple(dict.fromkeys(found))


@lru_cache
def words_of_clauses() -> tuple[str, ...]:
    """What is in them, and the words of queries, which their expressions may have."""
    found = [word for clause in clauses() for word in _CLAUSE_WORD.findall(clause)]
    return tuple(dict.fromkeys((*found, *words())))


@lru_cache
def terminals() -> dict[str, tuple[str, ...]]:
    """The words that each terminal may be written as; those of a new keyword, too."""
    return {t.name: _words(t.name, t.pattern) for t in grammar().terminals}


def _words(name: str, pattern: object) -> tuple[str, ...]:
    if name in _SAMPLES:
        return _SAMPLES[name]
    assert hasattr(pattern, "value")
    if isinstance(pattern, PatternStr):
        return (pattern.value,)
    plain = re.sub(r"\\b|\(\?[^)]*\)", "", pattern.value)
    return (plain,) if plain.isalpha() else ()


@lru_cache
def words() -> tuple[str, ...]:
    """All of those, and the functions."""
    found = [word for terminal in terminals().values() for word in terminal]
    return tuple(dict.fromkeys((*found, *functions())))


def functions() -> tuple[str, ...]:
    return (*FUNCTIONS, *SYNONYMS, *AGGREGATES, "PREV", "ALL", "reduce")


def grammar() -> Lark:
    return _grammar()


@lru_cache
def rules() -> dict[str, tuple[Rule, ...]]:
    """The grammar's rules, without its repetitions and options, by what they make."""
    found: dict[str, list[Rule]] = {}
    for rule in grammar().rules:
        found.setdefault(rule.origin.name, []).append(rule)
    return {name: tuple(rules) for name, rules in found.items()}
