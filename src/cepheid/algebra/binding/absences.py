"""Where a negation with a time of its own, `!P FOR d`, may stand.

Its time counts from the end of what is bound before it, or, if nothing is, back from the start of
what is bound after it. It is refused where neither can be known while events are chosen.
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from cepheid.algebra.binding.findings import Findings
from cepheid.language import ast
from cepheid.language.ast import Mode

CODE = "CEP316"


class _Before(Enum):
    """What is bound before a part, in all enclosing sequences."""

    NOTHING = "nothing"
    PERHAPS = "a group that may be empty, and nothing before it"
    GROUP = "a group that is known only with what follows it"
    CHOSEN = "a group that is chosen by itself, and known to what stands right beside it"
    BOUND = "an event"


def check_absences(pattern: ast.Pattern, findings: Findings) -> None:
    """Report each negation with FOR whose time counts from nothing that is known."""
    _visit(pattern, _Before.NOTHING, False, findings)


def _visit(pattern: ast.Pattern, before: _Before, after: bool, findings: Findings) -> None:
    """`after`: something is bound after the pattern."""
    match pattern:
        case ast.Atom() | ast.AnyOf():
            return
        case ast.Negation():
            _absence(pattern, before, after, findings)
        case ast.Sequence():
            for n, item in enumerate(pattern.items):
                follows = any(not isinstance(i, ast.Negation) for i in pattern.items[n + 1 :])
                nested = before is _Before.CHOSEN and not isinstance(item, ast.Negation)
                _visit(item, _Before.GROUP if nested else before, after or follows, findings)
                before = _behind(item, before)
        case ast.Conjunction():
            for item in pattern.items:
                _visit(item, before, after, findings)
        case ast.Disjunction():
            for item in pattern.items:
                # A branch that is a negation alone must have an end of its own.
                _visit(item, before, after and not isinstance(item, ast.Negation), findings)
        case ast.Unless() | ast.Delay():
            _visit(pattern.item, before, after, findings)
        case ast.Closure():
            _repeated(pattern.item, findings)
        case _:
            assert_never(pattern)


def _absence(negation: ast.Negation, before: _Before, after: bool, findings: Findings) -> None:
    if negation.duration is None:
        return
    match before:
        case _Before.BOUND | _Before.CHOSEN:
            return
        case _Before.NOTHING if after:
            return
        case _Before.NOTHING:
            message = "nothing is bound before this negation that its time could count from"
            hint = "put it after an event, as in `A a ; !B b FOR 10 minutes`"
        case _Before.PERHAPS:
            message = "what stands before this negation may be empty: its time counts from nothing"
            hint = "ask for one event at least, with `+` or `{1,…}`"
        case _Before.GROUP:
            message = "the time of this negation counts from a group whose end isn't known here"
            hint = "put it right after a group of a fixed size or of RUNS, or after an event"
        case _:
            assert_never(before)
    findings.add(CODE, message, negation.span, hint)


def _repeated(pattern: ast.Pattern, findings: Findings) -> None:
    """Inside a closure: refused wherever it stands."""
    match pattern:
        case ast.Negation(duration=duration) if duration is not None:
            message = "a negation with a time of its own can't stand in a repeated group"
            hint = "write the group as a separate query, with INTO, and repeat its matches"
            findings.add(CODE, message, pattern.span, hint)
        case ast.Sequence() | ast.Conjunction() | ast.Disjunction():
            for item in pattern.items:
                _repeated(item, findings)
        case ast.Unless() | ast.Delay() | ast.Closure():
            _repeated(pattern.item, findings)
        case _:
            return


def _behind(item: ast.Pattern, before: _Before) -> _Before:
    """What is bound before what follows the item."""
    match item:
        case ast.Negation():
            return before
        case ast.Closure(quantifier=ast.Exactly()):
            return _Before.CHOSEN
        case ast.Closure(quantifier=ast.Between(low=low), mode=mode) if _chosen(mode, before):
            missing = low == 0 and before in (_Before.NOTHING, _Before.PERHAPS)
            return _Before.PERHAPS if missing else _Before.CHOSEN
        case ast.Closure():
            return _Before.GROUP
        case _:
            return _Before.BOUND


def _chosen(mode: Mode, before: _Before) -> bool:
    """Whether a group of this mode is a choice of its own. One of PREFIXES is, if it has something
    on its left."""
    if mode is Mode.PREFIXES:
        return before is not _Before.NOTHING
    return mode is not Mode.MAXIMAL
