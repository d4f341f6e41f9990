"""Queries about what those over the whole language rarely have: folds of groups, choices among
matches, disjunctions of three, functions, and all of these in one."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.corpus.reader import Case
from tests.properties.drawing import Kind
from tests.properties.full_strategies import (
    FullQueries,
    PassingQueries,
    TimedQueries,
    TouchingQueries,
    full_cases,
)
from tests.properties.nested_cases import nested_case
from tests.properties.strategies import MOST_EVENTS

MODES = (" PREFIXES", " SUBSETS", " RUNS", " STRICT")


class FoldingQueries(FullQueries):
    """A group, or a few, whose elements are compared with each other, counted and folded."""

    def pattern(self) -> str:
        self.operators = self.choose((";",), (";", "->"), ("->", "=>"))
        text = f"{self.atom()} {self.operator()} " if self.chance(80) else ""
        kind = self.choose("group", "group", "group", "rounds", "two")
        match kind:
            case "rounds" if text:
                text += f"({self.inside(2, Kind.GROUP, None)}){self.choose('+', '*', '{2}')}"
            case "two" if text:
                text += f"{self.group()} {self.operator()} {self.atom()} "
                text += f"{self.operator()} {self.group()}"
            case _:
                text += self.group()
        return f"{text} {self.choose(';', self.operator())} {self.atom()}"

    def group(self) -> str:
        quantifier = self.choose("+", "+", "*", "{1,3}", "{2,}", "{2}", "{3}")
        mode = "" if quantifier in ("{2}", "{3}") else self.choose("", "", "", *MODES)
        return f"{self.atom(Kind.GROUP)}{quantifier}{mode}"

    def condition(self) -> str:
        groups = self.of_kind(Kind.GROUP)
        if not groups or self.chance(25):
            return super().condition()
        group, k = self.choose(*groups), self.fill("{k}")
        running = self.fill(
            "{b}.x {op} {fold}",
            "{b}.x {op} {fold}",
            "{b}.x {op} PREV({b}.x, {default})",
            "{b}.s {op} PREV({b}.s)",
            "{b}.s <> PREV({b}.s, 'u')",
            "PREV({b}.x, {default}) {op} {k}",
            "{b}.y >= PREV({b}.y, {k})",
            b=group,
            fold=self.fold(group),
            default=self.default(group),
        )
        check = self.fill("{fold} {op} {k}", fold=self.fold(group))
        return self.choose(running, running, check, f"{self.default(group)} <= {k}")

    def default(self, group: str) -> str:
        """What is bound before the group, or a constant."""
        names = [v.name for v in self.variables]
        earlier = [v for v in self.of_kind(Kind.SINGLE) if names.index(v) < names.index(group)]
        return f"{self.choose(*earlier)}.x" if earlier else self.fill("{k}")

    def fold(self, group: str) -> str:
        """An integer or a number of a group."""
        return self.fill(
            "count(DISTINCT {b}.x)",
            "count(DISTINCT {b}.s)",
            "sum(DISTINCT {b}.x)",
            "avg(DISTINCT {b}.x)",
            "FIRST({b}.x, 1)",
            "LAST({b}.x, 1)",
            "LAST({b}.x, 2)",
            "stddev({b}.x)",
            "reduce({b}, {k}, acc -> 2 * acc - {b}.x)",
            "reduce({b}, {start}, acc -> greatest(acc, {b}.x) + 1)",
            "reduce({b}, 0.0, acc -> 0.5 * acc + {b}.y)",
            "count({b}.x)",
            "max({b}.x)",
            b=group,
            start=self.default(group),
        )

    def having(self) -> str:
        groups = self.of_kind(Kind.GROUP)
        return self.fill("{fold} {op} {k}", fold=self.fold(self.choose(*groups)))

    def returned(self) -> str:
        columns = [
            self.fill("{v}.x", "{v}.row", v=v.name)
            if v.kind is Kind.SINGLE
            else self.fill(
                "collect(DISTINCT {v}.x)",
                "count(DISTINCT {v}.s)",
                "FIRST({v}.row, 1)",
                "LAST({v}.row, 1)",
                "reduce({v}, {k}, acc -> 2 * acc - {v}.x)",
                "min({v}.s)",
                v=v.name,
            )
            for v in self.variables
        ]
        return ", ".join(f"{column} AS c{n}" for n, column in enumerate(columns))


class ChoosingQueries(FullQueries):
    """AFTER MATCH and LIMIT, mostly of each key."""

    def query(self, *, returning: bool = False) -> str:
        lines = super().query(returning=returning).splitlines()
        if self.chance(70):
            key = self.choose("[id]", "[id]", "[id, s]", "[x, id]")
            asked = f"WHERE {key}"
            place = [n for n, line in enumerate(lines) if line.startswith("WHERE")]
            if place:
                lines[place[0]] += f" AND {key}"
            else:
                lines.insert(1, asked)
        return "\n".join(lines)

    def pattern(self) -> str:
        return self.chain(self.choose(2, 3, 1), outer=True)

    def skipping(self) -> list[str]:
        bound = [v.name for v in self.variables if v.negation is None]
        if self.chance(40):
            return []
        way = self.choose(
            f"FOR {self.choose(5, 2, 9, 20)}",
            "TO NEXT EVENT",
            "PAST LAST EVENT",
            f"TO LAST {self.choose(*bound)}",
            f"TO FIRST {self.choose(*bound)}",
        )
        return [f"AFTER MATCH SKIP {way}"]

    def limit(self) -> list[str]:
        most = self.choose(1, 2, 3)
        return [f"LIMIT {most} PER KEY"] if self.chance(65) else [f"LIMIT {most}"] * self.chance(40)


class BranchingQueries(FullQueries):
    """Disjunctions of three, and conditions over several branches."""

    def pattern(self) -> str:
        self.operators = self.choose((";",), (";", "->"), ("->",), ("->", "=>"))
        three = " | ".join(self.branch(2 - n) for n in range(3))
        if not self.left or self.chance(30):
            return three
        before = f"{self.atom()} {self.operator()} ({three})"
        return before if self.chance(60) or not self.left else f"{before} ; {self.atom()}"

    def branch(self, others: int) -> str:
        """A branch that leaves room for so many others."""
        room = self.left - others
        match self.choose("event", "event", "event", "pair", "group", "time"):
            case "pair" if room >= 2:
                return f"({self.atom()} {self.operator()} {self.atom()})"
            case "group" if room >= 3:
                return f"({self.atom()} ; {self.atom(Kind.GROUP)}+ ; {self.atom()})"
            case "time":
                return f"{self.forbidden(1)} FOR {self.lasting()}"
            case _:
                return self.atom()

    def condition(self) -> str:
        singles = self.of_kind(Kind.SINGLE)
        if len(singles) < 2 or self.chance(30):
            return super().condition()
        v, w = self.pair(singles, singles)
        return self.fill(
            "NOT ({v}.x {op} {w}.x)",
            "{v}.x {op} {w}.x",
            "({v}.x IS NULL OR {w}.x {op} {k})",
            "coalesce({v}.x, {w}.x) {op} {k}",
            "NOT ({v}.x {op} {k})",
            v=v,
            w=w,
        )


class CallingQueries(FullQueries):
    """Conditions with functions, over one event, several, and groups."""

    def condition(self) -> str:
        if self.chance(30):
            return super().condition()
        v = self.choose(*self.variables)
        singles = [w for w in self.of_kind(Kind.SINGLE) if w != v.name]
        w = self.choose(*singles) if singles and v.negation is None else v.name
        call = self.fill(
            "greatest({v}.x, {w}.x)",
            "least({v}.x, {w}.x, {k})",
            "CAST({v}.y AS integer)",
            "length(concat({v}.s, {w}.s)) + {k}",
            "EXTRACT(second FROM CAST('2024-05-01 12:30:0{k}' AS timestamp))",
            "abs({v}.x - {w}.x)",
            "mod({v}.x, 2)",
            "CASE WHEN {v}.s = {w}.s THEN {v}.x ELSE {k} END",
            "length(split_part(concat({v}.s, ',', {w}.s), 'v', 2))",
            "{v}.x * 4611686018427387904",
            "iif({v}.y > 1, {v}.x, {w}.x)",
            v=v.name,
            w=w,
        )
        return self.fill(
            f"{call} {{op}} {{k}}",
            f"{call} {{op}} {{k}}",
            f"{call} IN (0, {{k}}, 2)",
            "{v}.s RLIKE '[u-{w}]'".replace("{w}", "w"),
            "{v}.s ILIKE 'U'",
            "CAST({v}.x AS string) || 'u' > {w}.s",
            "{v}.s LIKE {w}.s",
            "concat({v}.s, {w}.s) CONTAINS 'uv'",
            "NOT ({v}.s ~ 'v' AND {w}.x > 1)",
            "cidr_contains('10.0.0.{k}/31', concat('10.0.0.', CAST({v}.x AS string)))",
            v=v.name,
            w=w,
        )

    def having(self) -> str:
        bound = [v.name for v in self.variables if v.negation is None]
        return self.fill(
            "{v}.x * 4611686018427387904 IS NULL",
            "greatest({v}.x, {w}.x) {op} {k}",
            "concat({v}.s, {w}.s) <> 'uu'",
            "coalesce({v}.y, 1.5) >= 1",
            v=self.choose(*bound),
            w=self.choose(*bound),
        )


class MixedQueries(ChoosingQueries, FoldingQueries, BranchingQueries, CallingQueries):
    """All of it: conditions of each kind over any pattern, most of them with a choice."""

    timed = 60
    forbids = 4

    def pattern(self) -> str:
        kinds: tuple[type[FullQueries], ...] = (FullQueries, FoldingQueries, BranchingQueries)
        kind = self.choose(FullQueries, *kinds)
        return kind.pattern(self)

    def condition(self) -> str:
        kinds: tuple[type[FullQueries], ...] = (FoldingQueries, BranchingQueries, CallingQueries)
        kind = self.choose(FoldingQueries, *kinds)
        return kind.condition(self)

    def having(self) -> str:
        if self.of_kind(Kind.GROUP):
            return FoldingQueries.having(self)
        return CallingQueries.having(self)

    def returned(self) -> str:
        return FullQueries.returned(self)


KINDS = (
    MixedQueries,
    TimedQueries,
    PassingQueries,
    TouchingQueries,
    FoldingQueries,
    ChoosingQueries,
    BranchingQueries,
    CallingQueries,
)


@st.composite
def construct_cases(draw: st.DrawFn, most_events: int = MOST_EVENTS, **given: Any) -> Case:
    """Of any of these kinds; some with their values in structs, arrays and maps."""
    case = draw(full_cases(most_events, kind=draw(st.sampled_from(KINDS)), **given))
    return nested_case(case) if draw(st.integers(0, 3)) == 3 else case
