"""Compiled rules with more rules, or without some: at a cost that follows the change.

What is compiled stays as it is. Rules that come are compiled by themselves, and run beside those
that were there; rules that go leave their places empty, and get no alerts. Both make a run a little
slower, so that a set that has changed much is compiled as a whole (`compilations`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.attribution.json_rows import RULE
from cepheid.engine.merged.group import GONE, RuleGroup
from cepheid.rules.compile.alert_values import rule_columns
from cepheid.rules.compile.compiled_rules import CompiledRules
from cepheid.rules.compile.rule_queries import Alone
from cepheid.rules.template import Template


def with_later(before: CompiledRules, later: CompiledRules) -> CompiledRules:
    """The rules of both, each compiled by itself."""
    first, place = before.rules.num_rows, len(before.alone)
    groups = (
        replace(group, numbers=tuple(numbers + first for numbers in group.numbers))
        for group in later.groups
    )
    alone = (replace(query, rules=query.rules + first) for query in later.alone)
    joints = (
        replace(joint, places=tuple(place + at for at in joint.places)) for joint in later.joints
    )
    return CompiledRules(
        pa.concat_tables([before.rules, later.rules], promote_options="permissive"),
        (*before.groups, *groups),
        (*before.alone, *alone),
        (*before.joints, *joints),
    )


def without(before: CompiledRules, names: pa.Array) -> CompiledRules | None:
    """Without the rules of these names, whose numbers stay free. None if a query that others are
    joined with has no rule left."""
    gone = pc.is_in(before.rules[RULE].combine_chunks(), value_set=names)
    there = ~gone.to_numpy(zero_copy_only=False)
    left = [_left(query, there) for query in before.alone]
    if any(left[place] is None for joint in before.joints for place in joint.places):
        return None
    place = np.cumsum([query is not None for query in left]) - 1
    joints = (
        replace(joint, places=tuple(int(place[at]) for at in joint.places))
        for joint in before.joints
    )
    groups = (_left_of_group(group, there) for group in before.groups)
    return CompiledRules(
        before.rules,
        tuple(group for group in groups if group is not None),
        tuple(query for query in left if query is not None),
        tuple(joints),
    )


def _left(query: Alone, there: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Alone | None:
    kept = np.flatnonzero(there[query.rules])
    if len(kept) == len(query.rules):
        return query
    residual = None if query.residual is None else query.residual.of(kept)
    return replace(query, rules=query.rules[kept], residual=residual) if len(kept) else None


def _left_of_group(
    group: RuleGroup, there: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> RuleGroup | None:
    numbers = tuple(np.where((n != GONE) & there[n], n, GONE) for n in group.numbers)
    return replace(group, numbers=numbers) if any((n != GONE).any() for n in numbers) else None


def carrying(compiled: CompiledRules, templates: Sequence[Template]) -> CompiledRules:
    """With the columns that these templates carry: rules that are gone may have carried more."""
    schema = rule_columns(templates).schema
    rules = compiled.rules.select(schema.names).cast(schema).combine_chunks()
    return replace(compiled, rules=rules)
