"""The rules in order."""

from __future__ import annotations

from cepheid.rewrites import (
    constants,
    contradiction,
    equalities,
    exceptions,
    factoring,
    flatten,
    folding,
    negations,
    ordering,
    pushdown,
    redundancy,
    tautology,
)
from cepheid.rewrites.rule import Rule

RULES: tuple[Rule, ...] = (
    contradiction.RULE,  # before anything else: its warnings quote conditions as written
    folding.RULE,  # the others know conditions in its form
    tautology.RULE,
    pushdown.RULE,  # before the next three, which look at WHERE
    constants.RULE,
    redundancy.RULE,  # after constants: an equality of two constants is one
    equalities.RULE,  # of the equalities that are left
    flatten.RULE,
    negations.RULE,
    exceptions.RULE,
    factoring.RULE,  # the conditions of branches are compared in their final form
    ordering.RULE,  # last: factoring makes and takes away branches
)
