"""Makes plans: rewritten queries, alternatives of disjunctions, trees of joins, the cheapest of
them; and changes them while they run."""

from cepheid.planner.automata.automaton_plans import automaton_plan
from cepheid.planner.plan import make_plan
from cepheid.planner.prepare import Prepared, analyzed, prepare

__all__ = ["Prepared", "analyzed", "automaton_plan", "make_plan", "prepare"]
