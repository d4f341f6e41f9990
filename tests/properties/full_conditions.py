"""Conditions that only the whole language has: UNTIL, uneven keys, groups inside negations."""

from __future__ import annotations

from tests.properties.conditions import Conditions
from tests.properties.drawing import Kind, Variable


class FullConditions(Conditions):
    def stop(self, first: int) -> str:
        """UNTIL of the closure whose variables begin at a place: it reads them, or what is bound
        before."""
        own = [v for v in self.variables[first:] if v.kind is not Kind.SINGLE]
        group = self.choose(*(own or self.variables[first:])).name
        earlier = [
            v.name for v in self.variables[:first] if v.kind is Kind.SINGLE and v.negation is None
        ]
        options = ["{b}.x = {k}", "{b}.x = {k}", "sum({b}.x) >= {k}", "count({b}) >= 2"]
        options += ["{b}.x > {a}.x", "max({b}.x) > {a}.x"] if earlier else []
        return self.fill(*options, b=group, a=self.choose(*earlier) if earlier else "")

    def condition(self) -> str:
        groups = ["group"] * (5 if self.of_kind(Kind.GROUP) else 0)
        match self.choose(*["plain"] * 8, *groups, "key", "time", "inside", "match"):
            case "group":
                return self.choose(self.running, self.running, self.check, self.filter_of_group)()
            case "key":
                return self.uneven_key()
            case "time":
                return self.of_times()
            case "match":
                return self.of_the_match()
            case "inside":
                return self.inside_a_negation()
            case _:
                return super().condition()

    def filter_of_group(self) -> str:
        return self.filter() if len(self.of_kind(Kind.SINGLE)) else self.check()

    def uneven_key(self) -> str:
        """Connects an attribute of every variable, which may have another name in each."""
        first, *others = [
            *(v for v in self.variables if v.negation is None),
            *(v for v in self.variables if v.negation is not None),
        ]
        column = self.choose("id", "x")
        parts = [
            f"{first.name}.{column} = {other.name}.{self.choose(column, column, 'n')}"
            for other in others
        ]
        return " AND ".join(parts) or "[id]"

    def of_times(self) -> str:
        groups, singles = self.of_kind(Kind.GROUP), self.of_kind(Kind.SINGLE)
        if groups and singles:
            end = self.choose("LAST", "FIRST", "max")
            return self.fill(
                f"{end}({{b}}.ts) - {{a}}.ts {{op}} {{k}}",
                b=self.choose(*groups),
                a=self.choose(*singles),
            )
        if len(singles) >= 2:
            v, w = self.pair(singles, singles)
            return self.fill("{v}.ts + {k} {op} {w}.ts", v=v, w=w)
        return self.class_condition()

    def inside_a_negation(self) -> str:
        groups = [v for v in self.variables if v.negation is not None and v.kind is Kind.GROUP]
        if not groups:
            return super().condition()
        group = self.choose(*groups)
        return self.fill(
            "count({b}) {op} 2",
            "{b}.x > PREV({b}.x)",
            "{b}.x >= PREV({b}.x, {k})",
            "sum({b}.x) {op} {v}.x",
            b=group.name,
            v=self.choose(*self.beside(group)) if self.beside(group) else group.name,
        )

    def beside(self, negated: Variable) -> list[str]:
        return [
            v.name
            for v in self.variables
            if v.kind is Kind.SINGLE and v.negation in (None, negated.negation)
        ]

    def having(self) -> str:
        """Weak ones, so that matches are left."""
        bound = [v.name for v in self.variables if v.negation is None]
        aggregate = self.aggregate()
        options = ["duration() < 2 + {k}", "{v}.x <> {k}", "{v}.x >= 1", "{v}.y > 1"]
        options += ["{v}.x <= {w}.x", "{v}.id = {w}.id"] if len(bound) >= 2 else []
        options += [f"{aggregate} >= {{k}}", f"{aggregate} <= 3"] if aggregate else []
        if groups := self.of_kind(Kind.GROUP):
            options += [f"SOME({groups[0]}.x) > {{k}}", f"count({groups[0]}) <> {{k}}"]
        v, w = self.pair(bound, bound) if len(bound) >= 2 else (bound[0], "")
        return self.fill(*options, v=v, w=w)
