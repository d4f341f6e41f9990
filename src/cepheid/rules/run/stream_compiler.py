"""Rules for the buckets of a stream: how those of a pass are run, also when rules come and go."""

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

from cepheid.algebra.types import Schema
from cepheid.engine.attribution.json_rows import RULE
from cepheid.engine.attribution.owners import Attribution, found_by_each
from cepheid.engine.merged.engine import MergedRules
from cepheid.engine.merged.group import RuleGroup
from cepheid.engine.merged.merge import Merged, merge
from cepheid.engine.merged.subset import own_places, subset
from cepheid.engine.rows.ties import tied_by
from cepheid.errors import CepheidError, PlanError
from cepheid.options import Options
from cepheid.plan.reads import uniform_key
from cepheid.rules.compile.compiled_rules import Columns, CompiledRules, EngineRun, compile_rules
from cepheid.rules.run.passes import is_single, needs, own_pass
from cepheid.rules.run.portable import decoded, encoded
from cepheid.rules.template import Template
from cepheid.streaming.bucket import Job
from cepheid.streaming.rule_bucket import Generation, Generations, Member, RulesDiff, RulesProgram
from cepheid.streaming.signature import signature

Ints = NDArray[np.int64]

KEPT = 8
"""Programs that a worker keeps: those of the passes of a few streams."""


@dataclass(frozen=True)
class StreamCompiler:
    """Compiles the rules of one pass.

    run      names the run: what was compiled for it is kept
    columns  those of the events, as rules see them
    key      of this pass, among the `keys` of all
    schema   of the rows that buckets get
    events   their roles: time, type and tie-break
    found    the columns of what is found
    """

    run: str
    columns: Columns
    options: Options
    key: str | None
    keys: tuple[str | None, ...]
    schema: pa.Schema
    events: Schema
    found: pa.Schema
    delayed: bool

    def changed(self, generations: Generations, rules: bytes) -> RulesDiff:
        own, refused = self._own(decoded(rules))
        wanted = {template: _identities(template) for template in own}
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
        return RulesDiff(encoded(fresh) if fresh else None, gone, refused)

    def _own(self, templates: Sequence[Template]) -> tuple[list[Template], int]:
        """The rules of this pass that can be run, and how many of any pass can't."""
        own: list[Template] = []
        refused = 0
        needed = needs(templates, self.columns, self.options)
        for template, place in zip(templates, needed, strict=True):
            try:
                if own_pass(template, self.keys, place) == self.key:
                    own.append(template)
            except CepheidError:
                refused += len(template)
        if self._runs(own):
            return own, refused
        right = [template for template in own if self._runs([template])]
        return right, refused + sum(map(len, own)) - sum(map(len, right))

    def _runs(self, templates: Sequence[Template]) -> bool:
        try:
            compiled = self._compile(templates)
            _carrying(compiled.rules, self.found)
            _require_members(compiled, self.key)
            _require_columns(compiled, self.schema)
        except (CepheidError, pa.ArrowInvalid):
            return False
        return True

    def compiled(self, generations: Generations) -> RulesProgram:
        return _program(self, generations, self._parts(generations))

    def _parts(self, generations: Generations) -> _Parts:
        """The same for all buckets, whenever their rules have begun."""
        digest = hashlib.blake2b()
        for generation in generations:
            digest.update(hashlib.blake2b(generation.rules).digest())
            digest.update(repr(sorted(generation.gone)).encode())
        place = (self.run, self.key, digest.digest())
        if place not in _kept:
            _kept[place] = _parts(self, generations)
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
        _kept.move_to_end(place)
        return _kept[place]

    def _compile(self, templates: Sequence[Template]) -> CompiledRules:
        return compile_rules(tuple(templates), self.columns, self.options)


@dataclass(frozen=True)
class _Parts:
    """`rules` are those that are there, `generation` the place of each one's generation; `runs` are
    by the place of their generation, and by their place in it, with what is left of their rules."""

    rules: pa.Table
    generation: Ints
    group: RuleGroup | None
    runs: Mapping[tuple[int, int], tuple[EngineRun, tuple[Attribution, ...]]]


_kept: OrderedDict[tuple[str, str | None, bytes], _Parts] = OrderedDict()


def _parts(compiler: StreamCompiler, generations: Generations) -> _Parts:
    tables: list[pa.Table] = []
    automata: list[tuple[Merged, Ints]] = []
    numbers: list[Ints] = []
    runs: dict[tuple[int, int], tuple[EngineRun, tuple[Attribution, ...]]] = {}
    places: list[Ints] = []
    first = 0
    for place, generation in enumerate(generations):
        compiled = compiler._compile(decoded(generation.rules))
        there = pc.invert(pc.is_in(compiled.rules[RULE], pa.array(generation.gone, pa.string())))
        alive = there.combine_chunks().to_numpy(zero_copy_only=False)
        number = np.where(alive, first + np.cumsum(alive) - 1, -1)
        tables.append(_carrying(compiled.rules.filter(there), compiler.found))
        places.append(np.full(int(alive.sum()), place))
        first += int(alive.sum())
        for found in compiled.groups:
            left = [numbered[alive[numbered]] for numbered in found.numbers]
            if any(map(len, left)):
                every = np.concatenate(found.numbers)
                automata.append((found.merged, np.flatnonzero(alive[every])))
                numbers += [number[numbered] for numbered in left if len(numbered)]
        for run in compiled.runs:
            owners = tuple(_left(attribution, number) for attribution in run.attributions)
            if any(len(attribution.numbers) for attribution in owners):
                runs[place, run.place] = run, owners
    group = RuleGroup(_joined(automata), tuple(numbers), compiler.key) if automata else None
    rules = pa.concat_tables([_carrying(pa.table({RULE: []}), compiler.found), *tables])
    every = np.concatenate(places) if places else np.zeros(0, np.int64)
    return _Parts(rules.combine_chunks(), every, group, runs)


def _joined(automata: Sequence[tuple[Merged, Ints]]) -> Merged:
    """One automaton of some rules of each. Most often there is one, and all of its rules."""
    if len(automata) == 1:
        ((whole, rules),) = automata
        return whole if len(rules) == whole.begins[-1] else subset(whole, rules)
    joined, refused = merge(
        [
            whole.branches[n].of(places)
            for whole, rules in automata
            for n, places in own_places(whole, rules)
        ]
    )
    assert joined is not None and not refused, refused  # each was merged in its generation
    return joined


def _program(compiler: StreamCompiler, generations: Generations, parts: _Parts) -> RulesProgram:
    begins = np.array([generation.since for generation in generations], np.int64)
    rules = MergedRules(
        parts.group, parts.rules, begins[parts.generation], compiler.events, compiler.found
    )
    jit = compiler.options.jit
    branches = () if parts.group is None else parts.group.merged.branches
    tied = tied_by(branch.path.query for branch in branches)
    merged = Job(rules, compiler.schema, {}, delayed=compiler.delayed, jit=jit, tied_by=tied)
    members = [
        Member(
            f"{generations[place].number}.{n}",
            _job(compiler, run),
            partial(found_by_each, parts.rules, attributions, schema=compiler.found),
        )
        for (place, n), (run, attributions) in parts.runs.items()
    ]
    return RulesProgram(merged, tuple(members))


def _job(compiler: StreamCompiler, run: EngineRun) -> Job:
    names = [name for name in compiler.schema.names if name in run.prepared.plan.required]
    schema = pa.schema([compiler.schema.field(name) for name in names])
    tied = tied_by(member.bound for member in run.members)
    return Job(
        run.prepared, schema, signature(run.prepared), jit=compiler.options.jit, tied_by=tied
    )


def _left(attribution: Attribution, numbers: Ints) -> Attribution:
    """For the rules that are still there, which have these numbers now."""
    now = numbers[attribution.numbers]
    return replace(attribution, numbers=now).of(np.flatnonzero(now >= 0))


def _require_members(compiled: CompiledRules, key: str | None) -> None:
    """Queries that run by themselves keep the events of different keys apart as a whole."""
    for query_alone in compiled.alone:
        partitioned = is_single(query_alone.bound) or key in uniform_key(query_alone.prepared.plan)
        if key is not None and not partitioned:
            raise PlanError(f"`{query_alone.query.name}` can't be partitioned by `{key}`")


def _require_columns(compiled: CompiledRules, schema: pa.Schema) -> None:
    """A path into a column is extracted where the stream begins, by the rules that it begins
    with."""
    for name in sorted(compiled.required.difference(schema.names)):
        raise PlanError(f"no rule that the stream began with reads `{name}`")


def _carrying(rules: pa.Table, found: pa.Schema) -> pa.Table:
    """The rules with what they carry of the columns of what is found."""
    fields = [pa.field(RULE, pa.string()), *list(found)[_FIXED:]]
    columns = [
        rules[f.name].cast(f.type)
        if f.name in rules.column_names
        else pa.nulls(rules.num_rows, f.type)
        for f in fields
    ]
    return pa.table(columns, schema=pa.schema(fields))


_FIXED = 4
"""How many columns what is found has before those that are carried."""


# ── which rules are the same ─────────────────────────────────────────────────


def _identities(template: Template) -> dict[str, tuple[Any, ...]]:
    """By the names of rules all that makes them what they are."""
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
