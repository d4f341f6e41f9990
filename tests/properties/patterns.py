"""Patterns that bind: `;` `&` `|` `!`, and closures where they are legal."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.properties.drawing import Drawing, Kind, Variable

MOST_CLASSES = 5
OPEN = ("+", "*", "?", "{1,2}", "{2,3}", "{0,2}", "{2,}")
RUNS = ("{1}", "{2}", "{3}")


class Patterns(Drawing):
    """`most` is, everywhere, how many classes a part may use; `repeats`, how likely in percent an
    event is of a type that occurs already."""

    repeats = 25

    @property
    def left(self) -> int:
        return MOST_CLASSES - len(self.variables)

    def atom(self, kind: Kind = Kind.SINGLE, negation: int | None = None, suffix: str = "") -> str:
        name = "abcdefgh"[len(self.variables)]
        kinds = [name.upper()]
        if self.types and self.chance(self.repeats):
            kinds = [self.choose(*self.types)]
        if self.chance(8):
            kinds = list(dict.fromkeys([*kinds, self.choose("A", "B", "C")]))
        self.types.extend(k for k in kinds if k not in self.types)
        self.variables.append(Variable(name, kind, negation))
        word = kinds[0] if len(kinds) == 1 else f"ANY({', '.join(kinds)})"
        return f"{word} {name}{suffix}"

    def negation(self, most: int) -> str:
        number = self.negations
        self.negations += 1
        if most >= 2 and self.chance(25):
            operator = self.choose(" ; ", " & ", " | ")
            both = self.atom(negation=number), self.atom(negation=number)
            return f"!({operator.join(both)})"
        return f"!{self.atom(negation=number)}"

    def closure(self, quantifier: str) -> str:
        kind = Kind.OPTIONAL if quantifier == "?" else Kind.GROUP
        return self.atom(kind, suffix=quantifier)

    def composite(self, most: int) -> str:
        """A conjunction or disjunction inside a sequence, with closed edges."""
        operator = self.choose(" & ", " | ")
        before = self.left
        members = [self.member(most - 1)]
        members.append(self.member(most - (before - self.left)))
        if operator == " & " and before - self.left < most and self.chance(20):
            members.append(self.negation(most - (before - self.left)))
        return f"({operator.join(members)})"

    def member(self, most: int) -> str:
        """An event, or a sequence that begins and ends with one; of at most so many classes."""
        if most < 2 or not self.chance(30):
            return self.atom()
        parts = [self.atom()]
        if most >= 3 and self.chance(60):
            quantifier = self.choose(*OPEN, *RUNS)
            parts.append(self.closure(quantifier) if self.chance(50) else self.negation(1))
        elif most >= 3 and self.chance(20):
            return f"({parts[0]} ; {self.atom()} ; {self.negation(1)})"
        return f"({' ; '.join([*parts, self.atom()])})"

    def sequence(self, most: int) -> str:
        """One to `most` parts at the top, where the edges are the match's own."""
        before = len(self.variables)
        parts: list[str] = []
        open_parts: list[bool] = []
        most = min(most, self.left)
        while len(self.variables) - before < most:
            if parts and self.chance(10):
                break
            parts.append(self.part(most - (len(self.variables) - before), open_parts))
        if not any(open_parts) and all(p.startswith("!") for p in parts):
            parts[-1:] = self.instead_of_last(parts)
        return " ; ".join(parts)

    def instead_of_last(self, parts: list[str]) -> list[str]:
        """A pattern of negations alone has nothing to match: its last becomes an event."""
        if self.left:
            return [parts[-1], self.atom()]
        last = [v for v in self.variables if v.negation == self.negations - 1]
        del self.variables[-len(last) :]
        return [self.atom()]

    def part(self, most: int, open_parts: list[bool]) -> str:
        """Appends to `open_parts` whether the part is a maximal closure; negations have none."""
        kind = self.draw(st.integers(0, 99))
        # Two maximal closures can't stand side by side, nor at both edges, nor one alone: so one
        # leads only if an event follows at once, and at most one edge is open.
        if kind < 22:
            return self.negation(most)
        if kind < 45 and open_parts and not open_parts[-1] and not open_parts[0]:
            open_parts.append(True)
            return self.closure(self.choose(*OPEN))
        if kind < 50 and not open_parts and most >= 2:
            open_parts.extend((True, False))
            return f"{self.closure(self.choose(*OPEN))} ; {self.atom()}"
        if kind < 58:
            open_parts.append(False)
            return self.closure(self.choose(*RUNS))
        open_parts.append(False)
        if kind < 75 and most >= 2:
            return self.composite(most)
        return self.atom()

    def pattern(self) -> str:
        match self.draw(st.integers(0, 9)):
            case 0:
                first = self.sequence(2)
                return f"({first}) | ({self.sequence(3)})" if self.left else first
            case 1:
                members = [self.member(MOST_CLASSES - 2), self.member(self.left - 1)]
                if self.chance(40):
                    members.append(self.negation(self.left))
                return " & ".join(members)
            case _:
                return self.sequence(self.choose(2, 3, 3, 4, 5, 1))
