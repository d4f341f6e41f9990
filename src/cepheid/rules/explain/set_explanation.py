"""What the rules of a set share, and what that saves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cepheid.engine.merged.group import RuleGroup
from cepheid.rules.compile.compiled_rules import CompiledRules, EngineRun
from cepheid.rules.compile.rule_queries import Alone
from cepheid.rules.explain.shared_parts import commons, counts
from cepheid.rules.explain.shared_steps import shared_steps, step_text
from cepheid.rules.placement.split import PlacedPass

FOLLOWS = "it reads the matches of other rules"
SHOWN = 5
"""How many steps of a pass are shown; those that most rules share come first."""


@dataclass(frozen=True)
class Shared:
    """A step that several rules share: its condition, its number in the rules, and how many rules
    share it."""

    step: int
    takes: str
    rules: int


@dataclass(frozen=True)
class RuleShare:
    """Rules that run in their own tasks, and the cost of an event row there, in conditions tried;
    shipping the row counts as some conditions."""

    rules: int
    load: float


@dataclass(frozen=True)
class Spread:
    """Where a pass runs on Spark: how its rows are partitioned, the most tasks for each part of the
    rules, and how many run at once. `joined` lists the keys of rules that could have had their own
    pass; `apart` is the load if they had, undivided."""

    by: str
    tasks: int
    cores: int
    parts: tuple[RuleShare, ...]
    joined: tuple[str, ...]
    apart: float


@dataclass(frozen=True)
class PassSummary:
    """Rules that are evaluated together. `steps` counts the steps of all rules, `nodes` the steps
    left after equal prefixes are merged, `conditions` the same for conditions. `limits` counts
    thresholds that share a looser state until the match is complete."""

    key: str | None
    rules: int
    steps: int
    nodes: int
    conditions: int
    predicates: int
    limits: int
    shared: tuple[Shared, ...]
    spread: Spread | None = None


@dataclass(frozen=True)
class Apart:
    """A query that is evaluated on its own: for how many rules, why, and what is checked per rule
    on a match."""

    query: str
    rules: int
    reason: str
    tested: tuple[str, ...] = ()


@dataclass(frozen=True)
class Same:
    """A part that several queries share and that is evaluated once: its pattern, and the
    queries."""

    takes: str
    queries: tuple[str, ...]


@dataclass(frozen=True)
class Joined:
    """Queries that are evaluated as one. `operators` and `classes` count those of the queries
    separately; `shared_operators` and `shared_classes` count them after equal ones are merged."""

    queries: tuple[Apart, ...]
    operators: int
    shared_operators: int
    classes: int
    shared_classes: int
    shared: tuple[Same, ...]


@dataclass(frozen=True)
class SetExplanation:
    """How a set of rules is run: print it, or take it as data."""

    passes: tuple[PassSummary, ...]
    alone: tuple[Apart, ...]
    joined: tuple[Joined, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        counts = {"passes": self.passes, "joined": self.joined, "alone": self.alone}
        return f"SetExplanation({', '.join(f'{n}={len(v)}' for n, v in counts.items())})"


def explained(
    compiled: CompiledRules, placed: tuple[PlacedPass, ...] | None = None
) -> SetExplanation:
    """Explain how the rules run: in this process, or as placed on Spark."""
    runs = compiled.runs
    return SetExplanation(
        tuple(map(_pass, compiled.groups)) if placed is None else tuple(map(_placed, placed)),
        (
            *(_apart(run.members[0]) for run in runs if len(run.members) == 1),
            *(Apart(name, count, FOLLOWS) for name, count in compiled.following),
        ),
        tuple(_joined(run) for run in runs if len(run.members) > 1),
    )


def _apart(query: Alone) -> Apart:
    return Apart(query.query.name, len(query.rules), query.reason, query.tested)


def _joined(run: EngineRun) -> Joined:
    names = [query.query.name for query in run.members]
    plan = run.prepared.plan
    return Joined(
        tuple(map(_apart, run.members)),
        **asdict(counts(plan)),
        shared=tuple(
            Same(common.takes, tuple(names[n] for n in common.members)) for common in commons(plan)
        ),
    )


def _placed(placed: PlacedPass) -> PassSummary:
    """The totals over all parts of a pass."""
    parts = [_pass(part) for part in placed.parts]
    shared = sorted((s for part in parts for s in part.shared), key=lambda s: -s.rules)
    return PassSummary(
        key=placed.place.key,
        rules=sum(part.rules for part in parts),
        steps=sum(part.steps for part in parts),
        nodes=sum(part.nodes for part in parts),
        conditions=sum(part.conditions for part in parts),
        predicates=sum(part.predicates for part in parts),
        limits=sum(part.limits for part in parts),
        shared=tuple(shared[:SHOWN]),
        spread=_spread(placed, parts),
    )


def _spread(placed: PlacedPass, parts: list[PassSummary]) -> Spread:
    joined = (place.key for place in placed.apart if len(placed.apart) > 1)
    key = placed.place.key
    single = all(group.single for group in placed.parts)
    return Spread(
        by="rows" if single else "slices of time" if key is None else f"`{key}`",
        tasks=placed.place.lanes,
        cores=placed.ground.cores,
        parts=tuple(RuleShare(p.rules, n) for p, n in zip(parts, placed.place.loads, strict=True)),
        joined=tuple(key for key in joined if key is not None),
        apart=sum(place.total for place in placed.apart),
    )


def _pass(group: RuleGroup) -> PassSummary:
    branches, shared = group.merged.branches, shared_steps(group)
    lengths = [(branch.rows.length, len(branch.path.steps)) for branch in branches]
    negations = [
        branch.rows.length * sum(len(step.forbidden) for step in branch.path.steps)
        for branch in branches
    ]
    limits = [
        branch.rows.length * sum(level is not None for level in levels)
        for branch, levels in zip(branches, group.merged.levels, strict=True)
    ]
    steps = sum(rules * length for rules, length in lengths)
    return PassSummary(
        key=group.key,
        rules=sum(rules for rules, _ in lengths),
        steps=steps,
        nodes=len(shared),
        conditions=steps + sum(negations),
        predicates=len(group.merged.index.atoms) - 1,
        limits=sum(limits),
        shared=tuple(
            Shared(step.number, step_text(group, step), len(step.rules))
            for step in shared[:SHOWN]
            if len(step.rules) > 1
        ),
    )


def _lines(explanation: SetExplanation) -> Iterator[str]:
    if not (explanation.passes or explanation.joined or explanation.alone):
        yield "no rules"
    for n, summary in enumerate(explanation.passes, 1):
        by = "no key" if summary.key is None else f"key {summary.key}"
        yield f"pass {n}: {_count(summary.rules, 'rule')}, {by}"
        if summary.spread is not None:
            yield from _spread_lines(summary.spread)
        merged, different = f"{summary.nodes:,}", f"{summary.predicates:,}"
        yield f"  steps       {summary.steps:,} of the rules, {merged} when equal ones are merged"
        yield f"  conditions  {summary.conditions:,} on events, {different} of them different"
        if summary.limits:
            limits = f"{summary.limits:,}"
            yield f"  limits      {limits} checked on complete matches, the loosest before"
        for shared in summary.shared:
            yield f"  {_count(shared.rules, 'rule')} share step {shared.step}: {shared.takes}"
    for joined in explanation.joined:
        yield from _joined_lines(joined)
    for apart in explanation.alone:
        rules = _count(apart.rules, "rule")
        if apart.tested:
            yield f"1 query for {rules}: {apart.query}, since {apart.reason}"
            yield f"  checked for each rule: {' AND '.join(apart.tested)}"
        else:
            yield f"alone: {apart.query} ({rules}), since {apart.reason}"


def _joined_lines(joined: Joined) -> Iterator[str]:
    names = _listed([query.query for query in joined.queries])
    rules = _count(sum(query.rules for query in joined.queries), "rule")
    yield f"{len(joined.queries)} queries as one, for {rules}: {names}"
    yield f"  operators   {joined.operators} of the queries, {joined.shared_operators} as one"
    yield f"  classes     {joined.classes} of the queries, {joined.shared_classes} as one"
    for same in joined.shared[:SHOWN]:
        all_ = len(same.queries) == len(joined.queries)
        yield f"  {'all' if all_ else _listed(same.queries)} share {same.takes}"
    for query in joined.queries:
        if query.tested:
            yield f"  checked for each rule of {query.query}: {' AND '.join(query.tested)}"


def _spread_lines(spread: Spread) -> Iterator[str]:
    tasks, cores = _count(spread.tasks, "task"), _count(spread.cores, "core")
    load = sum(part.load for part in spread.parts)
    yield f"  spread      by {spread.by}, {tasks} on {cores}; load {load:.1f}"
    if spread.joined:
        keys = ", ".join(f"`{key}`" for key in spread.joined)
        yield f"  joined      those with the key {keys}; load apart {spread.apart:.1f}"
    if len(spread.parts) > 1:
        shown = [f"{_count(p.rules, 'rule')} with load {p.load:.1f}" for p in spread.parts[:SHOWN]]
        more = len(spread.parts) - len(shown)
        texts = [*shown, *([f"{more} more"] if more else [])]
        yield f"  parts       {len(spread.parts)}: {', '.join(texts)}"


def _listed(names: Sequence[str]) -> str:
    shown = names if len(names) <= SHOWN else names[: SHOWN - 1]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")
