"""Events over which many variations of a query run: numbered, kept on the workers, counted there.

A number means the same event in every run, because the numbered rows are stored
(`localCheckpoint`). What comes back are counts, and a few examples.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.options import Options
from cepheid.plan.amounts import count
from cepheid.runtime import Alike, Bindable, Example, KeptRows
from cepheid.spark import batch
from cepheid.spark.columns.column_names import in_quotes, named, safe, types_of
from cepheid.spark.columns.entrance import entered
from cepheid.spark.columns.predicates import microseconds
from cepheid.spark.columns.schema import arrow_schema

PER_TASK = 20_000
"""About how many events a task has: a session's 200 tasks for each variation are too many for
little data."""

COMPILED = 200_000
"""Events above which kernels are compiled on the workers: for fewer, compiling them for every
variation takes longer than running them as plain Python."""

ACCURACY = 100_000
_SHARES = 1_000_000
_ROWS = "array<bigint>"


@dataclass(frozen=True)
class SparkEvents:
    """Kept events (see `cepheid.runtime.KeptEvents`), by the caller's names."""

    data: Any
    rows: KeptRows
    options: Options
    count: int
    total: int
    first: int
    last: int
    sample: str | None

    @property
    def columns(self) -> Any:
        if isinstance(self.data, Mapping):
            return {name: arrow_schema(frame.schema) for name, frame in self.data.items()}
        return arrow_schema(self.data.schema)

    @property
    def _frames(self) -> list[DataFrame]:
        return list(self.data.values()) if isinstance(self.data, Mapping) else [self.data]

    # ── counts ──────────────────────────────────────────────────────────────

    def counts(self, queries: Sequence[tuple[Bindable, bool]]) -> list[int]:
        """One job for all."""
        parts = [
            _one_number(batch.match(query, self.data, self.options), answered).select(
                F.lit(place).alias("query"), F.col("n").cast("bigint").alias("n")
            )
            for place, (query, answered) in enumerate(queries)
        ]
        rows = reduce(DataFrame.unionAll, parts).collect()
        found = {row["query"]: row["n"] for row in rows}
        return [int(found.get(place) or 0) for place in range(len(queries))]

    # ── first events and matches, by the queries that have them ─────────────

    def alike(
        self,
        queries: Sequence[Bindable],
        steps: Sequence[Sequence[int]] | None,
        width: int,
        by: str | int | None = None,
        shortest: Collection[int] = (),
    ) -> list[Alike]:
        """One job for all, with two shuffles: by subject, and by the set of queries that have it.
        The example of a first event is its earliest-ending or its shortest match; of a match, the
        shortest of all such matches."""
        subject = "first" if steps is not None else "rows"
        found = self._matches(queries, steps, width)
        by_time = F.lit(steps is None) | F.col("query").isin(*shortest)
        least = F.when(by_time, F.col("took")).otherwise(F.col("end"))
        example = F.min(F.struct(least.alias("least"), "end", "start", "rows"))
        each = found.groupBy(subject, "query").agg(example.alias("example"))
        whole = each.groupBy(subject).agg(
            F.sort_array(F.collect_set("query")).alias("queries"),
            F.collect_list(F.struct("query", "example")).alias("examples"),
        )
        if by is not None and steps is not None:
            whole = whole.join(self._values(by), "first", "left")
        else:
            whole = whole.withColumn("value", F.lit(None).cast("string"))
        first = F.col(subject) if steps is not None else _shortest()
        taken = {place: _taken(place) for place in shortest}
        rows = (
            whole.groupBy("queries", "value")
            .agg(
                F.count(F.lit(1)).alias("n"),
                F.min_by("examples", first).alias("examples"),
                (F.min("first") if steps is not None else F.lit(-1)).alias("first"),
                *(F.min(span).alias(f"least{place}") for place, span in taken.items()),
                *(F.max(span).alias(f"most{place}") for place, span in taken.items()),
            )
            .toArrow()
            .to_pylist()
        )
        return [_alike(row, shortest) for row in rows]

    def step_times(
        self,
        queries: Sequence[Bindable],
        steps: Sequence[Sequence[int]],
        width: int,
        between: Sequence[tuple[Sequence[int], Sequence[int]]],
        by: str | int | None = None,
    ) -> list[tuple[int, object, int, int]]:
        found = self._matches(queries, steps, width, between)
        example = F.min(F.struct("end", "start", "rows", "step_time"))
        each = found.groupBy("first", "query").agg(example["step_time"].alias("step_time"))
        if by is not None:
            each = each.join(self._values(by), "first", "left")
        else:
            each = each.withColumn("value", F.lit(None).cast("string"))
        quantiles = [
            F.expr(f"percentile_disc({share}) WITHIN GROUP (ORDER BY step_time)").cast("bigint")
            for share in (0.5, 0.9)
        ]
        rows = (
            each.filter(F.col("step_time").isNotNull())
            .groupBy("query", "value")
            .agg(quantiles[0].alias("half"), quantiles[1].alias("most"))
            .toArrow()
            .to_pylist()
        )
        return [(row["query"], row["value"], row["half"], row["most"]) for row in rows]

    def _matches(
        self,
        queries: Sequence[Bindable],
        steps: Sequence[Sequence[int]] | None,
        width: int,
        between: Sequence[tuple[Sequence[int], Sequence[int]]] | None = None,
    ) -> DataFrame:
        """The matches of the queries: `v0`, `v1`, … are the rows of variables, `m0`, `m1`, … their
        times, which a query returns of those that it has."""
        parts = []
        for place, query in enumerate(queries):
            matches = batch.match(query, self.data, self.options)
            types = {f.name: f.dataType for f in matches.schema.fields}
            rows = [_listed(f"v{n}", types) for n in range(width)]
            times = [_listed(f"m{n}", types) for n in range(width)]
            start, end = (
                microseconds(F.col(name), types[name]) for name in ("match_start", "match_end")
            )
            columns = {
                "query": F.lit(place),
                "rows": F.array(*rows),
                "start": start,
                "end": end,
                "took": end - start,
            }
            if steps is not None:
                columns["first"] = _first(steps, rows, times)
            if between is not None:
                before, now = (_latest([times[n] for n in part]) for part in between[place])
                columns["step_time"] = now - before
            parts.append(matches.select(*(c.alias(n) for n, c in columns.items())))
        return reduce(DataFrame.unionAll, parts)

    def _values(self, by: str | int) -> DataFrame:
        """The values of a column, or the starts of windows of that size, by the numbers of
        events."""
        moment = F.col(self.rows.moment)
        parts = []
        for frame in self._frames:
            if isinstance(by, int):
                value = moment - F.pmod(moment, F.lit(by))
            elif known := _names(frame, by):
                value = F.col(in_quotes(known[0]))
            else:
                continue
            parts.append(frame.select(F.col(self.rows.row).alias("first"), value.alias("value")))
        return reduce(DataFrame.unionAll, parts)

    # ── events and values ───────────────────────────────────────────────────

    def fetch(self, rows: Collection[int]) -> list[Mapping[str, Any]]:
        wanted = F.col(self.rows.row).isin(sorted(rows))
        return [
            event for frame in self._frames for event in frame.filter(wanted).toArrow().to_pylist()
        ]

    def values(self, column: str, most: int) -> pa.Array | None:
        parts = [values for frame in self._frames for values in _column(frame, column)]
        if not parts:
            return pa.array([], pa.string())
        found = pa.concat_arrays(
            [p.distinct().limit(most + 1).toArrow()["value"].combine_chunks() for p in parts]
        )
        return None if len(found) > most else found


def keep_events(
    data: Any,
    options: Options,
    columns: Collection[str],
    key: str | None,
    rows: int | None,
    small: int,
) -> SparkEvents | None:
    """The events with these columns (in lower case), at most about so many: of whole values of the
    key if there is one, or else the first in time. None if they are no more than `small`."""
    frames = entered(data) if isinstance(data, Mapping) else {"": entered(data)}
    moments = {
        name: microseconds(named(options.time), types_of(frame)[options.time])
        for name, frame in frames.items()
    }
    total = sum(frame.count() for frame in frames.values())
    if total <= min(small, total if rows is None else rows):
        return None
    names = KeptRows.beside({n for frame in frames.values() for n in types_of(frame)})

    def kept(wanted: Callable[[str], Column] | None) -> dict[str, DataFrame]:
        return {
            name: _numbered(
                frame if wanted is None else frame.filter(wanted(name)),
                place,
                moments[name],
                names,
                columns,
            )
            for place, (name, frame) in enumerate(frames.items())
        }

    sample: str | None = None
    if rows is None or total <= rows:
        stored = kept(None)
    else:
        stored, sample = _sampled(frames, moments, kept, key, rows, total)
    figures = [
        frame.agg(F.count(F.lit(1)), F.min(names.moment), F.max(names.moment)).collect()[0]
        for frame in stored.values()
    ]
    number = sum(row[0] for row in figures)
    return SparkEvents(
        dict(stored) if isinstance(data, Mapping) else stored[""],
        names,
        _options(options, number),
        number,
        total,
        min((row[1] for row in figures if row[1] is not None), default=0),
        max((row[2] for row in figures if row[2] is not None), default=0),
        None if sample is None else f"{count(number)} of {count(total)} events, {sample}",
    )


def _options(options: Options, number: int) -> Options:
    tasks = options.partitions or max(1, -(-number // PER_TASK))
    return replace(options, partitions=min(tasks, 200), jit=options.jit and number > COMPILED)


def _sampled(
    frames: Mapping[str, DataFrame],
    moments: Mapping[str, Column],
    kept: Callable[[Callable[[str], Column]], dict[str, DataFrame]],
    key: str | None,
    rows: int,
    total: int,
) -> tuple[dict[str, DataFrame], str]:
    """Of whole keys, drawn by their hashes; if that gives none or too many, by time."""
    share = rows / total
    kinds = [types_of(frame).get(key or "") for frame in frames.values()]
    if key is not None and kinds[0] is not None and all(kind == kinds[0] for kind in kinds):
        place = F.pmod(F.xxhash64(named(key)), F.lit(_SHARES))
        stored = kept(lambda _: place < F.lit(round(share * _SHARES)))
        if 0 < sum(frame.count() for frame in stored.values()) <= 2 * rows:
            return stored, f"those of about 1 in {count(round(1 / share))} values of {key}"
    union = [frame.select(moments[name].alias("at")) for name, frame in frames.items()]
    quantile = F.percentile_approx("at", share, ACCURACY)
    cut = reduce(DataFrame.unionAll, union).agg(quantile).collect()[0][0]
    return kept(lambda name: moments[name] <= F.lit(cut)), "the first in time"


def _numbered(
    frame: DataFrame, place: int, moment: Column, names: KeptRows, columns: Collection[str]
) -> DataFrame:
    """The wanted columns and those of `names`, by the caller's names, stored."""
    wanted = [n for n in types_of(frame) if n.lower() in columns]
    number = F.monotonically_increasing_id() + F.lit(place << 58)
    selected = frame.select(
        *(named(n) for n in wanted), number.alias(safe(names.row)), moment.alias(safe(names.moment))
    )
    return selected.toDF(*wanted, names.row, names.moment).localCheckpoint()


def _names(frame: DataFrame, column: str) -> list[str]:
    """The column by this name, or those by another case of it."""
    names = [n for n in frame.columns if n == column]
    return names or [n for n in frame.columns if n.lower() == column.lower()]


def _column(frame: DataFrame, column: str) -> Iterator[DataFrame]:
    for name in _names(frame, column):
        yield frame.select(F.col(in_quotes(name)).alias("value"))


def _one_number(matches: DataFrame, answered: bool) -> DataFrame:
    """How many matches there are: the answer says it, or they are counted."""
    if answered:
        return matches.select(F.col("n"))
    return matches.agg(F.count(F.lit(1)).alias("n"))


def _listed(name: str, types: Mapping[str, t.DataType]) -> Column:
    """What a variable binds as an array, empty if it is absent."""
    nothing = F.array().cast(_ROWS)
    match types.get(name):
        case None:
            return nothing
        case t.ArrayType():
            return F.coalesce(F.col(name).cast(_ROWS), nothing)
        case _:
            value = F.col(name)
            return F.when(value.isNull(), nothing).otherwise(F.array(value).cast(_ROWS))


def _first(steps: Sequence[Sequence[int]], rows: list[Column], times: list[Column]) -> Column:
    """The row of the first event of the first step that binds one."""
    events = []
    for step in steps:
        each = [
            F.struct(F.get(times[n], F.lit(0)).alias("m"), F.get(rows[n], F.lit(0)).alias("r"))
            for n in step
        ]
        bound = F.filter(F.array(*each), lambda event: event["r"].isNotNull())
        events.append(F.array_min(bound)["r"])
    return F.coalesce(*events, F.lit(-1))


def _latest(times: list[Column]) -> Column:
    return F.array_max(F.flatten(F.array(*times)))


def _shortest() -> Column:
    return F.array_min(F.transform("examples", lambda e: _took(e["example"])))


def _taken(place: int) -> Column:
    """The time that the example of a query takes, NULL if there is none."""
    of_query = F.filter("examples", lambda e: e["query"] == place)
    return F.get(F.transform(of_query, lambda e: _took(e["example"])), F.lit(0))


def _took(example: Column) -> Column:
    return example["end"] - example["start"]


def _alike(row: Mapping[str, Any], shortest: Collection[int]) -> Alike:
    examples = {part["query"]: _example(part["example"]) for part in row["examples"]}
    spans = {n: (row[f"least{n}"], row[f"most{n}"]) for n in shortest if n in examples}
    return Alike(frozenset(row["queries"]), row["n"], row["value"], row["first"], examples, spans)


def _example(found: Mapping[str, Any]) -> Example:
    rows = tuple(tuple(part) for part in found["rows"])
    return Example(found["start"], found["end"], rows)
