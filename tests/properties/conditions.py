"""Conditions of every role over the variables of a pattern."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from tests.properties.drawing import Drawing, Kind


class Conditions(Drawing):
    def of_kind(self, kind: Kind) -> list[str]:
        """Variables that a match binds, of one kind."""
        return [v.name for v in self.variables if v.kind is kind and v.negation is None]

    def pair(self, left: list[str], right: list[str]) -> tuple[str, str]:
        """Two different ones."""
        one = self.choose(*left)
        return one, self.choose(*(v for v in right if v != one))

    def condition(self) -> str:
        """A WHERE conjunct, of a kind for which the pattern has the variables."""
        singles = self.of_kind(Kind.SINGLE)
        groups = self.of_kind(Kind.GROUP)
        makers: list[Callable[[], str]] = [self.class_condition, self.key, self.of_the_match]
        if len(singles) >= 2:
            makers.extend((self.between_two, self.between_two, self.equality))
        if len(singles) >= 3:
            makers.append(self.over_three)
        if singles and (groups or self.of_kind(Kind.OPTIONAL)):
            makers.extend((self.filter, self.filter))
        if groups:
            makers.extend((self.running, self.check))
        if any(v.negation is not None for v in self.variables):
            makers.extend((self.forbidding, self.forbidding))
        return self.choose(*makers)()

    def class_condition(self) -> str:
        return self.fill(
            "{v}.x {op} {k}",
            "{v}.x {op} {k}",
            "{v}.s = 'u'",
            "{v}.x IS NULL",
            "{v}.x IS NOT NULL",
            "{v}.x IS NOT DISTINCT FROM {k}",
            "{v}.y {op} 1.5",
            "{v}.x IN (0, {k})",
            "{v}.x BETWEEN 1 AND {k}",
            "({v}.x = 1 OR {v}.s = 'u')",
            "NOT {v}.x = {k}",
            v=self.choose(*self.variables).name,
        )

    def between_two(self) -> str:
        singles = self.of_kind(Kind.SINGLE)
        v, w = self.pair(singles, singles)
        return self.fill(
            "{v}.x {op} {w}.x",
            "{v}.x {op} {w}.x",
            "{v}.y {op} {w}.y",
            "{v}.x + 1 {op} 2 * {w}.x",
            "({v}.x = 1 OR {w}.x > 1)",
            "{v}.s <> {w}.s",
            "{v}.s {op} {w}.s",
            "{v}.x {op} {w}.y",
            "coalesce({v}.x, {w}.x) > 1",
            "{v}.x IS DISTINCT FROM {w}.x",
            v=v,
            w=w,
        )

    def equality(self) -> str:
        singles = self.of_kind(Kind.SINGLE)
        v, w = self.pair(singles, singles)
        column = self.choose("x", "id", "s", "y")
        return f"{v}.{column} = {w}.{column}"

    def over_three(self) -> str:
        u, v, w = self.draw(st.permutations(self.of_kind(Kind.SINGLE)))[:3]
        return self.fill("{u}.x + {v}.x {op} {w}.x", u=u, v=v, w=w)

    def key(self) -> str:
        return self.choose("[id]", "[id]", "[s]", "[id = 1]")

    def filter(self) -> str:
        """With a neighbor it decides which events qualify; with a later variable, or another
        group, it is a check."""
        groups = self.of_kind(Kind.GROUP) + self.of_kind(Kind.OPTIONAL)
        v, w = self.pair(groups, self.of_kind(Kind.SINGLE) + groups)
        column = self.choose("x", "x", "y", "id")
        return self.fill(f"{{v}}.{column} {{op}} {{w}}.{column}", v=v, w=w)

    def running(self) -> str:
        group = self.choose(*self.of_kind(Kind.GROUP))
        names = [v.name for v in self.variables]
        earlier = [v for v in self.of_kind(Kind.SINGLE) if names.index(v) < names.index(group)]
        extra = f" + {self.choose(*earlier)}.x" if earlier and self.chance(25) else ""
        function = self.choose("PREV", "PREV", "FIRST", "LAST", "avg", "max")
        default = f"{self.choose(*earlier)}.x" if earlier else "{k}"
        return self.fill(
            f"{{b}}.x {{op}} {function}({{b}}.x){extra}",
            f"{{b}}.x {{op}} {function}({{b}}.x){extra}",
            f"{{b}}.x {{op}} PREV({{b}}.x, {default}){extra}",
            f"PREV({{b}}.x) {{op}} {{k}}{extra}",
            f"{{b}}.x {{op}} {self.rarer_aggregate(f'{group}.x')}{extra}",
            b=group,
        )

    def aggregate(self) -> str | None:
        groups = self.of_kind(Kind.GROUP)
        if not groups:
            return None
        read = f"{self.choose(*groups)}.x"
        function = self.choose("sum", "avg", "min", "max", "count", "first", "last", "other")
        return f"{function}({read})" if function != "other" else self.rarer_aggregate(read)

    def rarer_aggregate(self, read: str) -> str:
        """Of an attribute x."""
        return self.fill(
            f"count(DISTINCT {read})",
            f"sum(DISTINCT {read})",
            f"FIRST({read}, 1)",
            f"LAST({read}, 1)",
            f"stddev({read})",
            f"reduce({read[:-2]}, {{k}}, acc -> 2 * acc - {read})",
        )

    def check(self) -> str:
        singles = self.of_kind(Kind.SINGLE)
        right = f"{self.choose(*singles)}.x" if singles and self.chance(50) else "{k}"
        aggregate = self.aggregate()
        return self.fill(
            f"{aggregate} {{op}} {right}",
            f"{aggregate} {{op}} {right}",
            "count({b}) {op} 2",
            f"ALL({{b}}.x) {{op}} {right}",
            f"SOME({{b}}.x) {{op}} {right}",
            b=self.choose(*self.of_kind(Kind.GROUP)),
        )

    def forbidding(self) -> str:
        """Says which events a negation forbids, with none, one or two others."""
        negated = self.choose(*(v for v in self.variables if v.negation is not None))
        others = [
            v.name
            for v in self.variables
            if v != negated and v.kind is Kind.SINGLE and v.negation in (None, negated.negation)
        ]
        if not others:
            return self.fill("{n}.x {op} {k}", n=negated.name)
        aggregate = self.aggregate()
        return self.fill(
            "{n}.x {op} {v}.x",
            "{n}.id = {v}.id",
            "{n}.x {op} {v}.x + {w}.x",
            "({n}.x = {v}.x OR {n}.s = {w}.s)",
            "{n}.x BETWEEN {v}.x AND {w}.x",
            "{n}.x {op} {v}.x" if aggregate is None else f"{{n}}.x {{op}} {aggregate}",
            n=negated.name,
            v=self.choose(*others),
            w=self.choose(*others),
        )

    def of_the_match(self) -> str:
        bound = [v.name for v in self.variables if v.negation is None]
        if len(bound) < 2 or self.chance(50):
            return self.fill("duration() {op} 1 + {k}")
        v, w = self.pair(bound, bound)
        return f"({v}, {w}) OCCURS WITHIN {self.choose(2, 3, 5)}"

    def having(self) -> str:
        bound = [v.name for v in self.variables if v.negation is None]
        aggregate = self.aggregate()
        options = ["duration() > {k}", "{v}.x {op} {k}", "{v}.x IS NULL"]
        if len(bound) >= 2:
            options.extend(("{v}.x {op} {w}.x", "{v}.x {op} {w}.x"))
        if aggregate is not None:
            options.extend((f"{aggregate} {{op}} {{k}}", f"{aggregate} {{op}} {{k}}"))
        v, w = self.pair(bound, bound) if len(bound) >= 2 else (bound[0], "")
        return self.fill(*options, v=v, w=w)
