"""An automaton's states and edges in words, as Cayuga's figures 3 to 5 draw them.

A state is reached when an item of the pattern is bound. From it a *forward* edge binds the next
item, a *filter* edge skips events, and a *rebind* edge, at a closure, takes one more into the
group. Strict operators have no filter edge: what can't go forward ends the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    leaves,
    positive,
)
from cepheid.algebra.query import Conjunct, Role, Variable
from cepheid.algebra.text import condition_text, leaf_text, pattern_text
from cepheid.language.ast import Between, Mode, Optional, SequenceOperator
from cepheid.plan.nodes import Automaton

_HOW = {
    SequenceOperator.ANY: "any",
    SequenceOperator.NEXT: "the first",
    SequenceOperator.STRICT: "the next event if",
}
_SKIPPED = {
    SequenceOperator.ANY: "all",
    SequenceOperator.NEXT: "others",
    SequenceOperator.STRICT: None,
}
_TAKEN = {
    Mode.MAXIMAL: "every {}",
    Mode.PREFIXES: "every {} or stop at any",
    Mode.SUBSETS: "any subset of {}",
    Mode.RUNS: "every {} from any to any",
}


@dataclass(frozen=True, slots=True)
class State:
    """`binds` is what the forward edge binds, in short; without it the state is final, and
    `forward` says what is left to check."""

    name: str
    binds: str | None
    forward: str
    filter: str | None = None
    rebind: str | None = None

    def __str__(self) -> str:
        edges = [("rebind", self.rebind), ("filter", self.filter)]
        phrases = [f"{kind} {text}" for kind, text in edges if text is not None]
        last = f"forward {self.forward}" if self.binds is not None else self.forward
        return f"{self.name}: {'; '.join([*phrases, last])}"


_Unless = tuple[Negation | Absence, SequenceOperator]


@dataclass(frozen=True, slots=True)
class _Step:
    """An item to bind, the operator before it, and the negations that stand between, each with
    the operator before that."""

    item: Pattern
    operator: SequenceOperator
    unless: tuple[_Unless, ...]


def states(node: Automaton, variables: Mapping[str, Variable]) -> tuple[State, ...]:
    """From the start to the match."""
    return tuple(_Telling(node, variables).states())


class _Telling:
    def __init__(self, node: Automaton, variables: Mapping[str, Variable]) -> None:
        self.node = node
        self.variables = variables
        self.order = leaves(node.pattern)

    def states(self) -> Iterator[State]:
        steps, trailing = _steps(self.node.pattern)
        for n, step in enumerate(steps):
            before = steps[n - 1].item if n else None
            yield State(
                self._name(before),
                binds=self._short(step.item),
                forward=self._forward(step),
                filter=_SKIPPED[step.operator] if n else None,
                rebind=self._rebind(before),
            )
        last = steps[-1].item
        yield State(self._name(last), None, self._match(trailing), rebind=self._rebind(last))

    def _name(self, item: Pattern | None) -> str:
        return "start" if item is None else " ".join(positive(item))

    def _short(self, item: Pattern) -> str:
        match item:
            case Closure(item=Leaf(variable)):
                return leaf_text(self.variables[variable])
            case _:
                return pattern_text(item, self.variables)

    def _forward(self, step: _Step) -> str:
        optional = isinstance(step.item, Closure) and _least(step.item) == 0
        text = f"{_HOW[step.operator]} {self._short(step.item)}"
        phrases = [text + (" or none" if optional else "")]
        phrases += self._where(step.item)
        phrases += [self._without(*negation, "between") for negation in step.unless]
        return ", ".join(phrases)

    def _without(self, negation: Negation | Absence, operator: SequenceOperator, where: str) -> str:
        if isinstance(negation, Absence):
            where = f"for {negation.duration}"
        elif operator is SequenceOperator.STRICT:
            where = "as the next event"
        conditions = [
            condition_text(c.expression)
            for c in self.node.where
            if c.negation == negation.index and c.role is Role.NEGATION
        ]
        phrases = f" with {' AND '.join(conditions)}" if conditions else ""
        return f"no {pattern_text(negation.item, self.variables)} {where}{phrases}"

    def _where(self, item: Pattern) -> list[str]:
        """The conjuncts that are checked when the item is bound: it has the last variable that they
        read. Those that choose the elements of a group are also at its rebind edge."""
        bound = set(positive(item))
        checked = [
            c for c in self.node.where if self._last(c) in bound and c.role is not Role.RUNNING
        ]
        return [condition_text(c.expression) for c in checked]

    def _last(self, conjunct: Conjunct) -> str | None:
        if conjunct.role in (Role.MATCH, Role.NEGATION):
            return None
        if conjunct.target is not None:
            return conjunct.target
        return max(conjunct.variables, key=self.order.index, default=None)

    def _rebind(self, item: Pattern | None) -> str | None:
        if not isinstance(item, Closure):
            return None
        inner = pattern_text(item.item, self.variables)
        phrases = [_TAKEN[item.mode].format(inner) + (" without a break" if item.strict else "")]
        bound = set(leaves(item))
        chosen = (Role.FILTER, Role.RUNNING)
        phrases += [
            condition_text(c.expression)
            for c in self.node.where
            if c.role in chosen and c.target in bound
        ]
        if item.until is not None:
            phrases.append(f"until {condition_text(item.until)}")
        return ", ".join(phrases)

    def _match(self, trailing: tuple[_Unless, ...]) -> str:
        phrases = [condition_text(c.expression) for c in self.node.where if c.role is Role.MATCH]
        phrases += [self._without(*negation, "after it") for negation in trailing]
        phrases += [f"HAVING {condition_text(check)}" for check in self.node.checks]
        return f"match if {', '.join(phrases)}" if phrases else "match"


def _steps(pattern: Pattern) -> tuple[list[_Step], tuple[_Unless, ...]]:
    """The items that are bound, and the negations after the last of them."""
    if not isinstance(pattern, Sequence):
        return [_Step(pattern, SequenceOperator.ANY, ())], ()
    steps: list[_Step] = []
    waiting: list[_Unless] = []
    for n, item in enumerate(pattern.items):
        operator = pattern.operators[n - 1] if steps else SequenceOperator.ANY
        if isinstance(item, Negation | Absence):
            waiting.append((item, operator))
            continue
        steps.append(_Step(item, operator, tuple(waiting)))
        waiting = []
    return steps, tuple(waiting)


def _least(closure: Closure) -> int:
    match closure.quantifier:
        case Between(low=low):
            return low
        case Optional():
            return 0
        case _:
            return 1
