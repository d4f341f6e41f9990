"""The rules in order."""

from __future__ import annotations

from cepheid.rewrites.conditions import (
    constants,
    equalities,
    folding,
    pushdown,
    redundancy,
    tautology,
    windows,
)
from cepheid.rewrites.law import Rewrite
from cepheid.rewrites.patterns import (
    absences,
    association,
    contradiction,
    exceptions,
    factoring,
    flatten,
    negations,
    ordering,
)

REWRITES: tuple[Rewrite, ...] = (
    contradiction.REWRITE,  # before anything else: its warnings quote conditions as written
    folding.REWRITE,  # the others know conditions in its form
    tautology.REWRITE,
    windows.REWRITE,  # before pushdown: the less stands in WHERE, the sooner the next are done
    pushdown.REWRITE,  # before the next three, which look at WHERE
    constants.REWRITE,
    redundancy.REWRITE,  # after constants: an equality of two constants is one
    equalities.REWRITE,  # of the equalities that are left
    flatten.REWRITE,
    association.REWRITE,  # after flatten, which leaves chains inside arrows
    absences.REWRITE,  # after windows, which says whether there is one
    negations.REWRITE,
    exceptions.REWRITE,
    factoring.REWRITE,  # the conditions of branches are compared in their final form
    ordering.REWRITE,  # last: factoring makes and takes away branches
)
