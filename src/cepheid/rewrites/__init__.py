"""Rewrites: a bound query becomes another one with the same matches that is cheaper to run.

One rewrite a file, in `patterns` or `conditions`, whose docstring states the law and its condition;
`catalog` has their order and `driver` applies them.
"""

from cepheid.rewrites.catalog import REWRITES
from cepheid.rewrites.driver import rewrite
from cepheid.rewrites.law import Applied, Facts, Rewrite, Rewritten

__all__ = ["REWRITES", "Applied", "Facts", "Rewrite", "Rewritten", "rewrite"]
