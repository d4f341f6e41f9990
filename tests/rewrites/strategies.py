"""Random cases in which a certain rule has something to do.

Patterns are those of the engine's random cases, with arrows and exceptions in some of them, and
patterns made for the rule; conditions are the rule's, among others of every role.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from cepheid.algebra.types import Schema
from cepheid.errors import QueryError
from tests.corpus.reader import Case, bound
from tests.properties.drawing import Kind, Variable
from tests.properties.strategies import COLUMNS, Queries, streams

MOST_EVENTS = 11

OF_ONE: dict[str, tuple[str, ...]] = {
    "folding": (
        "NOT ({v}.x > {k} OR {v}.y < 1)",
        "({v}.x = {k} OR 1 = 2)",
        "{k} < {v}.x",
        "{v}.x IN ({k})",
        "({v}.x {op} {k} AND 2 > 1)",
        "NOT NOT {v}.x {op} {k}",
        "coalesce(NULL, {v}.x) {op} {k}",
        "CASE WHEN 1 = 1 THEN {v}.x ELSE 3 END {op} {k}",
        "{v}.x + (2 - 1) {op} {k}",
        "({v}.x > NULL OR {v}.y > 1)",
        "NOT ({v}.x IS NULL OR {v}.x {op} {k})",
        "5 / 2 {op} {k}",
        "{v}.x % 2 {op} 7 % 2",
        "NOT {v}.y {op} 1.5",
    ),
    "tautology": (
        "{v}.x = {v}.x",
        "{v}.y <= {v}.y",
        "({v}.x < {v}.x OR {v}.s = 'u')",
        "({v}.x < {k} OR {v}.x = {k})",
        "({v}.x > {k} OR {v}.x <= {k})",
        "({v}.y > 1.5 OR {v}.y <= 1.5)",
        "({v}.s IS NULL OR {v}.s IS NOT NULL)",
        "({v}.x <> {k} OR {v}.x = {k} OR {v}.y > 1)",
        "{v}.x <> {v}.x",
    ),
    "redundancy": (
        "{v}.x > {k} AND {v}.x > 1",
        "{v}.x = {k} AND {v}.x <= 2",
        "{v}.x < {k} AND {v}.x IS NOT NULL",
        "{v}.x IN (0, {k}) AND {v}.x IN (0, 1, 2, 3)",
        "{v}.y >= 0.5 AND {v}.y > 0.5",
        "{v}.x <> {k} AND {v}.x < {k}",
        "{v}.x {op} {k} AND {v}.x {op} {k}",
        "{v}.x NOT IN (0, {k}) AND {v}.x <> 0",
        "{v}.x > 0 AND {v}.x <> 0",
    ),
    "contradiction": (
        "{v}.x > 2 AND {v}.x < {k}",
        "{v}.x = 1 AND {v}.x = 2",
        "{v}.s = 'u' AND {v}.s = 'v'",
        "{v}.x IN (0, 1) AND {v}.x > {k}",
        "{v}.x IS NULL AND {v}.x {op} {k}",
        "{v}.x > {k} AND {v}.x <= {k}",
        "{v}.y > 1.5 AND {v}.y < 1.5",
        "1 = {k}",
        "{v}.x = NULL",
        "{v}.x > 1 AND {v}.x < 2",
        "{v}.x BETWEEN 2 AND {k}",
    ),
    "constants": ("{v}.id = 1", "{v}.x = {k}", "{v}.x > {k}", "{v}.id IN (1, 3)", "{v}.y <= 1.5"),
}
"""Conditions on one variable for which the rule fires."""

OF_TWO: dict[str, tuple[str, ...]] = {
    "folding": (
        "NOT ({v}.x > {k} OR {w}.x < {k})",
        "({v}.x = {k} OR ({w}.x = 1 AND 1 = 2))",
        "NOT ({v}.x {op} {w}.x)",
        "NOT ({v}.x {op} {w}.x OR {v}.x > 2)",
    ),
    "tautology": ("({v}.x < {w}.x OR {v}.x >= {w}.x)", "({v}.x < {w}.x OR {v}.x = {w}.x)"),
    "redundancy": (
        "{v}.x < {w}.x AND {v}.x <= {w}.x",
        "{w}.x > {v}.x AND {v}.x < {w}.x",
        "{v}.x = 1 AND {w}.x = 1 AND {v}.x = {w}.x",
    ),
    "contradiction": (
        "{v}.x < {w}.x AND {v}.x > {w}.x",
        "{v}.x = {w}.x AND {v}.x <> {w}.x",
        "{v}.x - {w}.x > 2 AND {v}.x - {w}.x < 1",
    ),
    "constants": (
        "{v}.id = {w}.id AND {v}.id = 1",
        "{w}.id = {v}.id AND {v}.id IN (1, 2)",
        "{v}.x = {w}.x AND {v}.x > {k}",
        "{v}.x = {w}.x AND {v}.x = {k}",
        "{v}.y = {w}.y AND {v}.y < 2.5",
    ),
}
"""Conditions on two variables for which it fires."""


class Targeted(Queries):
    """Draws queries for one rule."""

    def query_for(self, rule: str) -> str:
        lines = [f"PATTERN {self.pattern_for(rule)}"]
        wanted = self.conditions_for(rule)
        conditions = [*wanted, *(self.condition() for _ in range(self.choose(0, 0, 0, 1, 1, 2)))]
        if rule in ("negations", "exceptions", "flatten") and self.chance(70):
            conditions.append(self.class_condition())
        if conditions:
            shuffled = self.draw(st.permutations(list(dict.fromkeys(conditions))))
            lines.append(f"WHERE {' AND '.join(shuffled)}")
        if rule == "windows" and self.chance(40):
            lines.append(f"HAVING {self.time_of_match()}")
        elif rule == "pushdown" or self.chance(12):
            having = [self.having() for _ in range(self.choose(1, 1, 2))]
            if rule in OF_ONE and rule != "constants" and self.chance(50):
                having.append(self.of_one(rule, self.positive_single()))
            lines.append(f"HAVING {' AND '.join(having)}")
        if rule == "absences" and self.chance(90):
            return "\n".join(lines)
        if rule == "windows" and " ; " not in lines[0] and self.chance(50):
            return "\n".join(lines)
        size = self.choose(12, 8, 4, 16, 6, 10, 3)
        lines.append(f"WITHIN {size} EVENTS" if self.chance(12) else f"WITHIN {size}")
        return "\n".join(lines)

    # ── patterns ──

    def pattern_for(self, rule: str) -> str:
        match rule:
            case "factoring":
                return self.common_parts()
            case "absences":
                return self.quiet_before()
            case "negations":
                return self.two_negations()
            case "exceptions":
                return f"({self.sequence(2)}) \\ {self.exception()} \\ {self.exception()}"
            case "flatten":
                return self.nested()
            case "association":
                return self.chained()
            case "windows":
                return self.between_events()
            case "ordering":
                return self.some_branches()
            case "equalities":
                return self.arrows(" ; ".join(f"{self.few_types()} {v}" for v in "abcd"))
            case _:
                text = self.pattern()
                text = self.arrows(text)
                if self.left and self.chance(12):
                    text = f"({text}) \\ {self.exception()}"
                return text

    def arrows(self, text: str) -> str:
        """Some of the operators `;` are others."""
        if not self.chance(30):
            return text
        first, *rest = text.split(" ; ")
        return first + "".join(f" {self.choose('->', '->', ';', '=>')} {part}" for part in rest)

    def few_types(self) -> str:
        """So few that long sequences match."""
        name = "abcd"[len(self.variables)]
        self.types = ["A", "B"]
        self.variables.append(Variable(name, Kind.SINGLE, None))
        return self.choose("A", "B", "ANY(A, B)")

    def exception(self) -> str:
        number = self.negations
        self.negations += 1
        one = self.atom(negation=number)
        if self.left > 1 and self.chance(30):
            return f"({one}{self.choose(' | ', ' ; ')}{self.atom(negation=number)})"
        return one

    def quiet_before(self) -> str:
        """A negation with a time of its own, before an event or, rarely, two."""
        text = f"{self.negation(1)} FOR {self.choose(1, 2, 3, 5, 8)} ; {self.atom()}"
        return f"{text} -> {self.atom()}" if self.chance(10) and self.left else text

    def two_negations(self) -> str:
        negations = [self.atom(), self.negation(1), self.negation(1)]
        if self.chance(30):
            text = " & ".join([*negations, *([self.negation(1)] if self.left > 1 else [])])
            return f"{text} & {self.atom()}" if self.chance(30) and self.left else text
        if self.left > 1 and self.chance(20):
            negations.append(self.negation(2))
        parts = [*negations, self.atom()] if self.left else negations
        if self.chance(20):
            parts = parts[1:]
            del self.variables[0]
        return self.arrows(" ; ".join(parts)) if self.left else " ; ".join(parts)

    def nested(self) -> str:
        inner = self.choose(
            "{} ; ({} -> {})", "{} => ({} ; {})", "{} ; ({} => {} ; {})", "{} ; ({} -> {}) ; {}"
        )
        parts = [self.atom() for _ in range(inner.count("{}"))]
        if self.left and self.chance(30):
            parts[-1] = f"{self.negation(1)} ; {parts[-1]}"
            last = [v for v in self.variables if v.negation is not None]
            self.variables[:] = [*self.variables[: -len(last) - 1], *last, self.variables[-2]]
        if self.left and self.chance(20):
            return f"{inner.format(*parts)} | {self.atom()}"
        return inner.format(*parts)

    def chained(self) -> str:
        """Arrows inside arrows, over few types, so that they match."""
        chain = self.choose("{} -> ({} -> {})", "{} -> ({} -> ({} -> {}))", "{} ; {} -> ({} -> {})")
        text = chain.format(*(f"{self.few_types()} {v}" for v in "abcd"[: chain.count("{}")]))
        return f"({text}) | E e" if self.chance(10) else text

    def between_events(self) -> str:
        """Single events at both edges."""
        parts = [f"{self.few_types()} a"]
        if self.chance(80):
            draw_middle = self.choose(
                self.atom, lambda: self.negation(1), lambda: self.closure(self.choose("+", "{1,2}"))
            )
            parts.append(draw_middle())
        parts.append(f"{self.few_types()} {self.variables[-1].name}")
        return self.arrows(" ; ".join(parts))

    def time_of_match(self) -> str:
        first, last = self.variables[0].name, self.variables[-1].name
        return self.choose(
            f"({first}, {last}) OCCURS WITHIN {self.choose(2, 3, 5, 7)}",
            f"duration() {self.choose('<', '<=')} {self.choose(2, 3, 5.5, 7)}",
        )

    def some_branches(self) -> str:
        branches = [self.atom() for _ in range(self.choose(2, 3))]
        if self.chance(40) and self.left > 1:
            branches.append(f"({self.atom()} ; {self.atom()})")
        text = " | ".join(branches)
        return f"({text}) {self.choose(';', '->')} {self.atom()}" if self.left else text

    def common_parts(self) -> str:
        """Branches that begin or end with events of the same types."""
        shape = self.choose(
            "(A a ; B b) | (A c ; C d)",
            "(A a ; C b) | (B c ; C d)",
            "(A a ; !D e ; B b) | (A c ; C d)",
            "((A a ; B b) | (A c ; C d)) ; D e",
            "(A a ; B b) | (A c ; C d) | E e",
            "E e ; ((A a ; B b) | (A c ; C d))",
            "E e -> ((A a ; B b) | (A c ; C d))",
            "(A a ; B b) | (A c ; (C d & D e))",
            "(A a ; B b) | (A c ; (C d | D e))",
            "(A a ; B b ; E e) | (A c ; B d ; C f)",
            "(A a ; B b) | (A c ; C d) | (A e ; D f)",
            "(A a ; D e ; C b) | (A c ; C d)",
        )
        self.types.extend("ABCDE"[: self.choose(4, 5)])
        for name in sorted({w for w in shape.replace("(", " ").replace(")", " ").split()}):
            if name in "abcdef" and len(name) == 1:
                negation = 0 if f"!D {name}" in shape else None
                self.variables.append(Variable(name, Kind.SINGLE, negation))
        return shape

    # ── conditions ──

    def of_one(self, rule: str, variable: str) -> str:
        return self.fill(*OF_ONE[rule], v=variable)

    def positive_single(self) -> str:
        singles = self.of_kind(Kind.SINGLE)
        return self.choose(*singles) if singles else self.variables[0].name

    def conditions_for(self, rule: str) -> list[str]:
        found: list[str] = []
        if rule == "equalities":
            names = self.of_kind(Kind.SINGLE)
            center, *others = self.draw(st.permutations(names))
            column = self.choose("id", "s", "id", "x", "y")
            # Of four: equalities that connect all of them would be a key.
            found = [f"{center}.{column} = {o}.{column}" for o in others[:2]]
        elif rule == "factoring" and self.chance(60):
            found = [
                self.choose(
                    "a.x > 0 AND c.x > 0",
                    "[id]",
                    "a.x <= b.x",
                    "c.y <= d.y",
                    "a.x = 1 AND c.x = 1 AND c.id = d.id",
                    "a.x IS NOT NULL AND c.x IS NOT NULL",
                )
            ]
        elif rule == "absences":
            found = [self.choose("[id]", "[id]", "[s]", "[id, x]")]
        elif rule == "windows":
            found = [self.time_of_match()]
        elif rule in OF_ONE:
            two = self.pair_for(rule)
            if two is not None and self.chance(50):
                found.append(self.fill(*OF_TWO[rule], v=two[0], w=two[1]))
            else:
                found.append(self.of_one(rule, self.choose(*self.variables).name))
                if rule == "constants":
                    found.append(self.choose("[id]", "[x]"))
        return found

    def pair_for(self, rule: str) -> tuple[str, str] | None:
        """Two variables; the second may be of a group or negated."""
        singles = self.of_kind(Kind.SINGLE)
        if not singles:
            return None
        one = self.choose(*singles)
        others = [v.name for v in self.variables if v.name != one]
        if not others:
            return None
        other = self.choose(*others)
        return (one, other) if rule == "constants" or self.chance(50) else (other, one)


@st.composite
def cases_for(draw: Callable[[st.SearchStrategy[Any]], Any], rule: str) -> Case:
    """A case whose query binds; what doesn't is drawn anew."""
    queries = Targeted(draw)
    text = queries.query_for(rule)
    types = [t for t in queries.types if t in text] or ["A", "B", "C"]
    events = draw(streams(types, MOST_EVENTS))
    tie = draw(st.sampled_from((None, None, "n")))
    case = Case("random", rule, text, Schema(COLUMNS, time="ts", type="type", tie=tie), events)
    try:
        bound(case)
    except QueryError:
        reject()
    return case
