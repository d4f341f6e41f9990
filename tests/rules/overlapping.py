"""Random sets of queries that overlap: one is drawn, and the others are made of it."""

from __future__ import annotations

import re

from hypothesis import reject
from hypothesis import strategies as st

from tests.properties.construct_strategies import BranchingQueries, ChoosingQueries, MixedQueries
from tests.properties.drawing import Kind
from tests.properties.full_strategies import FullQueries, TimedQueries
from tests.properties.strategies import Queries, streams
from tests.rules.strategies import TYPES, Set, binds
from tests.rules.templates import WEAK, also

TRIES = 4
KINDS: tuple[type[Queries | FullQueries], ...] = (
    *[Queries] * 8,
    *[FullQueries] * 2,
    TimedQueries,
    ChoosingQueries,
    BranchingQueries,
    MixedQueries,
)


class Variants:
    """Makes queries of one that was drawn: with another end, in other names, with a condition more
    or fewer, with another window, returning something else."""

    def __init__(self, drawing: Queries | FullQueries, query: str) -> None:
        self.drawing = drawing
        self.lines = query.splitlines()

    def variant(self) -> str:
        lines = list(self.lines)
        for _ in range(self.drawing.choose(1, 1, 2, 3)):
            way = self.drawing.choose(
                self.extended, self.extended, self.asking, self.having, self.without,
                self.within, self.within, self.renamed, self.returning,
                self.skipping,
            )  # fmt: skip
            lines = way(lines)
        return "\n".join(lines)

    def extended(self, lines: list[str]) -> list[str]:
        """A part of a larger pattern."""
        leaf = f"{self.drawing.choose(*TYPES)} z{len(lines[0])}"
        whole = lines[0].removeprefix("PATTERN ")
        new = self.drawing.choose(
            f"({whole}) ; {leaf}",
            f"({whole}) ; {leaf}",
            f"{leaf} ; ({whole})",
            f"({whole}) & {leaf}",
            f"({whole}) | {leaf}",
            f"{leaf} ; ({whole}) ; !C n{len(lines[0])} ; B y{len(lines[0])}",
        )
        return [f"PATTERN {new}", *lines[1:]]

    def asking(self, lines: list[str]) -> list[str]:
        return self.more("WHERE", lines)

    def having(self, lines: list[str]) -> list[str]:
        return self.more("HAVING", lines)

    def more(self, clause: str, lines: list[str]) -> list[str]:
        singles, aggregate = self.drawing.of_kind(Kind.SINGLE), self.drawing.aggregate()
        read = [f"{name}.x" for name in singles] + ([aggregate] if aggregate else [])
        asked = [self.drawing.fill(*WEAK, v=self.drawing.choose(*read))] if read else []
        return also(lines, clause, self.drawing.choose(*asked, "duration() < 9"))

    def without(self, lines: list[str]) -> list[str]:
        """Without a clause, or a condition."""
        clause = self.drawing.choose("WHERE", "HAVING")
        kept: list[str] = []
        for line in lines:
            if not line.startswith(clause):
                kept.append(line)
            elif " AND " in line and "BETWEEN" not in line:
                kept.append(line[: line.rindex(" AND ")])
        return kept

    def within(self, lines: list[str]) -> list[str]:
        window = f"WITHIN {self.drawing.choose(4, 8, 12, 20)}"
        return [window if line.startswith("WITHIN") else line for line in lines]

    def skipping(self, lines: list[str]) -> list[str]:
        """With AFTER MATCH, or without."""
        kept = [line for line in lines if not line.startswith("AFTER")]
        if len(kept) < len(lines):
            return kept
        place = next((n for n, line in enumerate(kept) if line.startswith("RETURN")), len(kept))
        return [*kept[:place], "AFTER MATCH SKIP PAST LAST EVENT", *kept[place:]]

    def renamed(self, lines: list[str]) -> list[str]:
        """The same variables in other names, and some in names that others have."""
        names = [v.name for v in self.drawing.variables]
        moved = dict(zip(names, [*names[1:], f"{names[0]}_2"], strict=True))
        pattern = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b(?!\()")
        return [pattern.sub(lambda found: moved[found[0]], line) for line in lines]

    def returning(self, lines: list[str]) -> list[str]:
        singles = self.drawing.of_kind(Kind.SINGLE)
        if not singles:
            return lines
        name = self.drawing.choose(*singles)
        kept = [line for line in lines if not line.startswith("RETURN")]
        return [*kept, f"RETURN {name}.row, {name}.x + 1 AS more, duration() AS long"]


@st.composite
def overlapping(draw: st.DrawFn, most_events: int = 14) -> Set:
    tie = draw(st.sampled_from((None, None, "n")))
    schema = Set({}, (), tie).schema
    for _ in range(TRIES):
        drawing = draw(st.sampled_from(KINDS))(draw)
        query = _inside(drawing, drawing.query())
        if binds(query, schema):
            break
    else:
        reject()
    variants = Variants(drawing, query)
    made = [variants.variant() for _ in range(draw(st.sampled_from((1, 2, 2, 3))))]
    fitting = [query, *(variant for variant in made if binds(variant, schema))]
    events = draw(streams(list(dict.fromkeys([*TYPES, *drawing.types])), most_events))
    return Set({f"rule {n}": (text, None) for n, text in enumerate(fitting)}, events, tie)


def _inside(drawing: Queries | FullQueries, query: str) -> str:
    """Half of the patterns are between two events, where a longer window changes nothing; and some
    have a key."""
    if drawing.chance(50):
        pattern, *rest = query.splitlines()
        query = "\n".join([f"PATTERN A s ; ({pattern.removeprefix('PATTERN ')}) ; B e", *rest])
    if drawing.chance(30) and "[id]" not in query:
        query = "\n".join(also(query.splitlines(), "WHERE", "[id]"))
    return query
