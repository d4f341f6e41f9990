"""The queries in Polars, tuned by hand: joins on time buckets (see `benchmarks.rivals`), groups
between negated events, window functions.

Each takes Polars and the events, and returns the frames of all matches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from benchmarks.peers.hand_loops import HOURS, LARGE, SMALL
from benchmarks.rivals import HOURS as WEB_HOURS

PolarsQuery = Callable[[Any, Any], list[Any]]

NAMES = ("IBM", "Sun", "Oracle", "Google")
HOUR = 3_600_000_000


def buckets(
    classes: int,
    per_window: int,
    window: int,
    stretch: int,
    predicates: Sequence[Callable[[Any], Any]] = (),
) -> PolarsQuery:
    """A sequence of so many stocks. `stretch` is the time whose matches are made at once."""
    stocks = [name.lower() for name in NAMES[:classes]]

    def run(pl: Any, events: Any) -> list[Any]:
        size = window // per_window
        start = pl.col("at_ibm")
        conditions = [predicate(pl) for predicate in predicates]
        made: list[Any] = []
        for sides in _stretches(pl, events, stocks, size, per_window, stretch // size):
            joined, left = sides[0], list(conditions)
            for n in range(1, classes):
                at, before = pl.col(f"at_{stocks[n]}"), pl.col(f"at_{stocks[n - 1]}")
                known = {*stocks[: n + 1]}
                ready = [c for c in left if set(c.meta.root_names()) <= known]
                left = [c for c in left if set(c.meta.root_names()) - known]
                joined = joined.join(sides[n], on="bucket")
                joined = joined.filter(at > before, at < start + window, *ready)
            times = {"match_start": start, "match_end": f"at_{stocks[-1]}"}
            made.append(joined.select(*stocks, **times).collect())
        return made

    return run


def _stretches(
    pl: Any, events: Any, stocks: Sequence[str], size: int, per_window: int, step: int
) -> list[list[Any]]:
    """The stocks with their buckets, for one stretch of the first one's time after the other."""
    events = events.with_columns(bucket=pl.col("ts") // size)
    copies = pl.int_ranges(pl.col("bucket") - per_window, pl.col("bucket") + 1)
    sides = []
    for n, stock in enumerate(stocks):
        named = events.filter(pl.col("name") == NAMES[n])
        columns = {f"at_{stock}": "ts", stock: "price"}
        if n == 0:
            sides.append(named.select("bucket", **columns))
        else:
            sides.append(named.select(copies, **columns).explode("bucket").sort("bucket"))
    edges = pl.Series(range(0, (events["bucket"].max() or 0) + 1 + step, step))
    cuts = [side["bucket"].search_sorted(edges, "left").to_list() for side in sides]
    return [
        [
            side.slice(cut[n], cut[n + 1] - cut[n]).lazy()
            for side, cut in zip(sides, cuts, strict=True)
        ]
        for n in range(len(edges) - 1)
    ]


def negation(pl: Any, events: Any) -> list[Any]:
    """Between two events there is no Sun, if as many Suns came before both."""
    counted = events.lazy().select("name", "price", "ts", suns=(pl.col("name") == "Sun").cum_sum())
    ibm = counted.filter(pl.col("name") == "IBM").select("suns", ibm="price", match_start="ts")
    oracle = counted.filter(pl.col("name") == "Oracle")
    oracle = oracle.select("suns", oracle="price", match_end="ts")
    start, end = pl.col("match_start"), pl.col("match_end")
    pairs = ibm.join(oracle, on="suns").filter(end > start, end < start + 200)
    return [pairs.drop("suns").collect()]


def web(pl: Any, events: Any) -> list[Any]:
    window = timedelta(hours=WEB_HOURS)
    bucket = pl.col("time").dt.epoch("us") // (WEB_HOURS * HOUR)

    def pages(category: str, n: str, copies: int) -> Any:
        names = {f"url_{n}": "url", f"time_{n}": "time"}
        chosen = events.lazy().filter(pl.col("category") == category)
        under = pl.int_ranges(bucket + 1 - copies, bucket + 1).alias("bucket")
        return chosen.select("ip", under, **names).explode("bucket")

    a, b, c = pl.col("time_a"), pl.col("time_b"), pl.col("time_c")
    pairs = pages("publication", "a", 1).join(pages("project", "b", 2), on=["ip", "bucket"])
    pairs = pairs.filter(b > a, b < a + window)
    matches = pairs.join(pages("courses", "c", 2), on=["ip", "bucket"])
    matches = matches.filter(c > b, c < a + window)
    return [matches.select("ip", "url_a", "url_b", "url_c", "time_a", "time_c").collect()]


def fraud(pl: Any, events: Any) -> list[Any]:
    window = timedelta(hours=HOURS)
    bucket = pl.col("ts").dt.epoch("us") // (HOURS * HOUR)
    bought = events.lazy().filter(pl.col("kind") == "purchase")
    big = bought.filter(pl.col("amount") > LARGE)
    big = big.select("card", "amount", bucket.alias("bucket"), last="id", match_end="ts")
    small = bought.filter(pl.col("amount") < SMALL)
    small = small.select("card", pl.int_ranges(bucket, bucket + 2).alias("bucket"), "id", "ts")
    small = small.explode("bucket")

    def earlier(matches: Any, name: str, time: str, before: tuple[str, str]) -> Any:
        at, last = pl.col(time), pl.col(before[0])
        columns = small.rename({"id": name, "ts": time})
        joined = matches.join(columns, on=["card", "bucket"])
        in_order = (at < last) | ((at == last) & (pl.col(name) < pl.col(before[1])))
        return joined.filter(in_order, at > pl.col("match_end") - window)

    pairs = earlier(big, "second", "at", ("match_end", "last"))
    matches = earlier(pairs, "first", "match_start", ("at", "second"))
    columns = ("card", "first", "second", "last", "amount", "match_start", "match_end")
    return [matches.select(columns).collect()]


def strict_run(pl: Any, events: Any) -> list[Any]:
    """As `duckdb_queries.STRICT_RUN`; sorted by account, so that no window function groups."""
    account, run = pl.col("account"), pl.col("run")
    same = account == account.shift(1)
    rises = (
        events.lazy()
        .sort("account", "id")
        .with_columns(
            run=(~((pl.col("price") > pl.col("price").shift(1)) & same).fill_null(False)).cum_sum()
        )
    )
    runs = rises.group_by("run", maintain_order=True).agg(
        account.first(),
        size=pl.len(),
        first=pl.col("id").first(),
        begin=pl.col("ts").first(),
        second=pl.col("id").slice(1, 1).first(),
        second_begin=pl.col("ts").slice(1, 1).first(),
    )
    later = account == account.shift(-1)
    size = pl.col("size")
    streaks = runs.with_columns(
        ends=later.fill_null(False),
        fall=pl.col("first").shift(-1),
        fell=pl.col("begin").shift(-1),
        streak=((size != 2) | (account != account.shift(1)).fill_null(True)).cum_sum(),
    )
    # Where a streak begins with a run of two, nothing was matched before it.
    place = (run - run.first().over("streak")).alias("place")
    leads = size.first().over("streak")
    odd = pl.col("place") % 2 == 1
    matched = (
        streaks.with_columns(place, leads=leads)
        .with_columns(
            matches=pl.col("ends")
            & (
                (size > 2)
                | (
                    (size == 2)
                    & pl.when(pl.col("leads") == 2)
                    .then(~odd)
                    .when(pl.col("leads") > 2)
                    .then(~odd)
                    .otherwise(odd)
                )
            )
        )
        .with_columns(
            taken=(pl.col("matches").shift(1) & (account == account.shift(1))).fill_null(False)
        )
        .filter("matches")
    )
    taken = pl.col("taken")
    return [
        matched.select(
            "account",
            first=pl.when(taken).then("second").otherwise("first"),
            rises=size - 1 - taken.cast(pl.UInt32),
            last="fall",
            match_start=pl.when(taken).then("second_begin").otherwise("begin"),
            match_end="fell",
        ).collect()
    ]
