"""Patterns as written: brought to one form, and refused where they mean nothing.

Checks work on the normalized AST, since only the AST knows where things stand in the text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import assert_never

from cepheid.algebra.binding.findings import Findings
from cepheid.language import ast
from cepheid.language.ast import Mode, SequenceOperator, Strategy

_MEANING = {
    Strategy.ANY: SequenceOperator.ANY,
    Strategy.NEXT: SequenceOperator.NEXT,
    Strategy.STRICT: SequenceOperator.STRICT,
}


def normalize(pattern: ast.Pattern, using: Strategy | None) -> ast.Pattern:
    """USING applied, and parentheses that change nothing removed.

    A sequence at the start of another is a part of it, since sequences are read from the left;
    further right only one of `;` alone after a `;` is: in `A -> (B ; C)` the inner pattern's
    matches are what the arrow chooses from.
    """
    match pattern:
        case ast.Atom() | ast.AnyOf():
            return pattern
        case ast.Sequence():
            return _flat_sequence(pattern, using)
        case ast.Conjunction() | ast.Disjunction():
            items: list[ast.Pattern] = []
            for item in pattern.items:
                done = normalize(item, using)
                same = type(done) is type(pattern)
                items.extend(done.items if same and isinstance(done, _NARY) else (done,))
            return replace(pattern, items=tuple(items))
        case ast.Unless():
            exception = normalize(pattern.exception, using)
            return replace(pattern, item=normalize(pattern.item, using), exception=exception)
        case ast.Negation() | ast.Closure() | ast.Delay():
            return replace(pattern, item=normalize(pattern.item, using))
        case _:
            assert_never(pattern)


_NARY = (ast.Conjunction, ast.Disjunction)


def _flat_sequence(pattern: ast.Sequence, using: Strategy | None) -> ast.Sequence:
    items: list[ast.Pattern] = []
    operators: list[SequenceOperator] = []
    for index, item in enumerate(pattern.items):
        done = normalize(item, using)
        if index > 0:
            operators.append(_using(pattern.operators[index - 1], using))
        if isinstance(done, ast.Sequence) and _joins(done, operators, index):
            items.extend(done.items)
            operators.extend(done.operators)
        elif isinstance(done, ast.Conjunction) and _only_negations(done):
            # `A ; (!B & !C) ; D`: neither occurs, and they have no order.
            beside = pattern.operators[max(0, index - 1)]
            items.extend(done.items)
            operators.extend([_using(beside, using)] * (len(done.items) - 1))
        else:
            items.append(done)
    return replace(pattern, items=tuple(items), operators=tuple(operators))


def _using(operator: SequenceOperator, using: Strategy | None) -> SequenceOperator:
    plain = operator is SequenceOperator.ANY and using is not None
    return _MEANING[using] if plain and using is not None else operator


def _only_negations(pattern: ast.Conjunction) -> bool:
    return all(isinstance(item, ast.Negation) for item in pattern.items)


def _joins(inner: ast.Sequence, before: list[SequenceOperator], index: int) -> bool:
    if index == 0:
        return True
    return {*inner.operators, before[-1]} == {SequenceOperator.ANY}


@dataclass(frozen=True, slots=True)
class Shape:
    """Reports what is refused. `outer`: the edges of the pattern are edges of the match."""

    findings: Findings

    def check(self, pattern: ast.Pattern) -> None:
        self._pattern(pattern, outer=True, negated=False)

    def _add(self, code: str, message: str, span: ast.Span, hint: str) -> None:
        self.findings.add(code, message, span, hint)

    def _pattern(
        self, pattern: ast.Pattern, *, outer: bool, negated: bool, repeated: bool = False
    ) -> None:
        """A pattern of its own: the query's, a branch, a member, a group's (`repeated`)."""
        match pattern:
            case ast.Atom() | ast.AnyOf():
                return
            case ast.Negation():
                self._only_negations(pattern.span)
                self._negation(pattern, negated=negated)
            case ast.Closure():
                if outer:
                    self._alone(pattern)
                else:
                    self._nested_edge(pattern)
                self._closure(pattern, negated=negated)
            case ast.Sequence():
                self._sequence(pattern, outer=outer, negated=negated, repeated=repeated)
            case ast.Conjunction():
                self._conjunction(pattern, negated=negated)
            case ast.Disjunction():
                for item in pattern.items:
                    self._branch(item, outer=outer, negated=negated)
            case ast.Unless():
                self._unless(pattern, outer=outer, negated=negated)
            case ast.Delay():
                self._pattern(pattern.item, outer=outer, negated=negated)
            case _:
                assert_never(pattern)

    def _only_negations(self, span: ast.Span) -> None:
        message = "a pattern of negations alone has no event to match"
        self._add("CEP301", message, span, "add an event that must occur, as in `A a ; !B b`")

    def _branch(self, branch: ast.Pattern, *, outer: bool, negated: bool) -> None:
        if isinstance(branch, ast.Negation) and branch.duration is not None:
            self._negation(branch, negated=negated)
        elif isinstance(branch, ast.Negation):
            message = "a branch of `|` can't be a negation: each branch is a separate pattern"
            hint = "put it beside an event of the branch, or give it a time: `!B b FOR 10 s`"
            self._add("CEP302", message, branch.span, hint)
            self._negation(branch, negated=negated)
        else:
            self._pattern(branch, outer=outer, negated=negated)

    def _negation(self, pattern: ast.Negation, *, negated: bool) -> None:
        if negated:
            message = "a negation can't stand inside a negation"
            self._add("CEP304", message, pattern.span, "say what must occur instead")
        match pattern.item:
            case ast.Closure() as closure:
                message = "a closure can't be negated: one event is enough to forbid"
                hint = "negate the event without its quantifier"
                self._add("CEP303", message, pattern.span, hint)
                self._closure(closure, negated=True)
            case ast.Negation() as inner:
                self._negation(inner, negated=True)
            case item:
                self._pattern(item, outer=False, negated=True)

    def _strict_negation(self, pattern: ast.Negation) -> None:
        """Only of a single event is it known at the next position whether it is there."""
        if not isinstance(pattern.item, ast.Atom | ast.AnyOf):
            message = "after `=>` only an event can be negated: what follows it has no bound"
            hint = "negate the event that must not come next, or use `;`"
            self._add("CEP315", message, pattern.span, hint)

    def _unless(self, pattern: ast.Unless, *, outer: bool, negated: bool) -> None:
        if negated:
            message = "an exception can't stand inside a negation"
            self._add("CEP304", message, pattern.span, "say what must occur instead")
        self._pattern(pattern.item, outer=outer, negated=negated)
        match pattern.exception:
            case ast.Negation() as inner:
                self._negation(inner, negated=True)
            case ast.Closure() as closure:
                message = "an exception can't be a closure: one event is enough"
                self._add("CEP303", message, closure.span, "leave its quantifier out")
                self._closure(closure, negated=True)
            case exception:
                self._pattern(exception, outer=False, negated=True)

    def _conjunction(self, pattern: ast.Conjunction, *, negated: bool) -> None:
        if all(isinstance(item, ast.Negation) for item in pattern.items):
            self._only_negations(pattern.span)
        for item in pattern.items:
            match item:
                case ast.Closure():
                    message = "a closure can't be a member of `&`: it has no neighbors there"
                    self._add("CEP305", message, item.span, _in_sequence(item))
                    self._closure(item, negated=negated)
                case ast.Negation():
                    self._negation(item, negated=negated)
                case _:
                    self._pattern(item, outer=False, negated=negated)

    def _closure(self, closure: ast.Closure, *, negated: bool) -> None:
        """What is wrong with a closure wherever it stands."""
        if isinstance(closure.quantifier, ast.Exactly) and closure.mode is not Mode.MAXIMAL:
            count = closure.quantifier.count
            message = f"{closure.mode.value} can't follow `{{{count}}}`, which has one size only"
            hint = f"leave it out, or give a range as in `{{1,{count}}}`"
            self._add("CEP311", message, closure.span, hint)
        if isinstance(closure.quantifier, ast.Optional) and closure.mode is not Mode.MAXIMAL:
            mode = closure.mode.value
            message = f"{mode} can't follow `?`, which is the first event or none"
            hint = f"leave it out, or write `{{0,1}} {mode}`"
            self._add("CEP311", message, closure.span, hint)
        match closure.item:
            case ast.Atom() | ast.AnyOf():
                return
            case ast.Closure() as inner:
                message = "a closure can't stand directly inside a closure"
                self._add("CEP312", message, closure.span, "one quantifier is enough")
                self._closure(inner, negated=negated)
            case ast.Negation() as inner:
                message = "a negation can't be repeated"
                self._add("CEP303", message, closure.span, "leave the quantifier out")
                self._negation(inner, negated=negated)
            case item:
                self._pattern(item, outer=False, negated=negated, repeated=True)

    def _nested_edge(self, closure: ast.Closure, begins_rounds: bool = False) -> None:
        message = "a closure can't stand at the edge of a nested pattern"
        hint = "give it a neighbor there, or take the parentheses away"
        if begins_rounds:
            hint = "begin each round with an event"
        if begins_rounds and _is_plain(closure) and isinstance(closure.item, ast.Atom):
            kind = closure.item.name if closure.item.alias is not None else ""
            rest = f"{kind}* rest" if kind else "rest*"
            hint = f"name its first event: `{_leaf_text(closure.item)} ; {rest}`"
        if events := _one_by_one(closure):
            hint = f"name its events one by one: `{events}`"
        self._add("CEP309", message, closure.span, hint)

    def _no_event(self, parts: list[ast.Pattern]) -> None:
        """A group that is chosen by itself may be empty, and then nothing is left of the match,
        or nothing that the groups beside it could be taken from."""
        empty = [p for p in parts if isinstance(p, ast.Closure) and _may_be_empty(p)]
        if empty and not any(_is_certain(part) for part in parts):
            message = "a match needs an event, and this closure may be empty"
            hint = "ask for one at least, with `+` or `{1,…}`, or put an event beside it"
            self._add("CEP313", message, empty[0].span, hint)

    def _leads(self, closure: ast.Closure) -> None:
        """With nothing before it, the rounds of a group are counted from an event of its own."""
        chosen = isinstance(closure.quantifier, ast.Exactly) or closure.mode.independent
        if chosen and not _starts_with_event(closure.item):
            message = "a repeated group that leads must start with an event: its rounds begin there"
            hint = _any_of(closure.item) or "start the group with an event, or put one before it"
            self._add("CEP314", message, closure.span, hint)

    def _alone(self, closure: ast.Closure) -> None:
        self._leads(closure)
        if _chosen_by_itself(closure):
            self._no_event([closure])
            return
        message = "this closure has no neighbors: nothing says where its group begins and ends"
        hint = "put an event before or after it, or use RUNS, SUBSETS or `{n}`"
        match closure.item:
            case ast.Atom(name, str(alias)) if closure.strict:
                hint = (
                    f"for the longest runs write `{name}+ {alias} RUNS STRICT => !{name} other` "
                    "and AFTER MATCH SKIP PAST LAST EVENT"
                )
            case _:
                pass
        self._add("CEP307", message, closure.span, hint)

    def _sequence(
        self, pattern: ast.Sequence, *, outer: bool, negated: bool, repeated: bool
    ) -> None:
        present = [i for i, item in enumerate(pattern.items) if not isinstance(item, ast.Negation)]
        parts = [pattern.items[i] for i in present]
        if not parts:
            self._only_negations(pattern.span)
        elif outer:
            self._outer_edges(pattern, parts, present)
        else:
            for edge in dict.fromkeys((present[0], present[-1])):
                item = pattern.items[edge]
                if isinstance(item, ast.Closure):
                    self._nested_edge(item, repeated and edge == present[0] != present[-1])
        self._side_by_side(pattern, present)
        for operator, item in zip((None, *pattern.operators), pattern.items, strict=True):
            match item:
                case ast.Negation():
                    self._negation(item, negated=negated)
                    if operator is SequenceOperator.STRICT and item.duration is None:
                        self._strict_negation(item)
                case ast.Closure():
                    self._closure(item, negated=negated)
                case _:
                    self._pattern(item, outer=False, negated=negated)

    def _side_by_side(self, pattern: ast.Sequence, present: list[int]) -> None:
        """A maximal group ends where its neighbor begins. After `=>` it is the longest run from its
        left neighbor on, and another one after `=>` begins where that breaks off."""
        parts = [pattern.items[n] for n in present]
        runs = [
            n > 0
            and pattern.operators[n - 1] is SequenceOperator.STRICT
            and _is_maximal(part)
            and any(_is_certain(p) for p in parts[:k])
            for k, (n, part) in enumerate(zip(present, parts, strict=True))
        ]
        for n, (left, right) in enumerate(pairwise(parts)):
            if _is_maximal(left) and _is_open(right) and not (runs[n] and runs[n + 1]):
                message = "two closures side by side: nothing says where one ends"
                hint = (
                    "give the first one PREFIXES or a size, `{2}`, put an event between them, or "
                    "join them with `=>`: `A a => B+ b => C+ c`"
                )
                self._add("CEP306", message, left.span.to(right.span), hint)

    def _outer_edges(
        self, pattern: ast.Sequence, parts: list[ast.Pattern], present: list[int]
    ) -> None:
        first, last = parts[0], parts[-1]
        if len(parts) == 1:
            if isinstance(first, ast.Closure):
                self._alone(first)
            return
        self._no_event(parts)
        for part in takewhile(lambda p: isinstance(p, ast.Closure), parts):
            assert isinstance(part, ast.Closure)
            self._leads(part)
            if _is_certain(part):
                break
        if _is_open(first) and _is_open(last):
            message = "closures at both edges: each one's window would depend on the other's group"
            hint = "start or end the pattern with an event"
            self._add("CEP308", message, first.span.to(last.span), hint)
        for part, at in zip(parts, present[1:], strict=False):
            if not isinstance(part, ast.Closure):
                break
            prefixes = part.mode is Mode.PREFIXES
            following = pattern.operators[at - 1]
            if (_is_maximal(part) or prefixes) and following is SequenceOperator.NEXT:
                what = "a closure that leads can't be followed by `->`: its group has no beginning"
                self._add("CEP310", what, part.span, "use RUNS, or put an event before it")
            if _fewest(part) > 0:
                break


def _is_maximal(pattern: ast.Pattern) -> bool:
    """Takes all that lies between its neighbors, so that both must be known."""
    return (
        isinstance(pattern, ast.Closure)
        and pattern.mode is Mode.MAXIMAL
        and not isinstance(pattern.quantifier, ast.Exactly)
    )


def _chosen_by_itself(closure: ast.Closure) -> bool:
    return isinstance(closure.quantifier, ast.Exactly) or closure.mode.independent


def _starts_with_event(pattern: ast.Pattern) -> bool:
    match pattern:
        case ast.Atom() | ast.AnyOf():
            return True
        case ast.Sequence():
            bound = [item for item in pattern.items if not isinstance(item, ast.Negation)]
            return bool(bound) and _starts_with_event(bound[0])
        case ast.Unless() | ast.Delay():
            return _starts_with_event(pattern.item)
        case _:
            return False


def _is_plain(closure: ast.Closure) -> bool:
    """`A+ a`, and nothing else said of it."""
    one_or_more = closure.quantifier == ast.Between(1, None)
    return one_or_more and _is_maximal(closure) and not closure.strict and closure.until is None


def _leaf_text(leaf: ast.Atom) -> str:
    return leaf.name if leaf.alias is None else f"{leaf.name} {leaf.alias}"


def _in_sequence(closure: ast.Closure) -> str:
    """What to write instead of a closure in a conjunction."""
    if events := _one_by_one(closure):
        return f"name its events one by one: `({events}) & …`"
    return "put it in a sequence with `;`"


def _one_by_one(closure: ast.Closure) -> str | None:
    """The events of a run of some size, with names of their own."""
    match closure:
        case ast.Closure(ast.Atom(name, alias), ast.Exactly(count)) if count > 1:
            kind, base = ("", name) if alias is None else (f"{name} ", alias)
            between = " -> " if count == 2 else " -> … -> "
            return f"{kind}{base}1{between}{kind}{base}{count}"
        case _:
            return None


def _any_of(pattern: ast.Pattern) -> str | None:
    """A choice of one event is an event of any of the types."""
    match pattern:
        case ast.Disjunction(branches):
            types = [b.name for b in branches if isinstance(b, ast.Atom) and b.alias is not None]
            if len(types) == len(branches):
                return f"write the choice as one event: `ANY({', '.join(types)}) x`"
        case _:
            pass
    return None


def _may_be_empty(closure: ast.Closure) -> bool:
    """As a choice of its own; an open group has neighbors, or is refused."""
    return closure.mode.independent and _fewest(closure) == 0


def _fewest(closure: ast.Closure) -> int:
    match closure.quantifier:
        case ast.Between(low=low):
            return low
        case ast.Exactly(count=count):
            return count
        case ast.Optional():
            return 0


def _is_certain(pattern: ast.Pattern) -> bool:
    """Binds an event in every match, whatever its neighbors."""
    if not isinstance(pattern, ast.Closure):
        return True
    return _chosen_by_itself(pattern) and not _may_be_empty(pattern)


def _is_open(pattern: ast.Pattern) -> bool:
    """A closure whose group is made from all that lies between its neighbors."""
    return isinstance(pattern, ast.Closure) and not _chosen_by_itself(pattern)
