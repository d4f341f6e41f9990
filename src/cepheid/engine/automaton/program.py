"""The program of an automaton: its states and edges as data.

A program is a list of instructions. Each one stands inside those before it: for every event (or
group) that one of them binds, those behind it are carried out, so that a match is found by going
depth first. Parts of the pattern are named by their paths. Nothing here is source text: `compiler`
makes a program of a pattern, `source` writes the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.algebra.patterns import Pattern
from cepheid.engine.automaton.instructions import Instructions
from cepheid.engine.automaton.program_text import listing


@dataclass(frozen=True, slots=True)
class Program:
    """What an automaton does for each start, and what its operator must know.

    `classes` are the variables whose events are listed, `starts` those of them that a match can
    start with, one for each entry. `groups` are the variables that bind groups. `windowed`: matches
    have a window; `in_time`: its clock is time; `reads_times`: matches depend on times, not on
    their order alone. `lasting`: events may last. `delayed`: ends are moved. `waits`: some matches
    are known only after their window. `looks_back`: events before a start may matter; `back`: those
    that are less than this before it may. `prompt`: matches are known with their last event.
    """

    pattern: Pattern
    instructions: Instructions
    classes: tuple[str, ...]
    starts: tuple[str, ...]
    groups: frozenset[str]
    windowed: bool
    in_time: bool
    reads_times: bool
    lasting: bool
    delayed: bool
    waits: bool
    looks_back: bool
    back: int
    prompt: bool

    def __str__(self) -> str:
        """One instruction in a line; a line that is indented belongs to the one above it."""
        facts = {"waits": self.waits, "looks back": self.looks_back, "delayed": self.delayed}
        traits = [name for name, holds in facts.items() if holds]
        head = [f"({', '.join(traits)})"] if traits else []
        return "\n".join([*head, *listing(self.pattern, self.instructions)])
