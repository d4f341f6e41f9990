"""Compiles the rules of a pass for a stream's buckets, also when rules are added and removed."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.kinds import attribute_type
from cepheid.algebra.schemas import bind_schema, bind_streams
from cepheid.algebra.types import Schema
from cepheid.engine.attribution.json_rows import RULE
from cepheid.engine.attribution.owners import Attribution, alerts_of_queries
from cepheid.engine.attribution.variants import VARIANT, Variants
from cepheid.engine.match_schema import output_schema
from cepheid.engine.merged.engine import MergedRules
from cepheid.engine.merged.group import RuleGroup
from cepheid.engine.merged.merge import Merged, merge
from cepheid.engine.merged.subset import branch_places, subset
from cepheid.engine.rows.ties import tied_by
from cepheid.errors import CepheidError, PlanError
from cepheid.options import Options
from cepheid.rules.compile.alert_values import rule_columns
from cepheid.rules.compile.compiled_rules import CompiledRules, EngineRun, compile_rules
from cepheid.rules.compile.rule_queries import Columns
from cepheid.rules.load.readers import reading
from cepheid.rules.run.alert_columns import carrying
from cepheid.rules.run.chains.agreeing import chains
from cepheid.rules.run.chains.followers import Following, following_events
from cepheid.rules.run.chains.in_buckets import rule_chains
from cepheid.rules.run.passes import needs, needs_of, pass_of, with_rules
from cepheid.rules.run.portable import decoded, encoded
from cepheid.rules.run.throttle import throttle_of
from cepheid.rules.template import Template
from cepheid.streaming.buckets.bucket import Job
from cepheid.streaming.buckets.folded_bucket import FoldedJob
from cepheid.streaming.buckets.rule_bucket import (
    Generation,
    Generations,
    Member,
    RulesDiff,
    RulesProgram,
    RulesVersion,
)
from cepheid.streaming.rule_figures import NamedRules
from cepheid.streaming.signature import answers_signature, signature
from cepheid.streaming.throttle import Throttle

Ints = NDArray[np.int64]

KEPT = 8
"""How many programs a worker caches: those of the passes of a few streams."""


@dataclass(frozen=True)
class StreamCompiler:
    """Compiles the rules of one pass.

    run      names the run: what was compiled for it is kept
    columns  those of the events, as rules see them
    key      of this pass, among the `keys` of all
    schema   of the rows that buckets get
    events   their roles: time, type and tie-break
    found    the columns of what is found
    pause    the time in which a rule has one alert for a key, if alerts are throttled
    """

    run: str
    columns: Columns
    options: Options
    key: str | None
    keys: tuple[str | None, ...]
    schema: pa.Schema
    events: Schema
    alert_schema: pa.Schema
    delayed: bool
    pause: int | None = None

    def changed(self, generations: Generations, rules: bytes) -> RulesDiff:
        runnable, refused = self._runnable(with_rules(decoded(rules)))
        first, chained = _divided(runnable)
        wanted = {template: _identities(template) for template in first}
        now = {name: rule for rules in wanted.values() for name, rule in rules.items()}
        kept: set[str] = set()
        gone: dict[int, frozenset[str]] = {}
        for generation in generations:
            before = _alive(generation)
            staying = {name for name, rule in before.items() if now.get(name) == rule}
            kept |= staying
            if staying:
                gone[generation.number] = frozenset(before.keys() - staying)
        new = [_without(template, kept) for template in wanted]
        fresh = [template for template in new if template is not None]
        following = encoded(chained) if chained else b""
        return RulesDiff(
            encoded(fresh) if fresh else None, gone, refused, frozenset(kept), following
        )

    def _runnable(self, templates: Sequence[Template]) -> tuple[list[Template], int]:
        """The rules of this pass that can run, and how many can't; those that fit no pass are
        counted by the first."""
        runnable: list[Template] = []
        refused = 0
        needed = needs(templates, self.columns, self.options, self.pause is not None)
        for template, place in zip(templates, needed, strict=True):
            try:
                if pass_of(template, self.keys, place) == self.key:
                    runnable.append(template)
            except CepheidError:
                if self.key == self.keys[0]:  # each is told by one pass
                    refused += len(template)
        if self._runs(runnable):
            return runnable, refused
        right = [template for template in runnable if self._runs([template])]
        return right, refused + sum(map(len, runnable)) - sum(map(len, right))

    def _runs(self, templates: Sequence[Template]) -> bool:
        try:
            first, chained = _divided(templates)
            compiled = self._compile(first)
            carrying(rule_columns(tuple(templates)), self.alert_schema)
            _require_members(compiled, self.key)
            _require_columns(compiled.required, self.schema)
            _require_columns(self._following(chained).required, self.schema)
        except (CepheidError, pa.ArrowInvalid):
            return False
        return True

    def compiled(self, generations: Generations, chains: bytes) -> RulesProgram:
        return _program(self, generations, self._parts(generations, chains))

    def _following(self, chained: Sequence[Template]) -> Following:
        """The queries of rules that read others."""
        return following_events(tuple(chained), self.columns, self.options)

    def _parts(self, generations: Generations, chains: bytes) -> _Parts:
        """Independent of the bucket and of when its rules began."""
        digest = hashlib.blake2b(chains)
        for generation in generations:
            digest.update(hashlib.blake2b(generation.rules).digest())
            digest.update(repr(sorted(generation.gone)).encode())
        place = (self.run, self.key, digest.digest())
        if place not in _kept:
            _kept[place] = _parts(self, generations, decoded(chains) if chains else ())
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
        _kept.move_to_end(place)
        return _kept[place]

    def _compile(self, templates: Sequence[Template]) -> CompiledRules:
        return compile_rules(tuple(templates), self.columns, self.options, deals=True)


@dataclass(frozen=True)
class _Parts:
    """The parts of a program. `rules` are the current rules, `generation` the index of each rule's
    generation. `runs` is keyed by generation and by place in it; each run has what is left of its
    rules."""

    rules: pa.Table
    generation: Ints
    group: RuleGroup | None
    throttle: Throttle | None
    runs: Mapping[tuple[int, int], tuple[EngineRun, tuple[Attribution, ...]]]
    following: Following


_kept: OrderedDict[tuple[str, str | None, bytes], _Parts] = OrderedDict()


def _divided(templates: Sequence[Template]) -> tuple[list[Template], list[Template]]:
    """The templates that read events; and those that read others, with what they read."""
    reads = reading(templates, None, False)
    chained = frozenset[int]().union(*chains(reads))
    first = [template for n, template in enumerate(templates) if n not in reads]
    return first, [template for n, template in enumerate(templates) if n in chained]


def _parts(
    compiler: StreamCompiler, generations: Generations, chained: Sequence[Template]
) -> _Parts:
    tables: list[pa.Table] = []
    automata: list[tuple[Merged, Ints]] = []
    numbers: list[Ints] = []
    runs: dict[tuple[int, int], tuple[EngineRun, tuple[Attribution, ...]]] = {}
    places: list[Ints] = []
    throttle = None if compiler.pause is None else Throttle(compiler.pause)
    first = 0
    for place, generation in enumerate(generations):
        compiled = compiler._compile(decoded(generation.rules))
        if throttle is not None:
            throttle = throttle.beside(throttle_of(compiled, throttle.pause), generation.gone)
        there = pc.invert(pc.is_in(compiled.rules[RULE], pa.array(generation.gone, pa.string())))
        alive = there.combine_chunks().to_numpy(zero_copy_only=False)
        number = np.where(alive, first + np.cumsum(alive) - 1, -1)
        tables.append(carrying(compiled.rules.filter(there), compiler.alert_schema))
        places.append(np.full(int(alive.sum()), place))
        first += int(alive.sum())
        for merged_group in compiled.groups:
            left = [numbered[alive[numbered]] for numbered in merged_group.numbers]
            if any(map(len, left)):
                every = np.concatenate(merged_group.numbers)
                automata.append((merged_group.merged, np.flatnonzero(alive[every])))
                numbers += [number[numbered] for numbered in left if len(numbered)]
        for run in compiled.runs:
            owners = tuple(_left(attribution, number) for attribution in run.attributions)
            if any(len(attribution.numbers) for attribution in owners):
                runs[place, run.place] = run, owners
    group = RuleGroup(_joined(automata), tuple(numbers), compiler.key) if automata else None
    rules = pa.concat_tables([carrying(pa.table({RULE: []}), compiler.alert_schema), *tables])
    every = np.concatenate(places) if places else np.zeros(0, np.int64)
    queries = compiler._following(chained)
    if throttle is not None:
        throttle = queries.throttled(throttle)
    return _Parts(rules.combine_chunks(), every, group, throttle, runs, queries)


def _joined(automata: Sequence[tuple[Merged, Ints]]) -> Merged:
    """Merge the remaining rules of several automata. Usually there is one automaton, with all of
    its rules."""
    if len(automata) == 1:
        ((whole, rules),) = automata
        return whole if len(rules) == whole.begins[-1] else subset(whole, rules)
    joined, refused = merge(
        [
            whole.branches[n].of(places)
            for whole, rules in automata
            for n, places in branch_places(whole, rules)
        ]
    )
    assert joined is not None and not refused, refused  # each was merged in its generation
    return joined


def _program(compiler: StreamCompiler, generations: Generations, parts: _Parts) -> RulesProgram:
    begins = np.array([generation.since for generation in generations], np.int64)
    rules = MergedRules(
        parts.group, parts.rules, begins[parts.generation], compiler.events, compiler.alert_schema
    )
    jit = compiler.options.jit
    branches = () if parts.group is None else parts.group.merged.branches
    tied = tied_by(branch.path.query for branch in branches)
    merged = Job(rules, compiler.schema, {}, delayed=compiler.delayed, jit=jit, tied_by=tied)
    members = [
        Member(
            f"{generations[place].number}.{n}",
            _named(parts.rules, [attribution.numbers for attribution in attributions]),
            _job(compiler, run),
            partial(alerts_of_queries, parts.rules, attributions, schema=compiler.alert_schema),
            run.members[0].variants,
        )
        for (place, n), (run, attributions) in parts.runs.items()
    ]
    chained = rule_chains(parts.following, compiler.alert_schema, compiler.options)
    of_group = _named(parts.rules, () if parts.group is None else parts.group.numbers)
    return RulesProgram(merged, of_group, tuple(members), parts.throttle, chained)


def _named(rules: pa.Table, numbers: Sequence[Ints]) -> NamedRules:
    own = np.unique(np.concatenate([np.zeros(0, np.int64), *numbers]))
    return NamedRules(rules[RULE][int(own[0])].as_py(), len(own)) if len(own) else NamedRules()


def _job(compiler: StreamCompiler, run: EngineRun) -> Job:
    variants = run.members[0].variants
    if variants is not None:
        return _dealt_job(compiler, run, variants)
    names = [name for name in compiler.schema.names if name in run.prepared.plan.required]
    schema = pa.schema([compiler.schema.field(name) for name in names])
    tied = tied_by(member.bound for member in run.members)
    prepared, jit = run.prepared, compiler.options.jit
    if prepared.query.answers is None:
        return Job(prepared, schema, signature(prepared), jit=jit, tied_by=tied)
    same = answers_signature(prepared, output_schema(prepared.plan, schema))
    limit = compiler.options.limit
    answering = prepared.counted(prompt=True) or prepared
    shape = prepared.query.answers
    return FoldedJob(answering, schema, same, jit=jit, tied_by=tied, shape=shape, limit=limit)


def _dealt_job(compiler: StreamCompiler, run: EngineRun, variants: Variants) -> Job:
    """Over events that are dealt: each variant has its copy, so copies of an event are no tie."""
    schema = variants.schema_of(compiler.schema)
    names = [name for name in schema.names if name in run.prepared.plan.required]
    tied = tied_by(member.bound for member in run.members)
    return Job(
        run.prepared,
        pa.schema([schema.field(name) for name in names]),
        {**signature(run.prepared), "variants": variants.digest},
        jit=compiler.options.jit,
        tied_by=None if tied is None else (*tied, VARIANT),
    )


def _left(attribution: Attribution, numbers: Ints) -> Attribution:
    """The attributions of the remaining rules, under their current numbers."""
    now = numbers[attribution.numbers]
    return replace(attribution, numbers=now).of(np.flatnonzero(now >= 0))


def _require_members(compiled: CompiledRules, key: str | None) -> None:
    """A query that runs on its own must partition all its events by the pass's key."""
    for query_alone in compiled.alone:
        if not needs_of(query_alone.bound).fits(key):
            raise PlanError(f"`{query_alone.query.name}` can't be partitioned by `{key}`")


def _require_columns(required: frozenset[str], schema: pa.Schema) -> None:
    """Paths into columns are extracted at the start of the stream, for the rules of that time."""
    for name in sorted(required.difference(schema.names)):
        raise PlanError(f"no rule that the stream began with reads `{name}`")


# ── what a run of rules has in common ──


def rules_schema(columns: Any, options: Options, events: pa.Schema) -> Schema:
    """The schema of all rules: the event columns and the paths that any rule reads."""
    if isinstance(columns, Mapping):
        schema = bind_streams(columns, options)[1]
    else:
        schema = bind_schema(columns, options)
    paths = {f.name: attribute_type(f.type) for f in events if f.name not in schema.columns}
    return replace(schema, columns={**schema.columns, **paths})


def rules_version(templates: Sequence[Template]) -> RulesVersion:
    """The version is named after its contents, so that a resumed stream notices other rules."""
    digest = hashlib.blake2b(digest_size=16)
    for fingerprint in sorted(template.fingerprint for template in templates):
        digest.update(fingerprint.encode())
    return RulesVersion(digest.hexdigest(), encoded(templates))


def rules_signature(schema: Schema, key: str | None) -> dict[str, str]:
    roles = {"time=": schema.time, "type=": schema.type, "tie=": schema.tie, "key": key}
    return {name: str(role) for name, role in roles.items() if role is not None}


# ── which rules are the same ─────────────────────────────────────────────────


def _identities(template: Template) -> dict[str, tuple[Any, ...]]:
    """For each rule name, everything that defines the rule."""
    text = template.query.text
    if template.rows is None:
        return {template.name: (text,)}
    names = [name for name in template.rows.column_names if name != RULE]
    columns = [template.rows[name].to_pylist() for name in names]
    rows = zip(*columns, strict=True) if columns else iter([()] * len(template))
    return {
        str(rule): (text, *zip(names, map(repr, row), strict=True))
        for rule, row in zip(template.names.to_pylist(), rows, strict=True)
    }


def _alive(generation: Generation) -> dict[str, tuple[Any, ...]]:
    rules_by_name: dict[str, tuple[Any, ...]] = {}
    for template in decoded(generation.rules):
        rules_by_name |= _identities(template)
    return {name: rule for name, rule in rules_by_name.items() if name not in generation.gone}


def _without(template: Template, names: set[str]) -> Template | None:
    if template.rows is None:
        return None if template.name in names else template
    mask = pc.invert(pc.is_in(template.names, pa.array(sorted(names), pa.string())))
    if pc.all(mask).as_py():
        return template
    return template.where(mask) if pc.any(mask).as_py() else None
