"""Rules that read the matches of others, in the bucket where these are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from cepheid.streaming.buckets.bucket import Bucket, Job
from cepheid.streaming.rule_figures import NamedRules

Tables = Mapping[int, pa.Table]
"""Matches as others read them, by the place of their template."""


@dataclass(frozen=True)
class ReadingRule:
    """A rule that reads others, and its unique name. `rows` are what it reads of events and of
    matches, `returned` its matches as others read them."""

    name: str
    rule: str
    place: int
    job: Job
    rows: Callable[[pa.Table, Tables], pa.Table]
    returned: Callable[[pa.Table], pa.Table]
    to_alerts: Callable[[pa.RecordBatch], pa.RecordBatch]

    @property
    def rules(self) -> NamedRules:
        return NamedRules(self.rule, 1)


@dataclass(frozen=True)
class RuleChains:
    """Rules that read others, each after those that it reads. `sources` take the matches of the
    templates that read events out of their alerts."""

    rules: tuple[ReadingRule, ...] = ()
    sources: Mapping[int, Callable[[pa.Table], pa.Table]] = field(default_factory=dict)

    def alerts(
        self, buckets: Mapping[str, Bucket], found: pa.Table, rows: pa.Table, watermark: int
    ) -> Iterator[tuple[ReadingRule, Iterator[pa.RecordBatch]]]:
        """Each rule, and its alerts, where the others have `found` alerts with these rows."""
        tables = {place: of(found) for place, of in self.sources.items()}
        for rule in self.rules:
            yield rule, _alerts(rule, buckets[rule.name], rows, tables, watermark)


def _alerts(
    rule: ReadingRule,
    bucket: Bucket,
    rows: pa.Table,
    tables: dict[int, pa.Table],
    watermark: int,
) -> Iterator[pa.RecordBatch]:
    """The alerts of a rule; its matches are then in the tables."""
    read = rule.rows(rows, tables).to_batches()
    matches = pa.Table.from_batches(bucket.step(read, watermark), bucket.match_schema)
    before = [tables[rule.place]] if rule.place in tables else []
    tables[rule.place] = pa.concat_tables([*before, rule.returned(matches)])
    yield from map(rule.to_alerts, matches.to_batches())


NO_CHAINS = RuleChains()
