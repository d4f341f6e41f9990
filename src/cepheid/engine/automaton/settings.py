"""The programs of automata, and what they depend on besides the pattern."""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.engine.automaton.compiler import compile_pattern
from cepheid.engine.automaton.program import Program
from cepheid.engine.automaton.remembered import Remembered
from cepheid.plan.nodes import Automaton


@dataclass(frozen=True)
class Settings:
    """What a program depends on besides its node."""

    windowed: bool
    in_time: bool
    lasting: bool

    def program(self, node: Automaton) -> Program:
        """The program of this node; the engines of a query's shares, and of its later runs, have
        the same one."""
        return _programs.get(node, self, lambda: self._compiled(node))

    def _compiled(self, node: Automaton) -> Program:
        return compile_pattern(
            node, windowed=self.windowed, in_time=self.in_time, lasting=self.lasting
        )


_programs: Remembered[Automaton, Program] = Remembered()
