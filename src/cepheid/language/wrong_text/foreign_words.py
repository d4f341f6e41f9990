"""What to write instead of words and operators of SQL, Flink, Esper, Siddhi and EQL."""

from __future__ import annotations

from itertools import pairwise

from cepheid.language.build_expression import UNIT_WORDS
from cepheid.language.names import CLAUSES, RESERVED
from cepheid.language.words import Word

_DISTINCT_INSIDE = "DISTINCT stands in an aggregate, as in `count(DISTINCT b.x)`"
FIRST = {
    "EVERY": "write PATTERN instead: every match is found",
    "SEQUENCE": "write PATTERN and `;` between the steps: `PATTERN A a ; B b WHERE [user]`",
    "#": "a comment begins with `--`",
}
"""Where a query begins."""

STRANGE = {
    "#": FIRST["#"],
    "$": "a number has no unit, and a parameter is written as `:name`",
    "^": "write `power(a.x, 2)`",
}
"""Characters that no part of the language uses."""

_NO_ROWS = "a match is one row; `RETURN collect(b.x)` also lists what a closure took"
_EARLY = {
    "EMIT": "RETURN says what a match gives, as in `RETURN a.x, b.x`",
    "OVER": "an aggregate is over the events of a closure, and `[user]` in WHERE keeps users apart",
    "TUMBLING": "windows beside each other are a group: `GROUP BY TUMBLE(10 minutes)`",
    "INSERT": "INTO stands first, before PATTERN",
    "FILTER": "CASE chooses the values: `sum(CASE WHEN b.y > 1 THEN b.x END)`",
    "ESCAPE": "a backslash stands before a `%` or `_` that is meant itself",
}
"""Words that look like a keyword misspelled, or like a name."""

IN_PATTERN = {
    "AND": "write `&` between patterns",
    "OR": "write `|` between patterns",
    "NOT": "write `!` before the pattern",
    "THEN": "write `;` between the steps of a sequence",
    ",": "write `;` between the steps of a sequence, or `SEQ(A a, B b)`",
    **dict.fromkeys(
        ("LIKE", "ILIKE", "RLIKE", "CONTAINS", "BETWEEN", "IN", "IS"),
        "conditions stand in WHERE, as in `WHERE a.x LIKE 'b%'`",
    ),
    **dict.fromkeys(("FOLLOWED", "FOLLOWEDBY"), "write `;` between the steps of a sequence"),
    "||": "write `|` between patterns",
    "&&": "write `&` between patterns",
    "~": "write `!` before the pattern",
    "<>": "write `!` before the pattern",
}
IN_CONDITION = {
    "=>": "did you mean `>=`?",
    "=<": "did you mean `<=`?",
    "&&": "did you mean `AND`?",
    "&": "did you mean `AND`?",
    "|": "did you mean `OR`?",
    "!": "did you mean `NOT`?",
    **dict.fromkeys(
        ("REGEXP", "REGEXP_LIKE", "MATCHES", "SIMILAR", "GLOB"),
        "RLIKE compares with a regular expression, as in `a.name RLIKE '^x'`",
    ),
}
CLAUSES_OF_SQL = {
    "SELECT": "RETURN says what a match gives, as in `RETURN a.x, b.x`",
    "MEASURES": "RETURN says what a match gives, as in `RETURN a.x, b.x`",
    "DEFINE": "WHERE says which events are taken, as in `WHERE b.x > a.x`",
    "PARTITION": "write `[user]` in WHERE: events then match only events of the same `user`",
    **dict.fromkeys(("TOP", "FETCH"), "LIMIT keeps the first matches, as in `LIMIT 3`"),
    "ORDER": "events are in the order of their times, and matches in the order of their ends",
    "UNION": "write `|` between patterns of which any may match",
    "GROUP": "write GROUP BY, as in `GROUP BY a.x`",
    "JOIN": "streams are joined by the pattern: `A a & B b WHERE a.id = b.id WITHIN 1 minute`",
}
UNITS_OF_OTHERS = {
    "m": "minutes",
    "d": "days",
    **dict.fromkeys(("w", "wk", "wks"), "weeks"),
    **dict.fromkeys(("month", "months", "mon"), "30 days"),
    **dict.fromkeys(("year", "years", "y"), "365 days"),
}


def foreign(before: list[Word], here: Word, in_pattern: bool) -> str | None:
    """What to write instead of a word that would otherwise be taken for a misspelling, or that
    stands after a word that was taken for a name."""
    keywords = [word.keyword for word in before]
    kinds = [word.kind for word in before]
    last = before[-1] if before else here
    match (last.keyword or last.text, here.keyword or here.text):
        case _ if "EVERY" in keywords[-2:] and in_pattern:
            return "leave out `every`: every match is found"
        case _, "=" | "==" if in_pattern or [k for k in keywords if k in CLAUSES] == ["FROM"]:
            return "a type comes first and then its name, as in `PATTERN A a ; B b`"
        case _ if in_pattern and (here.keyword == "AS" or last.keyword == "AS" or _named(here)):
            return "a type comes first and then its name, as in `PATTERN A a ; B b`"
        case _, "?" | "@" if not in_pattern:
            return "write a parameter as `:name`"
        case "*", "*" if not in_pattern:
            return "write `power(a.x, 2)`"
        case "WITHIN" | "FOR" | "@", _ if here.keyword == "INTERVAL" or here.kind == "string":
            return "write a number and a unit, as in `10 minutes`"
        case unit, _ if unit.lower() in UNIT_WORDS and kinds[-2:-1] == [here.kind] == ["number"]:
            return "a time is one number and one unit, as in `90 minutes`"
        case _, "ONE" | "ALL" if "PATTERN" in keywords:
            return _NO_ROWS
        case _, "IS" if not in_pattern:
            return "a condition stands in parentheses before it: `(a.x > 1) IS NULL`"
        case "IS", "TRUE" | "FALSE" as truth if not in_pattern:
            return f"write `IS NOT DISTINCT FROM {truth}`"
        case "NOT", "TRUE" | "FALSE" as truth if keywords[-2:-1] == ["IS"]:
            return f"write `IS DISTINCT FROM {truth}`"
        case "IS" | "NOT", "UNKNOWN" if "IS" in keywords[-2:]:
            return f"write `{last.keyword.replace('NOT', 'IS NOT')} NULL`"
        case "<=", ">" if last.span.end == here.span.start:
            return "write `a.x IS NOT DISTINCT FROM b.x`"
        case "DISTINCT", _ if here.kind == "word":
            return _DISTINCT_INSIDE
        case _, "DISTINCT" if not in_pattern:
            return "DISTINCT stands first in the parentheses: `count(DISTINCT b.x)`"
        case _ if ("(", "SELECT") in pairwise(w.keyword or w.text for w in before):
            return "a condition has no subquery: give the values, as in `a.x IN :list`"
        case _, "BY" if keywords[-2:-1] == ["LIMIT"]:
            return "write PER KEY: `[user]` in WHERE says what the key is"
        case _, ":" if not in_pattern:
            return "a value is converted by `CAST(a.x AS int)`"
        case _, keyword:
            return _EARLY.get(keyword) or CLAUSES_OF_SQL.get(keyword)


def beside(before: list[Word], here: Word, in_pattern: bool) -> str | None:
    """What the words before say of this one."""
    last = before[-1] if before else None
    match (last.keyword or last.text if last else "", here.keyword or here.text):
        case ("RLIKE" | "LIKE" | "ILIKE" as operator, _) if here.kind in ("word", "string"):
            return f"what is compared stands first, as in `a.name {operator} 'x'`"
        case "+" | "*" | "?" | "}", "?":
            return "there is no reluctant form: with `B+ b PREFIXES` shorter groups match, too"
        case "~", "*":
            return "for any case write `~ '(?i)x'`, or ILIKE with `%` and `_`"
        case "PER", _:
            return "write PER KEY: `[user]` in WHERE says what the key is"
        case "=", "~":
            return "leave out the `=`: `a.name ~ '^x'`"
        case "PARTITION", "BY":
            return CLAUSES_OF_SQL["PARTITION"]
        case "SKIP", _ if here.kind == "number":
            return "a time stands after FOR, as in `SKIP FOR 10 minutes`"
        case _, "SKIP":
            return "write AFTER MATCH before it"
        case "IN", "[":
            return "values stand in parentheses, as in `a.x IN (1, 2)`"
        case _, "[" | "(" if in_pattern and _is_name(last):
            return "conditions stand in WHERE, as in `WHERE a.x = 1`"
        case _, "[" if not in_pattern and _is_name(last):
            return "`a.tags[0]` reads an array, and `FIRST(b.x)` and `LAST(b.x)` a closure"
        case _ if in_pattern and _is_name(last) and _is_name(here):
            return "write `;` between the steps of a sequence, as in `A a ; B b`"
        case _:
            pass
    if ("RETURN", "DISTINCT") in pairwise(word.keyword for word in before):
        return _DISTINCT_INSIDE
    return None


def _named(word: Word) -> bool:
    """`:login`, which the words take for a parameter."""
    return word.kind == "number" and word.text.startswith(":")


def _is_name(word: Word | None) -> bool:
    return word is not None and word.kind == "word" and word.keyword not in RESERVED
