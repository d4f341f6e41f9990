"""Rule sets: many queries over the same events, most of them variations of a few.

A *template* is a query with parameters and a table of their values, one rule a row. Templates are
kept in columns; a rule is made of one when it is asked for.
"""

from __future__ import annotations

from cepheid.rules.findings import Finding
from cepheid.rules.live import LiveRules
from cepheid.rules.ruleset import RuleSet
from cepheid.rules.template import Rule, Template
from cepheid.rules.watching import Watch

__all__ = ["Finding", "LiveRules", "Rule", "RuleSet", "Template", "Watch"]
