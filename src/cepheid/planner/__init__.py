"""Makes plans: alternatives of disjunctions, shapes of join trees, what hangs on which node."""

from cepheid.planner.plan import make_plan

__all__ = ["make_plan"]
