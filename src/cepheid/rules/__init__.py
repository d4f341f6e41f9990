"""Rule sets: many queries over the same events, most of them variations of a few.

A *template* is a query with parameters and a table of their values, one rule a row. Templates are
kept in columns; a rule is made when it is looked up. The rooms follow the way of a rule:

    load        files, tables of parameters, names, checks
    compile     which rules share an automaton, a query or a plan
    placement   on Spark: which rules share a pass, and how a pass is split
    run         in process, on Spark, on a stream, on a worker
    explain     what the rules share
    live        rules that change while a stream runs
"""

from __future__ import annotations

from cepheid.rules.findings import Finding
from cepheid.rules.live.versions import LiveRules
from cepheid.rules.live.watch import Watch
from cepheid.rules.ruleset import RuleSet
from cepheid.rules.template import Rule, Template

__all__ = ["Finding", "LiveRules", "Rule", "RuleSet", "Template", "Watch"]
