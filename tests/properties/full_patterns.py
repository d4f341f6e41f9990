"""Patterns over the whole language: `;` `->` `=>` mixed and nested, `&` `|` `!` `\\` `@`,
closures of every quantifier and mode, also over patterns.

What binding refuses is mostly not drawn: closures side by side, unless they are runs that touch
each other, or at the edge of a nested pattern. What depends on more than a neighbor is, now and
then: `full_cases` draws again.
"""

from __future__ import annotations

from tests.properties.drawing import Kind
from tests.properties.full_conditions import FullConditions
from tests.properties.patterns import OPEN, RUNS, Patterns

OPERATORS = {
    "any": (";",),
    "next": ("->",),
    "strict": ("=>",),
    "any, next": (";", "->"),
    "next, strict": ("->", "=>"),
    "all": (";", "->", "=>", "->"),
}
MODES = ("", "PREFIXES", "PREFIXES", "SUBSETS", "RUNS")


class FullPatterns(Patterns, FullConditions):
    """`outer`: the edges of a part are edges of the match, where a closure may stand. `timed`: how
    likely in percent a negation has a time of its own; `forbids`: how often there is one."""

    operators: tuple[str, ...] = (";",)
    repeats = 55
    timed = 25
    forbids = 2

    def operator(self) -> str:
        return self.choose(*self.operators)

    def pattern(self) -> str:
        self.operators = OPERATORS[self.choose(*OPERATORS, "any, next", "all", "next")]
        kind = self.choose(*["sequence"] * 7, "|", "&", "\\", "@")
        match kind:
            case "|":
                first = self.chain(2, outer=True)
                return f"({first}) | ({self.chain(self.left, outer=True)})"
            case "&":
                return self.conjunction(self.choose(3, 4))
            case "\\":
                return self.exception(self.chain(self.choose(1, 2, 3), outer=True))
            case "@":
                return self.delayed(self.chain(self.choose(1, 2, 3), outer=True))
            case _:
                return self.chain(self.choose(3, 2, 3, 4, 3, 5, 1), outer=True)

    # ── sequences ────────────────────────────────────────────────────────────

    def chain(self, most: int, *, outer: bool, negation: int | None = None) -> str:
        """A sequence of at most so many classes; the last part of a nested one is no closure."""
        end = len(self.variables) + min(most, self.left)
        text, before = "", ""
        while len(self.variables) < end:
            room = end - len(self.variables)
            edge = not before or room == 1
            if text and edge and room > 1 and self.chance(10):
                break
            operator = self.operator()
            if before.startswith("leading") and operator == "->":
                operator = ";"
            touches = before == "run" and operator == "=>"
            part, kind = self.link(
                room,
                "event" if touches else before,
                closures=outer or not edge,
                negation=negation,
            )
            text += f" {operator} {part}" if text else part
            if kind == "open" and not before:
                before = "leading open"
            elif kind == "open" and operator == "=>" and before in ("event", "run"):
                before = "run"
            else:
                before = kind
            if kind == "negation" and room == 1 and not self.binds(end - most):
                return f"{text} ; {self.atom(negation=negation)}" if self.left else self.atom()
        return text or self.atom(negation=negation)

    def binds(self, since: int) -> bool:
        return any(v.negation is None for v in self.variables[max(since, 0) :])

    def link(
        self, most: int, before: str, *, closures: bool, negation: int | None
    ) -> tuple[str, str]:
        """A part of a sequence and what it is: event, closure (open or free) or negation."""
        kind = self.choose(
            *["event"] * 6,
            *["closure"] * (6 if closures else 0),
            *["negation"] * (self.forbids if negation is None and most >= 2 else 0),
            *["nested"] * (3 if most >= 2 else 0),
        )
        match kind:
            case "closure":
                open_before = before == "run" or before.endswith("open")
                free = open_before or (not before and most == 1)
                return self.repeated(most, anchored=bool(before), free=free, negation=negation)
            case "negation":
                return self.negation(most - 1), "negation"
            case "nested":
                return self.nested(most, negation), "event"
            case _:
                return self.atom(negation=negation), "event"

    def nested(self, most: int, negation: int | None = None) -> str:
        kinds = ["sequence", "sequence", "&", "|", "|"]
        kinds += ["\\", "@"] if negation is None else []
        match self.choose(*kinds):
            case "sequence":
                return f"({self.chain(most, outer=False, negation=negation)})"
            case "&":
                return f"({self.conjunction(most, negation)})"
            case "|":
                return f"({self.disjunction(most, negation)})"
            case "\\" if most >= 2:
                return f"({self.exception(self.chain(most - 1, outer=False))})"
            case _:
                return f"({self.delayed(self.chain(most, outer=False))})"

    def conjunction(self, most: int, negation: int | None = None) -> str:
        room = min(most, self.left)
        first = self.parenthesized(room - 1, negation)
        second = self.parenthesized(max(1, room - 2), negation)
        if negation is None and self.left and self.chance(20):
            return f"{first} & {second} & {self.negation(1)}"
        return f"{first} & {second}"

    def disjunction(self, most: int, negation: int | None = None) -> str:
        room = min(most, self.left)
        first = self.parenthesized(room - 1, negation)
        if negation is None and self.left and self.chance(self.timed // 2):
            return f"{first} | {self.forbidden(1)} FOR {self.lasting()}"
        return f"{first} | {self.parenthesized(max(1, room - 2), negation)}"

    def parenthesized(self, most: int, negation: int | None) -> str:
        """A member or a branch: an event, or a sequence with closed edges."""
        if min(most, self.left) < 2 or not self.chance(35):
            return self.atom(negation=negation)
        return f"({self.chain(most, outer=False, negation=negation)})"

    def exception(self, pattern: str) -> str:
        if not self.left:
            return pattern
        number = self.negations
        self.negations += 1
        if self.left >= 2 and self.chance(25):
            return f"({pattern}) \\ ({self.chain(2, outer=False, negation=number)})"
        return f"({pattern}) \\ {self.atom(negation=number)}"

    def delayed(self, pattern: str) -> str:
        return f"({pattern}) @ {self.choose(1, 2, 3, 5)}"

    def negation(self, most: int) -> str:
        text = self.forbidden(most)
        return f"{text} FOR {self.lasting()}" if self.chance(self.timed) else text

    def lasting(self) -> int:
        return self.choose(2, 3, 1, 5, 4, 8)

    def forbidden(self, most: int) -> str:
        number = self.negations
        self.negations += 1
        if most >= 2 and self.chance(35):
            return f"!({self.chain(most, outer=False, negation=number)})"
        return f"!{self.atom(negation=number)}"

    # ── closures ─────────────────────────────────────────────────────────────

    def repeated(
        self, most: int, *, anchored: bool, free: bool, negation: int | None
    ) -> tuple[str, str]:
        """A closure; `anchored`: something stands before it, so that it may be the last part."""
        quantifier = self.choose(
            *(RUNS if free and self.chance(40) else (*OPEN, "+", "+", "{2}", "{2}"))
        )
        mode = "" if quantifier in (*RUNS, "?") else self.choose(*MODES)
        if free and quantifier not in RUNS:
            quantifier = quantifier.replace("?", "+")
            mode = self.choose("RUNS", "RUNS", "SUBSETS")
        first = len(self.variables)
        kind = Kind.OPTIONAL if quantifier == "?" else Kind.GROUP
        if most >= (2 if anchored else 3) and self.chance(50):
            room = most if anchored else most - 1
            text = f"({self.inside(room, kind, negation)}){quantifier}"
        else:
            text = self.atom(kind, negation, quantifier)
        text += f" {mode}" if mode else ""
        text += " STRICT" if self.chance(15) else ""
        if self.chance(15):
            text += f" UNTIL ({self.stop(first)})"
        return text, "free" if mode in ("RUNS", "SUBSETS") or quantifier in RUNS else "open"

    def inside(self, most: int, kind: Kind, negation: int | None) -> str:
        """The pattern of a group: its variables become groups."""
        first = len(self.variables)
        text = self.choose(self.pair_in_order, self.conjunction, self.disjunction)(most, negation)
        for n in range(first, len(self.variables)):
            variable = self.variables[n]
            if variable.kind is Kind.SINGLE:
                self.variables[n] = type(variable)(variable.name, kind, variable.negation)
        return text

    def pair_in_order(self, most: int, negation: int | None) -> str:
        return self.chain(most, outer=False, negation=negation)
