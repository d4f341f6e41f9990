"""What to say when the text is not a query.

Lark knows where it stopped and which terminals would have let it continue. That is turned into
what a person would say: the parenthesis that is never closed, the word that was misspelled (it
may be the one before, taken for an alias), the unit that doesn't exist.

    CEP101 nothing there         CEP107 quote never closed      CEP113 one mode too many
    CEP102 no PATTERN            CEP108 strange character       CEP114 OCCURS needs variables
    CEP103 unexpected word       CEP109 unknown unit            CEP115 number out of range
    CEP104 ends too early        CEP110 impossible window       CEP116 nested too deeply
    CEP105 bracket never closed  CEP111 impossible quantifier   CEP117 too many words
    CEP106 bracket never opened  CEP112 clause given twice      CEP118 too many events
    CEP119 AS or FROM in a function that has none
    CEP120 impossible LIMIT      CEP121 one window too many     CEP125 impossible index
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

from lark.exceptions import UnexpectedInput, UnexpectedToken

from cepheid.language.ast import Span, Unit
from cepheid.language.build_expression import UNIT_WORDS
from cepheid.language.diagnostics import nearest
from cepheid.language.lark_tree import Mistake
from cepheid.language.names import CLAUSES, RESERVED
from cepheid.language.words import UNCLOSED, Word, words_of
from cepheid.language.wrong_text.foreign_words import (
    CLAUSES_OF_SQL,
    FIRST,
    IN_CONDITION,
    IN_PATTERN,
    STRANGE,
    UNITS_OF_OTHERS,
    beside,
    foreign,
)

_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_FORGOTTEN_QUOTE = {"'": "string", '"': "string", "`": "quoted name", "/*": "comment"}
_SURELY = 0.8  # how alike a word must be to be called a misspelling though it could be a name
_DISTINCT = ("UNIQUE", "UNIQ", "DIFFERENT")


def explain(error: UnexpectedInput, accepted: set[str], text: str, what: str) -> Mistake:
    """The first thing to mend.

    `accepted` are the terminals that fit there; `what` was to be read: a query, a pattern,
    an expression.
    """
    words = list(words_of(text))
    if not words:
        return Mistake("CEP101", f"this {what} is empty", Span(0, 0), _example(what))
    ended = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    stop = words[-1].span.end if ended else error.pos_in_stream
    assert stop is not None
    before = [w for w in words if w.span.end <= stop]
    here = None if ended else _word_at(stop, words, text)
    return (
        _unclosed_quote(words, before, here)
        or _brackets(words, before, here)
        or _window(before, here, accepted)
        or _no_pattern(words, here, accepted)
        or _foreign(before, here, _in_pattern(before, what))
        or _misspelled(before, here, accepted)
        or _strange(here, isinstance(error, UnexpectedToken))
        or _unexpected(words, before, here, accepted, what)
    )


def _word_at(place: int, words: list[Word], text: str) -> Word:
    """There may be none where the lexer saw no comment: in `{--}`, a quantifier."""
    following = next((w for w in words if w.span.end > place), None)
    return following or Word("symbol", text[place], Span(place, place + 1))


def _example(what: str) -> str:
    examples = {"query": "PATTERN A a ; B b WITHIN 10 minutes", "pattern": "A a ; B b"}
    return f"write one, as in `{examples.get(what, 'a.price > 10')}`"


def _unclosed_quote(words: list[Word], before: list[Word], here: Word | None) -> Mistake | None:
    seen = words if here is None else [*before, here]
    quote = next((w for w in seen if w.kind in UNCLOSED), None)
    if quote is None:
        return None
    closing = "*/" if quote.kind == "open" else quote.text
    return Mistake(
        "CEP107",
        f"this {_FORGOTTEN_QUOTE[quote.text]} is never closed",
        quote.span,
        f"add a closing {closing}",
    )


def _brackets(words: list[Word], before: list[Word], here: Word | None) -> Mistake | None:
    stack: list[Word] = []
    if here is not None and here.text == "{" and all(word.text != "}" for word in words):
        return _never_closed(here)
    for word in before:
        if word.text in _BRACKETS:
            stack.append(word)
        elif stack and word.text == _BRACKETS[stack[-1].text]:
            stack.pop()
    closes = here is not None and here.text in _BRACKETS.values()
    if here is not None and closes and not stack:
        opening = next(o for o, c in _BRACKETS.items() if c == here.text)
        return Mistake("CEP106", f"no `{opening}` opens before this `{here.text}`", here.span)
    if not stack or (here is not None and closes and here.text == _BRACKETS[stack[-1].text]):
        return None
    if here is None or closes or here.keyword in CLAUSES:
        return _never_closed(stack[-1])
    return None


def _never_closed(opening: Word) -> Mistake:
    hint = f"add `{_BRACKETS[opening.text]}`"
    return Mistake("CEP105", f"this `{opening.text}` is never closed", opening.span, hint)


def _window(before: list[Word], here: Word | None, accepted: set[str]) -> Mistake | None:
    """`WITHIN -5 secs`, `WITHIN 10 fortnights`."""
    if here is None or not before:
        return None
    last = before[-1]
    if here.text == "-" and (last.keyword in ("WITHIN", "FOR") or last.text == "@"):
        what = {"@": "delay", "FOR": "time after FOR"}.get(last.keyword or last.text, "window")
        return Mistake("CEP110", f"a {what} can't be negative", here.span, "leave out the `-`")
    if here.keyword == "EVENTS" and [word.keyword for word in before[-2:-1]] == ["FOR"]:
        skips = [word.keyword for word in before[-3:-2]] == ["SKIP"]
        hint = f"write a duration, as in `{'SKIP' if skips else '!B b'} FOR 10 minutes`"
        return Mistake("CEP110", "FOR takes a time, no number of events", here.span, hint)
    no_unit = here.keyword in CLAUSES_OF_SQL or here.keyword in ("SKIP", "ONE", "ALL", "IS")
    if last.kind == "number" and here.kind == "word" and "UNIT" in accepted and not no_unit:
        if here.keyword in ("EVENT", "EVENTS"):
            message = "this is a duration, and is not counted in events"
            return Mistake("CEP109", message, here.span, "as in `10 minutes`")
        near = nearest(here.text, [*UNIT_WORDS, "events"])
        keyword = nearest(here.text, accepted & RESERVED)
        if keyword and _likeness(here.text, keyword) >= _likeness(here.text, near or ""):
            return None
        units = ", ".join(u.value for u in Unit if u is not Unit.UNITS)
        near = UNITS_OF_OTHERS.get(here.text.lower(), near)
        hint = f"did you mean `{near}`?" if near else f"write one of {units}"
        return Mistake("CEP109", f"unknown unit `{here.text}`", here.span, hint)
    return None


def _no_pattern(words: list[Word], here: Word | None, accepted: set[str]) -> Mistake | None:
    if "PATTERN" not in accepted:
        return None
    if here is None:
        return Mistake("CEP102", "this query has no PATTERN", words[-1].span, "add PATTERN …")
    near = nearest(here.text, ["PATTERN", "INTO"]) if here.kind == "word" else None
    if here.keyword == "SELECT":
        hint = "write PATTERN …, and RETURN at the end for what to select"
    elif here.keyword == "LIMIT":
        hint = "LIMIT stands at the end, as in `PATTERN A a LIMIT 3`"
    elif here.keyword in CLAUSES_OF_SQL:
        hint = CLAUSES_OF_SQL[here.keyword]
    elif near:
        hint = f"did you mean `{near}`?"
    else:
        hint = FIRST.get(here.keyword or here.text, "write PATTERN before it")
    return Mistake("CEP102", "a query starts with PATTERN", here.span, hint)


def _in_pattern(before: list[Word], what: str) -> bool:
    return what != "expression" and not any(word.keyword in CLAUSES for word in before)


def _foreign(before: list[Word], here: Word | None, in_pattern: bool) -> Mistake | None:
    hint = None if here is None else foreign(before, here, in_pattern)
    if here is None or hint is None:
        return None
    return Mistake("CEP103", f"unexpected `{here.text}`", here.span, hint)


def _misspelled(before: list[Word], here: Word | None, accepted: set[str]) -> Mistake | None:
    """The word here, or the one before it, which was taken for an alias (`B WITHING 10`)."""
    if before and before[-1].kind == "word" and before[-1].keyword not in RESERVED:
        word = before[-1]
        meant = _most_alike(word.text, (*CLAUSES, "UNLESS"))
        dotted = len(before) > 1 and before[-2].text in (".", "(")
        if meant and not dotted and _likeness(word.text, meant) >= _SURELY:
            return _unknown_word(word, meant)
        called = len(before) > 2 and before[-2].text == "(" and before[-3].kind == "word"
        says_distinct = word.keyword in _DISTINCT or nearest(word.text, ["DISTINCT"])
        if called and here is not None and here.kind == "word" and says_distinct:
            return _unknown_word(word, "DISTINCT")
    if here is not None and here.kind == "word" and here.keyword not in RESERVED:
        near = nearest(here.text, sorted(t for t in accepted if t.isalpha() and t != "NAME"))
        if near:
            return _unknown_word(here, near)
    return None


def _unknown_word(word: Word, meant: str) -> Mistake:
    return Mistake("CEP103", f"unexpected `{word.text}`", word.span, f"did you mean `{meant}`?")


def _most_alike(word: str, known: Iterable[str]) -> str | None:
    return max(sorted(known), key=lambda k: _likeness(word, k), default=None)


def _likeness(word: str, keyword: str) -> float:
    return SequenceMatcher(None, word.upper(), keyword.upper()).ratio()


def _strange(here: Word | None, is_token: bool) -> Mistake | None:
    """A character that no part of the language uses."""
    if here is None or is_token or here.text in IN_PATTERN or here.text in IN_CONDITION:
        return None
    message = f"unexpected character `{here.text}`"
    return Mistake("CEP108", message, here.span, STRANGE.get(here.text, ""))


def _unexpected(
    words: list[Word], before: list[Word], here: Word | None, accepted: set[str], what: str
) -> Mistake:
    expected = _expected(accepted)
    hint = f"expected {expected}" if expected else ""
    if here is None:
        end = words[-1].span.end
        return Mistake("CEP104", f"the {what} ends too early", Span(end, end), hint)
    in_pattern = _in_pattern(before, what)
    other = (IN_PATTERN if in_pattern else IN_CONDITION).get(here.keyword or here.text)
    if other or here.keyword in CLAUSES_OF_SQL:
        hint = other or CLAUSES_OF_SQL[here.keyword]
    elif (said := beside(before, here, in_pattern)) is not None:
        hint = said
    elif here.kind in ("word", "quoted") and [w.text for w in before[-2:-1]] == ["["]:
        hint = f"write a comma between two names: `[{before[-1].text}, {here.text}]`"
    elif here.keyword == "FOR" and in_pattern:
        hint = "FOR gives a negation its time, as in `!B b FOR 10 minutes`"
    elif accepted == {"NUMBER", "STRING"}:
        hint = "an index counts from 0, and a key is in quotes: `tags[0]`, `headers['x']`"
    elif here.keyword == "INTO":
        hint = "INTO stands first, before PATTERN"
    elif here.text == ";" and here == words[-1]:
        hint = "a query doesn't end with `;`"
    elif here.keyword == "PATTERN":
        second = any(word.keyword == "PATTERN" for word in before)
        hint = "a query has one PATTERN" if second else "write PATTERN before FROM"
    return Mistake("CEP103", f"unexpected `{here.text}`", here.span, hint)


# Groups of terminals in a user's words: the phrase stands for the whole group.
_PHRASES: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("SEQ_FUNCTION", "a pattern", frozenset({"NAME", "LPAR", "BANG"})),
    (
        "CASE",
        "an expression",
        frozenset(
            {
                "NAME",
                "LPAR",
                "LSQB",
                "SIGN",
                "NUMBER",
                "EXTENT",
                "INTERVAL",
                "MOMENT",
                "PERCENT",
                "STRING",
                "PARAMETER",
            }
        )
        | {"TRUE", "FALSE", "NULL", "NOT", "STAR", "DISTINCT", "TUMBLE", "HOP", "SESSION", "RANGE"},
    ),
    ("SEQUENCE_OPERATOR", "an operator such as `;`", frozenset({"VBAR", "AMPERSAND", "BACKSLASH"})),
    (
        "SUM_OPERATOR",
        "an operator",
        frozenset({"PRODUCT_OPERATOR", "COMPARISON", "OR", "NOT", "UNIT", "DOT", "LPAR", "LSQB"})
        | {"BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "TILDE", "CONTAINS", "IS", "OCCURS"},
    ),
    ("NUMBER", "a number", frozenset({"PARAMETER"})),
    ("UNIT", "a unit such as `minutes`", frozenset()),
    ("NAME", "a name", frozenset({"AS"})),
    ("FIELD", "a name", frozenset()),
    ("WHERE", "a clause such as WHERE or WITHIN", frozenset((*CLAUSES, "GROUP_BY"))),
    ("LPAR", "`(`", frozenset()),
    ("RPAR", "`)`", frozenset()),
    ("RSQB", "`]`", frozenset()),
    ("COMMA", "`,`", frozenset()),
    ("DOT", "`.`", frozenset()),
    ("COMPARISON", "`=`", frozenset()),
    ("LSQB", "`[`", frozenset()),
    ("STRING", "a string", frozenset()),
    ("PARAMETER", "a parameter", frozenset()),
)
_SILENT = frozenset({"QUANTIFIER", "MODE", "UNTIL", "UNLESS", "FOR", "AT", "EVENTS", "TILDE"})


def _expected(accepted: set[str]) -> str:
    left = accepted - _SILENT
    if "OR" in left:
        left.discard("AND")  # an operator like others; alone it is what BETWEEN waits for
    phrases: list[str] = []
    for terminal, phrase, group in _PHRASES:
        if terminal in left:
            phrases.append(phrase)
            left -= {terminal, *group}
    phrases += sorted(t for t in left if t.isalpha())
    if "$END" in left:
        phrases.append("the end")
    if len(phrases) < 2:
        return "".join(phrases)
    return f"{', '.join(phrases[:-1])} or {phrases[-1]}"
