"""Random queries over the whole language that return answers."""

from __future__ import annotations

from tests.properties.construct_strategies import BranchingQueries, ChoosingQueries
from tests.properties.drawing import Kind, Variable
from tests.properties.full_strategies import FullQueries, PartedQueries, TimedQueries

WINDOWS = ("TUMBLE(7)", "HOP(3, 7)", "HOP(5, 2)", "SESSION(3)", "RANGE(4)")
AGGREGATES = (
    "count(*)",
    "count(*)",
    "approx_count(*)",
    "count({})",
    "sum({})",
    "min({})",
    "max({})",
    "avg({})",
    "stddev({})",
    "first({})",
    "last({})",
    "collect({})",
    "count(DISTINCT {})",
    "sum(DISTINCT {})",
)


class AnsweringQueries(FullQueries):
    """Groups, a window, conditions on groups, and aggregates over matches."""

    aggregates = AGGREGATES

    def query(self, *, returning: bool = True) -> str:
        lines = super().query().splitlines()
        values = [self.value(v) for v in self.variables if v.negation is None]
        groups = [self.choose(*values)] if self.chance(40) else []
        if not self.chance(20):
            groups.append(self.choose(*WINDOWS))
        if groups:
            lines.append(f"GROUP BY {', '.join(groups)}")
            if self.chance(20):
                lines.append("HAVING count(*) > 1")
        chosen = dict.fromkeys(
            self.choose(*self.aggregates).format(self.choose(*values, "duration()"))
            for _ in range(self.choose(1, 2, 3))
        )
        columns = [f"{text} AS m{n}" for n, text in enumerate(chosen)]
        columns += [f"{text} AS g{n}" for n, text in enumerate(groups) if text not in WINDOWS]
        if groups and groups[-1] in WINDOWS:
            columns.append("window_end")
        lines.append(f"RETURN {', '.join(columns)}")
        # LIMIT counts answers, and which come first is open where windows end together.
        return "\n".join(line for line in lines if not line.startswith("LIMIT"))

    def value(self, v: Variable) -> str:
        if v.kind is Kind.SINGLE:
            return self.fill("{v}.x", "{v}.x", "{v}.id", "{v}.x + 1", v=v.name)
        return self.fill("count({v})", "sum({v}.x)", "max({v}.x)", v=v.name)


class AnsweringPartedQueries(AnsweringQueries, PartedQueries):
    pass


class AnsweringTimedQueries(AnsweringQueries, TimedQueries):
    pass


class AnsweringBranchingQueries(AnsweringQueries, BranchingQueries):
    pass


class AnsweringChoosingQueries(AnsweringQueries, ChoosingQueries):
    pass


KINDS: tuple[type[AnsweringQueries], ...] = (
    AnsweringQueries,
    AnsweringQueries,
    AnsweringPartedQueries,
    AnsweringTimedQueries,
    AnsweringBranchingQueries,
    AnsweringChoosingQueries,
)


class AnsweringChains(AnsweringQueries):
    """Mostly counted: events one after the other, in branches or in any order; between them
    negations of one event, and groups."""

    aggregates = AGGREGATES[:8]
    operators = (";",)

    def pattern(self) -> str:
        match self.choose("chain", "chain", "chain", "branches", "any order", "part"):
            case "branches":
                return f"({self.steps(2)}) | ({self.steps(2)})"
            case "any order":
                return self.unordered()
            case "part":
                part = self.choose(self.either, self.unordered)
                return f"{self.atom()} ; ({part()}) ; {self.atom()}"
            case _:
                return self.steps(self.choose(2, 3, 3, 4))

    def steps(self, most: int) -> str:
        text = self.atom()
        for _ in range(most - 1):
            if self.chance(15):
                text += f" ; {self.forbidden(1)}"
            elif self.chance(15) and self.left > 1:
                mode = self.choose(" SUBSETS", " RUNS", " PREFIXES", "")
                text += f" ; {self.atom(Kind.GROUP)}+{mode}"
            text += f" ; {self.atom()}"
        return text

    def either(self) -> str:
        return f"{self.atom()} | {self.atom()}"

    def unordered(self) -> str:
        return f"{self.atom()} & {self.atom()}"

    def window(self, pattern: str) -> list[str]:
        return [f"WITHIN {self.choose(12, 8, 6, 10, 4)}"]

    def using(self) -> list[str]:
        return []

    def skipping(self) -> list[str]:
        return []
