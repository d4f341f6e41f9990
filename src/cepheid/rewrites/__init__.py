"""Rewrites: a bound query becomes another one with the same matches that is cheaper to run.

One rule a file, whose docstring states the law and its condition; `rules` has their order and
`driver` applies them.
"""

from cepheid.rewrites.driver import rewrite
from cepheid.rewrites.rule import Applied, Facts, Rewritten, Rule
from cepheid.rewrites.rules import RULES

__all__ = ["RULES", "Applied", "Facts", "Rewritten", "Rule", "rewrite"]
