"""Random cases over the whole language, for automata and whatever else runs all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from cepheid.algebra.types import Schema, Type
from cepheid.errors import QueryError
from tests.corpus.reader import START, Case, bound
from tests.oracle.events import Event
from tests.properties.drawing import Kind
from tests.properties.full_patterns import FullPatterns
from tests.properties.strategies import COLUMNS, MOST_EVENTS, RICH_IN_NULLS, VALUES, streams

TRIES = 4
"""How often a query is drawn again if binding refuses it."""

LENGTH = st.sampled_from((0, 0, 1, 0, 2, 4))


class FullQueries(FullPatterns):
    values = VALUES

    def query(self, *, returning: bool = False) -> str:
        lines = [f"PATTERN {self.pattern()}"]
        if all(v.negation is not None for v in self.variables):
            reject()  # a pattern of negations alone, of which nothing can be read
        drawn = [self.condition() for _ in range(self.choose(0, 1, 0, 1, 2, 0, 1))]
        if drawn:
            lines.append(f"WHERE {' AND '.join(dict.fromkeys(drawn))}")
        if self.chance(15):
            lines.append(f"HAVING {self.having()}")
        lines += self.window(lines[0]) + self.using() + self.skipping() + self.limit()
        if returning:
            lines.append(f"RETURN {self.returned()}")
        return "\n".join(lines)

    def window(self, pattern: str) -> list[str]:
        needed = (";" in pattern or "&" in pattern) and not ("FOR" in pattern and self.chance(50))
        kind = self.choose("time", "time", "time", "events", "time" if needed else "none")
        if kind == "events":
            return [f"WITHIN {self.choose(9, 7, 12, 5, 14)} EVENTS"]
        return [f"WITHIN {self.choose(12, 8, 16, 6, 10, 20, 4)}"] if kind == "time" else []

    def using(self) -> list[str]:
        strategies = ("SKIP TILL NEXT MATCH", "STRICT CONTIGUITY", "SKIP TILL ANY MATCH")
        return [f"USING {self.choose(*strategies)}"] if self.chance(12) else []

    def returned(self) -> str:
        """Expressions of exact values, over every bound variable."""
        columns = [
            self.fill("{v}.x", "{v}.row", v=v.name)
            if v.kind is Kind.SINGLE
            else self.fill(
                "collect({v}.row)",
                "collect({v}.x + 1)",
                "sum({v}.x)",
                "count({v})",
                "min({v}.x)",
                "max({v}.x)",
                "first({v}.s)",
                "last({v}.x)",
                v=v.name,
            )
            for v in self.variables
            if v.negation is None
        ]
        columns.append(self.choose("duration()", *columns))
        return ", ".join(f"{column} AS c{n}" for n, column in enumerate(columns))

    def limit(self) -> list[str]:
        return [f"LIMIT {self.choose(1, 2, 3)}{self.choose('', ' PER KEY')}"] * self.chance(10)

    def skipping(self) -> list[str]:
        if not self.chance(15):
            return []
        bound = [v.name for v in self.variables if v.negation is None]
        ways = ["TO NEXT EVENT", "PAST LAST EVENT"]
        ways += [f"TO {end} {self.choose(*bound)}" for end in ("FIRST", "LAST")]
        ways.append(f"FOR {self.choose(5, 2, 9, 20)}")
        return [f"AFTER MATCH SKIP {self.choose(*ways)}"]


class TimedQueries(FullQueries):
    """Negations with a time of their own, wherever they may stand."""

    timed = 85
    forbids = 6

    def window(self, pattern: str) -> list[str]:
        size = self.choose(12, 8, 16, 6, 10, 20, 4)
        return [] if self.chance(35) else [f"WITHIN {size}"]


class PassingQueries(TimedQueries):
    """Times side by side, of which one passes inside a part."""

    def pattern(self) -> str:
        self.operators = self.choose((";",), (";", "->"))
        text = f"{self.passing()} ; {self.time()} {self.operator()} {self.atom()}"
        return text if self.chance(80) else f"({text}) | {self.atom()}"

    def passing(self) -> str:
        match self.choose("branch", "part", "member"):
            case "branch":
                return f"{self.atom()} {self.operator()} ({self.atom()} | {self.time()})"
            case "part":
                return f"(({self.atom()} ; {self.time()}) | {self.atom()})"
            case _:
                return f"(({self.atom()} ; {self.time()}) & {self.atom()})"

    def time(self) -> str:
        return f"{self.forbidden(1)} FOR {self.lasting()}"


class TouchingQueries(FullQueries):
    """Closures after an event and beside each other, joined by `=>`."""

    def pattern(self) -> str:
        self.operators = ("=>",)
        text = self.atom()
        for _ in range(self.choose(2, 2, 3)):
            text += f" => {self.run()}"
        return f"{text} {self.choose('=>', ';', '->')} {self.atom()}" if self.chance(50) else text

    def run(self) -> str:
        quantifier = self.choose("+", "+", "*", "?", "{1,2}", "{2,}")
        kind = Kind.OPTIONAL if quantifier == "?" else Kind.GROUP
        return self.atom(kind, None, quantifier)


class PartedQueries(FullQueries):
    """Patterns of `;` or `&` in which arrows are between a few events: those parts can have an
    automaton of their own."""

    repeats = 75

    def pattern(self) -> str:
        if self.chance(15):
            return f"({self.part_of_arrows(3)}) & {self.atom()}"
        parts = [self.part_of_arrows(3), *self.rest()]
        return " ; ".join(self.draw(st.permutations(parts)) if self.chance(60) else parts)

    def rest(self) -> list[str]:
        """One or two further parts, of which the last is an event."""
        if self.left < 2 or not self.chance(50):
            return [self.atom()]
        kind = self.choose("event", "negation", "arrows" if self.left >= 3 else "event")
        if kind == "arrows":
            return [self.part_of_arrows(2), self.atom()]
        return [self.atom() if kind == "event" else self.negation(1), self.atom()]

    def part_of_arrows(self, most: int) -> str:
        """Events at both ends, and between them, now and then, a group or a negation."""
        self.operators = self.choose(("->",), ("->",), ("=>",), ("->", "=>"))
        text = self.atom()
        if most >= 3 and self.chance(60):
            kind = self.choose("event", "closure", "negation")
            if kind == "closure":
                middle = self.closure(self.choose("+", "*", "{1,2}")) + self.choose(
                    "", " PREFIXES", " SUBSETS", " STRICT"
                )
            else:
                middle = self.atom() if kind == "event" else self.negation(1)
            text += f" {self.operator()} {middle}"
        return f"{text} {self.operator()} {self.atom()}"

    def using(self) -> list[str]:
        return []


class PartlyKeyedQueries(PartedQueries):
    """Equalities that connect some of the variables, over values that are often NULL."""

    values = RICH_IN_NULLS

    def pattern(self) -> str:
        pattern = super().pattern()
        if self.left and " & " not in pattern and self.chance(30):
            return f"{pattern} ; {self.closure(self.choose('?', '*', '+'))}"
        return pattern

    def condition(self) -> str:
        """Each variable of a few neighbors equals one of the others."""
        if self.chance(25):
            return super().condition()
        names = [v.name for v in self.variables]
        first = self.draw(st.integers(0, len(names) - 2)) if len(names) > 1 else 0
        chosen = names[first : first + self.choose(2, 3, 2)]
        column = self.choose("x", "x", "id", "s", "y")
        other = "n" if column in ("x", "id") and self.chance(20) else column
        links = [
            f"{name}.{column} = {self.choose(*chosen[:n], *chosen[n + 1 :][:1])}.{other}"
            for n, name in enumerate(chosen)
            if n
        ]
        return " AND ".join(links) or "[id]"


@st.composite
def durations(
    draw: Callable[[st.SearchStrategy[Any]], Any], events: Sequence[Event]
) -> tuple[Event, ...]:
    """The same events; some have begun before their time, which is their end."""
    lengths = draw(st.lists(LENGTH, min_size=len(events), max_size=len(events)))
    starts = [event.time - length for event, length in zip(events, lengths, strict=True)]
    return tuple(
        replace(event, values={**event.values, START: start}, start=start)
        for event, start in zip(events, starts, strict=True)
    )


@st.composite
def full_cases(
    draw: Callable[[st.SearchStrategy[Any]], Any],
    most_events: int = MOST_EVENTS,
    returning: bool = False,
    lasting: bool = False,
    kind: type[FullQueries] = FullQueries,
) -> Case:
    """`expected` is left to the oracle. `lasting`: events have a duration, and no tie-break."""
    if lasting:
        schema = Schema({**COLUMNS, START: Type.INTEGER}, "ts", "type", start=START)
    else:
        schema = Schema(COLUMNS, "ts", "type", tie=draw(st.sampled_from((None, None, "n"))))
    for _ in range(TRIES):
        queries = kind(draw)
        text = queries.query(returning=returning)
        case = Case("random", "strategies", text, schema, (), by_hand=False)
        try:
            bound(case)
        except QueryError:
            continue
        events = draw(streams(queries.types, most_events, kind.values))
        return case.over(draw(durations(events)) if lasting else events)
    reject()
