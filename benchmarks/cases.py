"""What is measured: ZStream's queries 4 to 8 (section 6) on their workloads, under several plans.

The windows, the selectivities, the settings and plans of figure 12 and the counts of Table 4 are
the paper's. Of figures 10, 15 and 16, whose rates the text doesn't list, we take five and three
points: one class up to 50 times as frequent as the others, and up to 50 times as rare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from benchmarks import loops, rivals
from benchmarks.rivals import Rival
from cepheid.options import GivenOptions
from cepheid.statistics import Statistics
from cepheid.workloads import stocks, weblog

SEED = 2009

QUERY_4 = """
PATTERN IBM; Sun; Oracle
WHERE   IBM.price > Sun.price
WITHIN  200 units
RETURN  IBM.price AS ibm, Sun.price AS sun, Oracle.price AS oracle
"""
QUERY_5 = """
PATTERN IBM; Sun; Oracle
WITHIN  200 units
RETURN  IBM.price AS ibm, Sun.price AS sun, Oracle.price AS oracle
"""
QUERY_6 = """
PATTERN IBM; Sun; Oracle; Google
WHERE   Oracle.price > Sun.price AND Oracle.price > Google.price
WITHIN  100 units
RETURN  IBM.price AS ibm, Sun.price AS sun, Oracle.price AS oracle, Google.price AS google
"""
QUERY_7 = """
PATTERN IBM; !Sun; Oracle
WITHIN  200 units
RETURN  IBM.price AS ibm, Oracle.price AS oracle
"""
QUERY_8 = """
PATTERN publication; project; courses
WHERE   publication.ip = project.ip = courses.ip
WITHIN  10 hours
RETURN  courses.ip AS ip, publication.url AS publication, project.url AS project,
        courses.url AS course
"""


@dataclass(frozen=True, slots=True)
class Workload:
    """Events, a query, and the loop that counts its matches without our engine.

    `statistics` are what the events were made with, where the cost model is held against them.
    """

    name: str
    query: str
    rows: int
    events: Callable[[int], pa.Table]
    loop: Callable[[pa.Table], int]
    columns: GivenOptions
    rivals: Mapping[str, Rival] = field(default_factory=dict)
    statistics: Statistics = field(default_factory=Statistics)


@dataclass(frozen=True, slots=True)
class Target:
    """A rate per second of processor time that we mean to reach."""

    per_second: float
    of: str  # "events" or "matches"


@dataclass(frozen=True, slots=True)
class Case:
    """A workload under one plan."""

    workload: Workload
    plan: str
    options: Mapping[str, Any]
    target: Target | None = None

    @property
    def name(self) -> str:
        return f"{self.workload.name} {self.plan}"


def ticks(
    rates: Mapping[str, float], selectivity: Mapping[tuple[str, str], float] | None = None
) -> Callable[[int], pa.Table]:
    return lambda rows: stocks.generate(rows, SEED, rates=rates, selectivity=selectivity)


def known(rates: Mapping[str, float], selectivity: Mapping[str, float] | None = None) -> Statistics:
    """What `ticks` makes, as the cost model reads it: there is one tick per time unit."""
    total = sum(rates.values())
    return Statistics({name: rate / total for name, rate in rates.items()}, selectivity or {})


def ratio(rates: Mapping[str, float]) -> str:
    return ":".join(str(rate) for rate in rates.values())


STOCK_COLUMNS: GivenOptions = {"time": "ts", "type": "name"}

FIXED: Mapping[str, Any] = {
    "plan": "left-deep",
    "negation": "push",
    "propagation": "lazy",
    "adapt": None,
}
"""Nothing is left to the planner: what is compared is what is said."""

DEEP = ("left-deep", "right-deep")


def query_4() -> Iterator[Case]:
    """Figure 8: a predicate between the first two classes, more and more selective."""
    # Rows are such that no case has many more than 100 million matches.
    for parts, rows in ((1, 150_000), (2, 300_000), (4, 500_000), (8, 1_000_000)):
        yield from _query_4(parts, rows, {})
    yield from _query_4(16, 1_000_000, {})
    yield from _query_4(
        32,
        1_000_000,
        {
            "DuckDB": rivals.duckdb_sequence(2, "ibm.price > sun.price"),
            "Polars": rivals.polars_sequence(4, 200_000, lambda pl: pl.col("ibm") > pl.col("sun")),
        },
    )


def _query_4(parts: int, rows: int, others: Mapping[str, Rival]) -> Iterator[Case]:
    rates = {"IBM": 1, "Sun": 1, "Oracle": 1}
    workload = Workload(
        f"q4 1/{parts}",
        QUERY_4,
        rows,
        ticks(rates, {("IBM", "Sun"): 1 / parts}),
        loops.query_4,
        STOCK_COLUMNS,
        others,
        known(rates, {"IBM.price > Sun.price": 1 / parts}),
    )
    for plan in DEEP:
        hard = parts == 32 and plan == "left-deep"
        yield Case(workload, plan, {**FIXED, "plan": plan}, Target(1e6, "events") if hard else None)


def query_5() -> Iterator[Case]:
    """Figure 10: no predicate, IBM more frequent or rarer than the others."""
    for ibm, rest, rows in (
        (50, 1, 1_000_000),
        (10, 1, 1_000_000),
        (1, 1, 200_000),
        (1, 10, 500_000),
        (1, 50, 1_000_000),
    ):
        even = ibm == rest
        rates = {"IBM": ibm, "Sun": rest, "Oracle": rest}
        others: dict[str, Rival] = {}
        if even:
            others["DuckDB"] = rivals.duckdb_sequence(8)
            others["Polars"] = rivals.polars_sequence(8, 4_000)
        workload = Workload(
            f"q5 {ratio(rates)}",
            QUERY_5,
            rows,
            ticks(rates),
            loops.query_5,
            STOCK_COLUMNS,
            others,
            known(rates),
        )
        for plan in DEEP:
            first = even and plan == "left-deep"
            target = Target(80e6, "matches") if first else None
            yield Case(workload, plan, {**FIXED, "plan": plan}, target)


QUERY_6_PLANS = {
    "left-deep": "(((IBM Sun) Oracle) Google)",
    "right-deep": "(IBM (Sun (Oracle Google)))",
    "bushy": "((IBM Sun) (Oracle Google))",
    "inner": "(IBM ((Sun Oracle) Google))",
}


def query_6() -> Iterator[Case]:
    """Figure 12: three settings, each of which is good for another plan."""
    even = {"IBM": 1, "Sun": 1, "Oracle": 1, "Google": 1}
    rare = {"IBM": 1, "Sun": 100, "Oracle": 100, "Google": 100}
    for name, rates, first, second in (
        (f"rate={ratio(rare)}", rare, 1.0, 1.0),
        ("sel1=1/50", even, 1 / 50, 1.0),
        ("sel2=1/50", even, 1.0, 1 / 50),
    ):
        workload = Workload(
            f"q6 {name}",
            QUERY_6,
            300_000,
            ticks(rates, {("Oracle", "Sun"): first, ("Oracle", "Google"): second}),
            loops.query_6,
            STOCK_COLUMNS,
            statistics=known(
                rates,
                {"Oracle.price > Sun.price": first, "Oracle.price > Google.price": second},
            ),
        )
        for plan, shape in QUERY_6_PLANS.items():
            yield Case(workload, plan, {**FIXED, "plan": shape})


def query_7() -> Iterator[Case]:
    """Figures 15 and 16: negation pushed down and on top, with more Oracle and with more Sun."""
    for sun, oracle in ((1, 1), (1, 10), (1, 50), (10, 1), (50, 1)):
        rates = {"IBM": 1, "Sun": sun, "Oracle": oracle}
        workload = Workload(
            f"q7 {ratio(rates)}",
            QUERY_7,
            1_000_000,
            ticks(rates),
            loops.query_7,
            STOCK_COLUMNS,
            statistics=known(rates),
        )
        yield Case(workload, "NSEQ", {**FIXED, "negation": "push"})
        yield Case(workload, "NEG on top", {**FIXED, "negation": "top"})


def query_8() -> Iterator[Case]:
    """Figure 17: a month of a web server."""
    workload = Workload(
        "q8",
        QUERY_8,
        weblog.TABLE_4_ROWS,
        lambda rows: weblog.generate(rows, SEED),
        loops.query_8,
        {"time": "time", "type": "category"},
        {"DuckDB": rivals.duckdb_web, "Polars": rivals.polars_web},
    )
    for plan in DEEP:
        target = Target(8e6, "events") if plan == "left-deep" else None
        yield Case(workload, plan, {**FIXED, "plan": plan}, target)


CASES = (*query_4(), *query_5(), *query_6(), *query_7(), *query_8())


def chosen(names: list[str]) -> tuple[Case, ...]:
    """The cases whose names begin with one of the given ones; all of them without names."""
    return tuple(c for c in CASES if not names or any(c.name.startswith(n) for n in names))
