"""Rules that match nothing, whatever the events are."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from cepheid.engine.attribution.json_rows import RULE
from cepheid.engine.merged.group import RuleGroup
from cepheid.rules.compile.compiled_rules import CompiledRules

_ONE_EVENT = "no event can fulfill all conditions of one of its steps"


def contradictions(compiled: CompiledRules) -> Iterator[str]:
    """What is wrong with each query whose rules can match nothing, with one of the rules."""
    names = compiled.rules[RULE]
    for group in compiled.groups:
        for numbers in _without_path(group):
            yield _text([names[int(number)].as_py() for number in numbers], _ONE_EVENT)
    for query in compiled.alone:
        nothing = query.prepared.query.nothing
        if nothing is not None:
            yield _text([names[int(number)].as_py() for number in query.rules], nothing)


def _without_path(group: RuleGroup) -> Iterator[np.ndarray]:
    """The numbers of rules that no path of the automaton leads to, query by query."""
    reached = np.unique(group.merged.graph.rules.values)
    for begin, numbers in zip(group.merged.begins, group.numbers, strict=False):
        there = np.isin(begin + np.arange(len(numbers)), reached)
        if not there.all():
            yield numbers[~there]


def _text(rules: list[str], why: str) -> str:
    more = f" (and {len(rules) - 1:,} more of its query)" if len(rules) > 1 else ""
    return f"{rules[0]}{more}: the rule matches nothing: {why}"


def warn_of_contradictions(compiled: CompiledRules, stacklevel: int) -> None:
    for message in contradictions(compiled):
        warnings.warn(message, stacklevel=stacklevel + 1)
