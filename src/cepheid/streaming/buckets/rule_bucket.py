"""A bucket of a stream that many rules run over, and rules that come and go.

Merged rules run as one evaluation, every other query as one of its own, and all get the same rows.
Rules that come together are a generation: they see the events that are matched from then on. When
rules come or go, the merged ones are made anew from the events that are held, so that those that
stay continue as if nothing had happened; the other queries of rules that stay aren't touched, and
what was held for queries that no rule needs any more is dropped.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol

import pyarrow as pa

from cepheid.engine.attribution.variants import Variants
from cepheid.engine.operators.base import FOREVER
from cepheid.errors import StateError
from cepheid.streaming.buckets.bucket import Bucket, Job, open_bucket
from cepheid.streaming.buckets.rule_chains import NO_CHAINS, ReadingRule, RuleChains
from cepheid.streaming.cells import Cells, Region, framed, unframed
from cepheid.streaming.report import Report
from cepheid.streaming.rule_figures import (
    FiguresOfRules,
    NamedRules,
    RuleName,
    RunFigures,
    counted,
    figures_of,
)
from cepheid.streaming.saved import TOKEN, token_of
from cepheid.streaming.signature import Signature, require_same
from cepheid.streaming.throttle import Throttle, Throttled

_MERGED, _THROTTLED, _CHAINS = 0, 1 << 20, (1 << 20) + 1
"""The regions of the merged rules, of what is remembered of throttled alerts, and of the rules that
read others."""


@dataclass(frozen=True)
class Generation:
    """Rules that were added together, as bytes. `since` is the number of the first row that the
    merged ones among them may take; `gone` are the names of those that were removed since."""

    number: int
    since: int
    rules: bytes
    gone: frozenset[str] = frozenset()


Generations = tuple[Generation, ...]


@dataclass(frozen=True)
class Member:
    """A query that runs on its own for some `rules`, its unique name, and how its matches become
    alerts. With `variants`, events are dealt to those."""

    name: str
    rules: NamedRules
    job: Job
    to_alerts: Callable[[pa.RecordBatch], pa.RecordBatch]
    variants: Variants | None = None

    def match(self, bucket: Bucket, rows: pa.Table, watermark: int) -> Iterator[pa.RecordBatch]:
        """The query's matches that are decided by these rows, in order, and by the watermark."""
        names = self.job.schema.names
        if self.variants is None:
            yield from bucket.match(rows.select(names), watermark)
            return
        dealt = self.variants.dealt_as_they_come(rows)
        last = next(dealt)
        for following in dealt:
            yield from bucket.match(last.select(names), -FOREVER)
            last = following
        yield from bucket.match(last.select(names), watermark)


@dataclass(frozen=True)
class RulesProgram:
    """How the rules run: the merged ones, and all others. With a `throttle`, not all of their
    alerts are given out."""

    merged: Job
    merged_rules: NamedRules
    members: tuple[Member, ...]
    throttle: Throttle | None = None
    chains: RuleChains = NO_CHAINS

    @property
    def parts(self) -> tuple[Member | ReadingRule, ...]:
        """All that have a bucket of their own."""
        return (*self.members, *self.chains.rules)


@dataclass(frozen=True)
class RulesVersion:
    """All rules at some time, as bytes."""

    name: str
    rules: bytes


@dataclass(frozen=True)
class RulesDiff:
    """How the rules differ from those before. `new` are rules that were added or changed, if any;
    `gone` are the names of removed rules by generation, without generations that are gone
    altogether. `kept` are those of rules that stay, `refused` counts rules that can't run. That is
    about rules that read events: `chains` are those that read others, and what they read."""

    new: bytes | None
    gone: Mapping[int, frozenset[str]]
    refused: int = 0
    kept: frozenset[str] = frozenset()
    chains: bytes = b""


class Compiler(Protocol):
    """Compares and compiles rules."""

    def compiled(self, generations: Generations, chains: bytes) -> RulesProgram: ...

    def changed(self, generations: Generations, rules: bytes) -> RulesDiff: ...


@dataclass(frozen=True)
class RulesJob:
    """The parameters common to all buckets of a run. `rules` are the first rules, unless they come
    with the events."""

    compiler: Compiler
    signature: Signature
    buckets: int
    rules: RulesVersion | None = None


@dataclass(frozen=True)
class _Header:
    """The saved state of a bucket, besides its generations and parts."""

    signature: Signature
    buckets: int
    version: str
    generations: tuple[tuple[int, int, tuple[str, ...]], ...]
    regions: Mapping[str, int]
    next_generation: int
    next_region: int
    refused: int


def open_rules(job: RulesJob, cells: Cells, warm: RuleBucket | None = None) -> RuleBucket:
    """Open the saved bucket, using what is still in memory."""
    header = cells.header()
    if header is None:
        return RuleBucket(job)
    if warm is not None and warm.token == token_of(header):
        return warm
    bucket = RuleBucket(job)
    bucket.load(cells, header, warm)
    return bucket


class RuleBucket:
    """The state of a bucket in memory. `token` names the saved version that it equals, if any."""

    def __init__(self, job: RulesJob) -> None:
        self.job = job
        self.token: bytes | None = None
        self._version = ""
        self._generations: Generations = ()
        self._regions: dict[str, int] = {}
        self._next_generation, self._next_region = 0, _MERGED + 1
        self._chains = b""
        self._program = job.compiler.compiled((), self._chains)
        self._merged = Bucket(self._program.merged)
        self._members: dict[str, Bucket] = {}
        self._throttled = Throttled(self._merged.match_schema)
        self._matches = 0
        self._given = Counter[RuleName]()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._refused = 0
        self.stayed: frozenset[str] | None = None
        """The rules that were there before the last change, and are the same; None before any."""

    # ── a batch ──

    def step(
        self,
        cells: Cells,
        batches: Iterable[pa.RecordBatch],
        watermark: int,
        rules: RulesVersion | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the alerts that are decided by these rows and by the watermark, under the rules of
        this batch: new ones, or those before."""
        self.token = None  # whatever fails from here on, this is no version that was saved
        self.follow(cells, rules or self.job.rules)
        self._given.clear()
        self._seconds.clear()
        for alerts in self.match(self._merged.arrive(batches, watermark), watermark):
            self._given.update(counted([alerts]))
            yield alerts

    def follow(self, cells: Cells, rules: RulesVersion | None) -> None:
        """Switch to these rules, if they are others."""
        if rules is not None and rules.name != self._version:
            self.token = None
            self._change(cells, rules)

    def match(self, rows: pa.Table, watermark: int) -> Iterator[pa.RecordBatch]:
        """Yield the alerts that are decided by these rows, in order, and by the watermark."""
        self.token = None
        self._matches = 0
        every, throttle = self._found(rows, watermark), self._program.throttle
        if throttle is not None:
            every = iter(self._throttled.step(every, throttle, watermark).to_batches())
        for alerts in every:
            self._matches += alerts.num_rows
            yield alerts

    def _found(self, rows: pa.Table, watermark: int) -> Iterator[pa.RecordBatch]:
        chains = self._program.chains
        if not chains.rules:
            yield from self._of_events(rows, watermark)
            return
        found = list(self._of_events(rows, watermark))
        yield from found
        alerts = pa.Table.from_batches(found, self._merged.match_schema)
        for rule, following in chains.alerts(self._members, alerts, rows, watermark):
            yield from self._timed(rule.name, following)

    def _of_events(self, rows: pa.Table, watermark: int) -> Iterator[pa.RecordBatch]:
        """The alerts of rules that read events."""
        yield from self._timed("", self._merged.match(rows, watermark))
        for member in self._program.members:
            matches = member.match(self._members[member.name], rows, watermark)
            yield from self._timed(member.name, map(member.to_alerts, matches))

    def _timed(self, name: str, alerts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Adds what it takes to find the alerts to the seconds of this part."""
        begin = perf_counter()
        for batch in alerts:
            self._seconds[name] += perf_counter() - begin
            yield batch
            begin = perf_counter()
        self._seconds[name] += perf_counter() - begin

    def finish(self, until: Callable[[Job], int | None]) -> Iterator[pa.RecordBatch]:
        """The last alerts, at the end of the data; `until` says how far time passes there. Merged
        rules wait for nothing."""
        for member in self._program.members:
            for matches in self._members[member.name].finish(until(member.job)):
                yield member.to_alerts(matches)

    @property
    def parts(self) -> tuple[Bucket, ...]:
        """The buckets of the merged rules, and of all other queries."""
        return (self._merged, *self._members.values())

    def write_rows(self, cells: Cells) -> None:
        """Write the rows that have come, and drop those that are past."""
        self._merged.write_rows(Region(cells, _MERGED))
        for name, bucket in self._members.items():
            bucket.write_rows(Region(cells, self._regions[name]))

    def _change(self, cells: Cells, rules: RulesVersion) -> None:
        """Switch to these rules. The cells have the current state."""
        change = self.job.compiler.changed(self._generations, rules.rules)
        gone, self._refused = change.gone, change.refused
        before = {rule.name for rule in self._program.chains.rules}
        for generation in self._generations:
            if generation.number not in gone:
                cells.remove_segment(generation.number)
        kept = [
            replace(g, gone=g.gone | gone[g.number]) for g in self._generations if g.number in gone
        ]
        if change.new is not None:
            generation = Generation(self._next_generation, self._merged.end_row, change.new)
            cells.set_segment(generation.number, framed(change.new))
            kept.append(generation)
            self._next_generation += 1
        self._generations, self._version = tuple(kept), rules.name
        if change.chains != self._chains:
            self._chains = change.chains
            Region(cells, _CHAINS).set_header(framed(self._chains))
        self._program = self.job.compiler.compiled(self._generations, self._chains)
        reading = {r.rule for r in self._program.chains.rules if r.name in before}
        self.stayed = change.kept | reading
        self._throttled.keep(self.stayed)
        self._merged = open_bucket(self._program.merged, Region(cells, _MERGED))
        members = {part.name: part for part in self._program.parts}
        for name in [name for name in self._members if name not in members]:
            region = Region(cells, self._regions.pop(name))
            self._members.pop(name).remove(region)
        for name, member in members.items():
            if name not in self._members:
                self._members[name] = member.job.new_bucket()
                self._regions[name] = self._next_region
                self._next_region += 1

    @property
    def waits(self) -> bool:
        """Whether passing time alone can decide a match, without further rows."""
        return self._throttled.waits or any(part.waits for part in self.parts)

    def figures(self) -> FiguresOfRules:
        """What the rules did in this batch."""
        program = self._program
        named = [("", program.merged_rules, self._merged)]
        named += [(part.name, part.rules, self._members[part.name]) for part in program.parts]
        runs = {
            rules.example: RunFigures(
                rules.example, rules.count, round(self._seconds[name], 6), bucket.partial_matches
            )
            for name, rules, bucket in named
            if rules.count
        }
        return FiguresOfRules(figures_of(self._given, self._throttled.suppressed), runs)

    @property
    def late_rows(self) -> pa.Table:
        """The late rows of this batch, with all their columns."""
        return self._merged.late_rows

    def report(self) -> Report:
        merged = self._merged.report()
        others = [bucket.report() for bucket in self._members.values()]
        return replace(
            merged,
            matches=self._matches,
            shed=merged.shed + sum(report.shed for report in others),
            rows=merged.rows + sum(report.rows for report in others),
            size=merged.size + sum(report.size for report in others),
            replans=sum(report.replans for report in others),
            refused=self._refused,
            suppressed=self._throttled.suppressed.total(),
            ties=max(report.ties for report in (merged, *others)),  # the same events
        )

    # ── saving and opening ──

    def save(self, cells: Cells) -> None:
        """Save the changes."""
        self._merged.save(Region(cells, _MERGED))
        for name, bucket in self._members.items():
            bucket.save(Region(cells, self._regions[name]))
        if self._program.throttle is not None:
            Region(cells, _THROTTLED).set_header(framed(self._throttled.save()))
        token = os.urandom(TOKEN)
        header = {
            "signature": dict(self.job.signature),
            "buckets": self.job.buckets,
            "version": self._version,
            "generations": [(g.number, g.since, sorted(g.gone)) for g in self._generations],
            "regions": self._regions,
            "next_generation": self._next_generation,
            "next_region": self._next_region,
            "refused": self._refused,
        }
        cells.set_header(framed(token + json.dumps(header).encode()))
        self.token = token

    def load(self, cells: Cells, header: bytes, warm: RuleBucket | None) -> None:
        """Resume the saved state; parts in memory are used where they fit."""
        body = unframed(header, "the saved state")
        saved = _Header(**json.loads(bytes(body[TOKEN:])))
        require_same(saved.signature, self.job.signature)
        if saved.buckets != self.job.buckets:
            raise StateError(
                f"the checkpoint was written with {saved.buckets} buckets, and now there are "
                f"{self.job.buckets}: pass buckets={saved.buckets}, or start with a new checkpoint"
            )
        self._version, self._refused = saved.version, saved.refused
        self._generations = tuple(_generations(cells, saved, warm))
        self._regions = dict(saved.regions)
        self._next_generation, self._next_region = saved.next_generation, saved.next_region
        chains = Region(cells, _CHAINS).header()
        self._chains = b"" if chains is None else bytes(unframed(chains, "the saved state"))
        self._program = self.job.compiler.compiled(self._generations, self._chains)
        throttled = Region(cells, _THROTTLED).header()
        if throttled is not None and self._program.throttle is not None:
            self._throttled.load(bytes(unframed(throttled, "the saved state")))
        same = warm is not None and warm._generations == self._generations
        merged = warm._merged if warm is not None and same else None
        self._merged = _opened(self._program.merged, Region(cells, _MERGED), merged)
        for member in self._program.parts:
            warm_member = None if warm is None else warm._members.get(member.name)
            region = Region(cells, self._regions[member.name])
            self._members[member.name] = _opened(member.job, region, warm_member)
        self.token = bytes(body[:TOKEN])


def _generations(cells: Cells, saved: _Header, warm: RuleBucket | None) -> Iterator[Generation]:
    known = {} if warm is None else {g.number: g.rules for g in warm._generations}
    for number, since, gone in saved.generations:
        rules = known.get(number)
        if rules is None:
            data = cells.segment(number)
            if data is None:
                raise StateError("the rules of the saved state are missing. Restore the checkpoint")
            rules = bytes(unframed(data, "the rules of the saved state"))
        yield Generation(number, since, rules, frozenset(gone))


def _opened(job: Job, region: Region, warm: Bucket | None) -> Bucket:
    if region.header() is None:
        raise StateError("a part of the saved state is missing. Restore the checkpoint")
    return open_bucket(job, region, warm)
