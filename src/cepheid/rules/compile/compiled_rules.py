"""Rules bound to the columns of the events: which run together, and which alone.

A template is bound once, with parameters that vary, and becomes a branch of the merged automaton if
its query is a path. What decides about the shape of a query, such as an amount of time, can't vary:
rows that differ in it are branches of their own. All other rules run apart from those: as few
queries as may be, each for all rules that can share it (`shared_query`), each distinct one once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from cepheid.algebra.expressions import Varying
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.text import query_text
from cepheid.algebra.types import Type
from cepheid.engine.attribution.json_rows import RULE
from cepheid.engine.attribution.owners import Attribution
from cepheid.engine.merged.group import RuleGroup
from cepheid.engine.merged.merge import TemplateRules, merge
from cepheid.engine.merged.paths import NoPath, path_of
from cepheid.errors import PlanError, QueryError, UnsupportedError
from cepheid.options import Options
from cepheid.planner import Prepared, prepare
from cepheid.rewrites import rewrite
from cepheid.rewrites.conditions.constants import spread
from cepheid.rules.compile.alert_values import rule_columns, with_key
from cepheid.rules.compile.dealt_queries import (
    ANSWERS,
    RowBinding,
    dealt,
    dealt_lists,
)
from cepheid.rules.compile.rule_queries import (
    Alone,
    Columns,
    Ints,
    RuleCandidate,
    RuleTarget,
    RuleUnit,
)
from cepheid.rules.compile.shared_plan import SharedPlan, joined
from cepheid.rules.compile.shared_query import (
    agreed,
    choice_of_rules,
    widened,
    window_is_filter,
    window_parameters,
)
from cepheid.rules.compile.template_rows import (
    alike,
    lists,
    patterns,
    shaping,
    values_of,
)
from cepheid.rules.compile.variant_query import NoVariants
from cepheid.rules.load.lifted import lifted
from cepheid.rules.template import Template

FEWEST_VARIANTS = 3
"""From this many on, dealing events is cheaper than a run for each."""


@dataclass(frozen=True)
class EngineRun:
    """What one engine runs: a query of its own, or several joined ones. `place` is the place of the
    first; `attributions` assign the matches to rules."""

    place: int
    prepared: Prepared
    members: tuple[Alone, ...]
    attributions: tuple[Attribution, ...]


@dataclass(frozen=True)
class CompiledRules:
    """The rules by number, with their names and carried columns, and how they run. `joints` lists
    which of the ungrouped queries run as one. `following` are queries that run after these, since
    they read their matches, and how many rules each has."""

    rules: pa.Table
    groups: tuple[RuleGroup, ...]
    alone: tuple[Alone, ...]
    joints: tuple[SharedPlan, ...] = ()
    following: tuple[tuple[str, int], ...] = ()

    @property
    def required(self) -> frozenset[str]:
        """The columns that any rule reads."""
        groups = (group.required for group in self.groups)
        return frozenset().union(*groups, *(query.required for query in self.alone))

    @property
    def choosing(self) -> pa.Array:
        """The names of the rules that choose among their matches, by AFTER MATCH SKIP or LIMIT, or
        return answers about them."""
        numbers = [
            query.rules
            for query in self.alone
            if query.bound.selection is not None or query.bound.answers is not None
        ]
        chosen = np.concatenate([np.zeros(0, np.int64), *numbers])
        return self.rules[RULE].combine_chunks().take(pa.array(chosen))

    @property
    def runs(self) -> tuple[EngineRun, ...]:
        """One run for each joint and each query that is in no group and no joint."""
        together = {place for joint in self.joints for place in joint.places}
        runs = [
            EngineRun(
                n,
                query_alone.prepared,
                (query_alone,),
                (Attribution(query_alone.rules, query_alone.residual),),
            )
            for n, query_alone in enumerate(self.alone)
            if n not in together
        ]
        for joint in self.joints:
            members = tuple(self.alone[place] for place in joint.places)
            pairs = zip(members, joint.owners, strict=True)
            attributions = tuple(
                Attribution(query.rules, query.residual, owner) for query, owner in pairs
            )
            runs.append(EngineRun(joint.places[0], joint.prepared, members, attributions))
        return tuple(sorted(runs, key=lambda run: run.place))


def compile_rules(
    templates: tuple[Template, ...],
    columns: Columns,
    options: Options,
    by_key: bool = False,
    deals: bool = False,
    ends: bool = False,
) -> CompiledRules:
    """Compile the rules. Raises `QueryError` if a rule doesn't fit the events (`check` reports all
    such rules). With `by_key`, rules that have a key in common are a group, for runtimes that
    spread the work; `deals` and `ends` are said in `RuleTarget`.
    """
    target = RuleTarget(columns, options, deals, ends, gathers=ends and not by_key)

    def candidates_of(unit: RuleUnit) -> Iterator[RuleCandidate]:
        return _candidates(unit, target)

    candidates = [c for unit in _units(templates) for c in candidates_of(unit)]
    while True:
        groups, merged_not = _merged(candidates, by_key)
        shared, rest = _shared(merged_not, target)
        if not any(c.unit.parts for c in rest):
            own_run = [query for query in shared if query.needs_own_run]
            plain = [query for query in shared if not query.needs_own_run]
            alone = (*plain, *_alone(rest, target))
            joints = joined([query_alone.prepared for query_alone in alone], options, by_key)
            return CompiledRules(rule_columns(templates), groups, (*alone, *own_run), joints)
        apart = {id(c.unit): c.unit for c in rest if c.unit.parts}
        candidates = [c for c in candidates if id(c.unit) not in apart]
        parts = (part for unit in apart.values() for part in unit.parts)
        candidates += [c for part in parts for c in candidates_of(part)]


def _units(templates: tuple[Template, ...]) -> Iterator[RuleUnit]:
    """The templates, with rules that differ only in plain conditions merged into one template."""
    templates = tuple(template for template in templates if len(template))
    begins = np.cumsum([0, *map(len, templates)])
    each = [
        RuleUnit(template, begin + np.arange(len(template)))
        for template, begin in zip(templates, begins[:-1], strict=True)
    ]
    together = {shared.places[0]: shared for shared in lifted(templates)}
    taken = {place for shared in together.values() for place in shared.places}
    for place, unit in enumerate(each):
        if place in together:
            shared = together[place]
            parts = tuple(each[place] for place in shared.places)
            yield RuleUnit(shared.template, begins[list(shared.places)], parts)
        elif place not in taken:
            yield unit


def _merged(
    candidates: list[RuleCandidate], by_key: bool
) -> tuple[tuple[RuleGroup, ...], list[RuleCandidate]]:
    """Split the rules into groups that share an automaton and rules that can't."""
    rest = [c for c in candidates if c.branch is None]
    groups: list[RuleGroup] = []
    for key, members in _by_key(candidates) if by_key else [(None, candidates)]:
        branches = [(c, c.branch) for c in members if c.branch is not None]
        merged, refused = merge([branch for _, branch in branches])
        if merged is not None:
            kept = [c for n, (c, _) in enumerate(branches) if n not in refused]
            groups.append(RuleGroup(merged, tuple(c.numbers for c in kept), key))
        rest += [replace(branches[n][0], reason=reason) for n, reason in refused.items()]
    return tuple(groups), rest


def _by_key(candidates: list[RuleCandidate]) -> Iterator[tuple[str | None, list[RuleCandidate]]]:
    """Key columns with the rules that they partition, the column of most rules first; rules without
    a key come last."""
    left = [c for c in candidates if c.branch is not None]
    while left:
        counts: Counter[str] = Counter()
        for candidate in left:
            counts.update(dict.fromkeys(_keys(candidate), len(candidate.rows)))
        key = max(sorted(counts), key=lambda name: counts[name], default=None)
        yield key, [c for c in left if key is None or key in _keys(c)]
        left = [c for c in left if key is not None and key not in _keys(c)]


def _keys(candidate: RuleCandidate) -> list[str]:
    assert candidate.branch is not None
    parts = candidate.branch.path.query.key
    return [part.uniform for part in parts if part.uniform is not None]


# ── together ─────────────────────────────────────────────────────────────────


def _candidates(unit: RuleUnit, target: RuleTarget) -> Iterator[RuleCandidate]:
    """The window may vary between the rules of a path: there it only drops matches that are too
    long. An automaton would have a state for each value of each list."""
    template = unit.template
    every = np.arange(len(template))
    if target.deals and len(template) >= FEWEST_VARIANTS and _looked_up(template):
        candidate = RuleCandidate(unit, every, None, "its lists or patterns of texts differ")
        try:
            yield replace(candidate, dealt=dealt_lists(candidate, target))
            return
        except (NoVariants, QueryError, UnsupportedError):
            pass  # each list by itself
    windows = window_parameters(template.query.syntax)
    fixed = [name for name in shaping(template) if name not in windows]
    for rows, values in alike(template, np.arange(len(template)), fixed):
        try:
            branch = _branch(template, rows, values, windows, target)
        except (NoPath, QueryError) as reason:
            text = reason.args[0] if isinstance(reason, NoPath) else "its parameters can't vary"
            yield RuleCandidate(unit, rows, None, text)
        else:
            yield RuleCandidate(unit, rows, branch, "")


def _looked_up(template: Template) -> bool:
    if ":" not in template.query.text:
        return False
    return bool(lists(template, np.arange(len(template))) or patterns(template))


def _branch(
    template: Template,
    rows: Ints,
    fixed: Mapping[str, object],
    windows: list[str],
    target: RuleTarget,
) -> TemplateRules:
    bound = RowBinding(template, target)
    longest, sizes = bound.longest_window(rows, windows, fixed)
    if longest.answers is not None:
        raise NoPath(ANSWERS)
    given = bound.given(rows, {**fixed, **dict.fromkeys(windows)})
    varies = any(isinstance(value, Varying) for value in given.values())
    constant = not varies and len(np.unique(sizes[rows])) == 1
    whole = rewrite(longest, without=target.options.without).query if constant else spread(longest)
    return TemplateRules(path_of(whole), values_of(template, rows), sizes[rows])


# ── one query for many rules ─────────────────────────────────────────────────


def _shared(
    candidates: list[RuleCandidate], target: RuleTarget
) -> tuple[list[Alone], list[RuleCandidate]]:
    """Shared queries for the rules of a template, and the rules that can't share one."""
    shared: list[Alone] = []
    left: list[RuleCandidate] = []
    templates: dict[int, list[RuleCandidate]] = {}
    for candidate in candidates:
        shared += candidate.dealt
        if not candidate.dealt:
            templates.setdefault(id(candidate.unit), []).append(candidate)
    for unit_candidates in templates.values():
        rows = np.sort(np.concatenate([candidate.rows for candidate in unit_candidates]))
        whole = replace(unit_candidates[0], rows=rows)
        try:
            parts = list(_of_template(whole, target))
        except (QueryError, UnsupportedError):  # a parameter is fixed, or a row is reported alone
            parts = [whole]
        shared += [part for part in parts if isinstance(part, Alone)]
        left += [part for part in parts if isinstance(part, RuleCandidate)]
    return shared, left


def _of_template(candidate: RuleCandidate, target: RuleTarget) -> Iterator[Alone | RuleCandidate]:
    template, query = candidate.unit.template, candidate.unit.template.query
    if len(candidate.rows) == 1 or not template.parameters:
        yield candidate
        return
    bound = RowBinding(template, target)
    shapes = shaping(template)
    some = template.values(int(candidate.rows[0]))
    example = bound(candidate.rows, {name: some[name] for name in shapes})
    if example.answers is not None:
        yield candidate
        return
    choice = choice_of_rules(example, target.options.jit) if target.gathers else None
    found = example if choice is None else replace(example, selection=None)
    windows = window_parameters(query.syntax) if window_is_filter(found) else []
    same = {*agreed(found), *shapes}.difference(windows)
    fixed = [name for name in template.parameters if name in same]
    groups = list(alike(template, candidate.rows, fixed))
    if target.deals and len(groups) >= FEWEST_VARIANTS:
        try:
            yield from dealt(candidate, bound)
            return
        except NoVariants as why:
            candidate = replace(candidate, reason=f"{candidate.reason}, and {why.args[0]}")
    for rows, values in groups:
        if len(rows) == 1 or len(fixed) == len(template.parameters):
            yield replace(candidate, rows=rows)
            continue
        longest, sizes = bound.longest_window(rows, windows, values)
        found = longest if choice is None else replace(longest, selection=None)
        wide = widened(found, values_of(template, rows), sizes[rows])
        prepared = prepare(wide.query, target.options)
        numbers, reason = candidate.unit.numbers[rows], candidate.reason
        whole = replace(wide.query, selection=longest.selection)
        residual = replace(wide.residual, choice=choice)
        yield Alone(query, whole, prepared, numbers, reason, residual, wide.tested)


# ── alone ────────────────────────────────────────────────────────────────────


def _alone(candidates: list[RuleCandidate], target: RuleTarget) -> tuple[Alone, ...]:
    """Each distinct query once, regardless of names."""
    columns, options = target.columns, target.options
    by_text: dict[str, tuple[Alone, list[int]]] = {}
    for candidate in candidates:
        template = candidate.unit.template
        query = template.query
        for row in candidate.rows.tolist():
            given = {**options.params, **template.values(row)}
            chosen = replace(options, params=given)
            with naming(template.names[row]):
                bound = with_key(query.bind(columns, chosen))
                _require_moments(bound)
                prepared = prepare(bound, chosen)
            query_alone = Alone(query, bound, prepared, candidate.rows, candidate.reason)
            whole = prepared.query
            rest = (whole.outputs, whole.selection, whole.schema, whole.answers)
            _, rules = by_text.setdefault(f"{query_text(whole)} {rest}", (query_alone, []))
            rules.append(int(candidate.unit.numbers[row]))
    return tuple(
        replace(query_alone, rules=np.array(rules)) for query_alone, rules in by_text.values()
    )


def _require_moments(query: BoundQuery) -> None:
    """A window of answers ends at a moment, and the ends of a set's matches over dates are days."""
    schema = query.schema
    if query.answers is not None and schema.columns[schema.time] is Type.DATE:
        raise UnsupportedError(
            f"`{schema.time}` has dates, and the answers of rules have times: convert it to "
            "timestamps, or run the query alone with cepheid.match"
        )


@contextmanager
def naming(rule: object) -> Iterator[None]:
    """Add the rule's name to errors, unless there is only one query."""
    try:
        yield
    except (UnsupportedError, PlanError) as error:
        raise type(error)(f"{rule}: {error}") from None
