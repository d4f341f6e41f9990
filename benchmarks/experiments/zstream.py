"""ZStream's figures 8 to 17 and tables 3 and 5 (section 6), without its NFA: SASE's
experiments measure ours.

Queries, events and loops are those of `benchmarks.cases`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from benchmarks import loops
from benchmarks.cases import (
    CASES,
    FIXED,
    QUERY_6,
    QUERY_6_PLANS,
    QUERY_7,
    STOCK_COLUMNS,
    Workload,
    known,
    ticks,
)
from benchmarks.experiments.experiment import (
    HELD,
    INVERSE_COST,
    PEAK,
    RECORDS,
    THROUGHPUT,
    Experiment,
    Setting,
    Way,
    ahead,
    at_least,
    best_at,
    cost,
    near_the_best,
    same_choice,
    seconds,
    spread,
)
from cepheid.options import Adaptation

FREE = {"plan": "auto", "negation": "auto", "propagation": "auto"}

DEEP = tuple(Way(plan, {**FIXED, "plan": plan}) for plan in ("left-deep", "right-deep"))
TREES = tuple(Way(name, {**FIXED, "plan": shape}) for name, shape in QUERY_6_PLANS.items())
PLANS = tuple(QUERY_6_PLANS)
OPTIMIZER = Way("optimizer", {**FREE, "adapt": None}, analyzed=True)
ADAPTIVE = Way("adaptive", {**FREE, "adapt": Adaptation()})
NEGATIONS = (
    Way("NSEQ", {**FIXED, "negation": "push"}),
    Way("NEG on top", {**FIXED, "negation": "top"}),
)

SELECTIVITY = "selectivity of IBM.price > Sun.price"
RATES = "rates of IBM : Sun : Oracle"
SETTING = "setting"


def settings(query: str) -> tuple[Setting, ...]:
    """The workloads of a query in `benchmarks.cases`, labeled with what varies."""
    found = {case.workload.name: case.workload for case in CASES}
    return tuple(
        Setting(name.removeprefix(query).strip() or "web log", workload)
        for name, workload in found.items()
        if name.split()[0] == query
    )


# ── figure 14: the three settings of figure 12, one after the other ──

SEGMENT_ROWS = 2_000_000


def concatenated() -> Setting:
    parts = settings("q6")

    def events(rows: int) -> pa.Table:
        length = rows // len(parts)
        pieces = []
        for number, part in enumerate(parts):
            piece = part.workload.events(length)
            shifted = pa.array(range(number * length, (number + 1) * length), pa.int64())
            pieces.append(piece.set_column(piece.schema.get_field_index("ts"), "ts", shifted))
        return pa.concat_tables(pieces)

    workload = Workload(
        "q6 concatenated",
        QUERY_6,
        SEGMENT_ROWS * len(parts),
        events,
        loops.query_6,
        STOCK_COLUMNS,
    )
    return Setting("whole", workload, segments=tuple((p.label, 1 / len(parts)) for p in parts))


# ── query 7 with longer windows ──

WINDOWS = (200, 500, 1000, 2000)


def windows() -> Iterator[Setting]:
    rates = {"IBM": 1, "Sun": 1, "Oracle": 1}
    for window in WINDOWS:
        workload = Workload(
            f"q7 within {window}",
            QUERY_7.replace("200", str(window)),
            500_000,
            ticks(rates),
            partial(loops.query_7, window=window),
            STOCK_COLUMNS,
            statistics=known(rates),
        )
        yield Setting(f"{window}", workload)


def query_7(more: str) -> tuple[Setting, ...]:
    """Equal rates, and more and more of one class."""
    place = {"Sun": 1, "Oracle": 2}[more]
    return tuple(
        setting
        for setting in settings("q7")
        if all(rate == "1" or n == place for n, rate in enumerate(setting.label.split(":")))
    )


def _query_6(*labels: str) -> tuple[Setting, ...]:
    return tuple(s for s in settings("q6") if s.label.startswith(labels))


RARE_IBM, FIRST, SECOND = (setting.label for setting in settings("q6"))
BEST_OF_6 = {RARE_IBM: "left-deep", FIRST: "inner", SECOND: "right-deep"}

NO_NFA = "The paper's NFA is left out."
PAIRS = (
    "Records are what the operators make: the pairs that they put together, and the Oracles with "
    "the last Sun before each."
)

EXPERIMENTS = (
    Experiment(
        "fig8",
        "ZStream, figure 8: query 4 with varying selectivity",
        SELECTIVITY,
        settings("q4"),
        DEEP,
        (THROUGHPUT,),
        (
            at_least(4, "left-deep", "right-deep", "1/32"),
            ahead("left-deep", "right-deep", ("1/2", "1/4", "1/8", "1/16", "1/32")),
        ),
        "Below 1/8 the time is spent on finding matches, above it on writing them: at selectivity "
        "1 there are 700 matches for every event. " + NO_NFA,
    ),
    Experiment(
        "fig9",
        "ZStream, figure 9: 1 / estimated cost of query 4",
        SELECTIVITY,
        settings("q4"),
        DEEP,
        (INVERSE_COST, THROUGHPUT),
        (same_choice(),),
        "Estimates are made with the rates and selectivities that the events are drawn with.",
    ),
    Experiment(
        "fig10",
        "ZStream, figure 10: query 5 with varying rates",
        RATES,
        settings("q5"),
        DEEP,
        (THROUGHPUT,),
        (
            ahead("right-deep", "left-deep", ("50:1:1", "10:1:1")),
            ahead("left-deep", "right-deep", ("1:10:10", "1:50:50")),
        ),
        "As in the paper, the gap is wider where IBM is rare. " + NO_NFA,
    ),
    Experiment(
        "fig11",
        "ZStream, figure 11: 1 / estimated cost of query 5",
        RATES,
        settings("q5"),
        DEEP,
        (INVERSE_COST, THROUGHPUT),
        (same_choice(),),
    ),
    Experiment(
        "fig12",
        "ZStream, figure 12: plans of query 6",
        SETTING,
        settings("q6"),
        (*TREES, OPTIMIZER),
        (THROUGHPUT,),
        (
            near_the_best("optimizer", 0.1, PLANS, tuple(BEST_OF_6)),
            spread(2, PLANS),
            best_at(BEST_OF_6, PLANS, "the fastest plans", seconds),
        ),
        "The optimizer is given statistics gathered from a sample of the events. " + NO_NFA,
        bars=True,
    ),
    Experiment(
        "fig13",
        "ZStream, figure 13: 1 / estimated cost of query 6",
        SETTING,
        settings("q6"),
        TREES,
        (INVERSE_COST, THROUGHPUT),
        (same_choice(), best_at(BEST_OF_6, PLANS, "the cheapest plans by estimate", cost)),
        bars=True,
    ),
    Experiment(
        "fig14",
        "ZStream, figure 14: query 6 while the data change",
        "segment",
        (concatenated(),),
        (*TREES, ADAPTIVE),
        (THROUGHPUT,),
        (
            near_the_best("adaptive", 0.15, PLANS, tuple(BEST_OF_6)),
            *(ahead("adaptive", plan, ("whole",), must=True) for plan in PLANS),
        ),
        "The three settings of figure 12 one after the other, in one run. The adaptive run knows "
        "nothing of the data. " + NO_NFA,
        bars=True,
    ),
    Experiment(
        "fig15",
        "ZStream, figure 15: negation of query 7, more and more Oracle",
        RATES,
        query_7("Oracle"),
        NEGATIONS,
        (THROUGHPUT, RECORDS),
        (ahead("NSEQ", "NEG on top", must=True),),
        PAIRS,
    ),
    Experiment(
        "fig15-windows",
        "ZStream's query 7 with longer windows",
        "window, at rates 1:1:1",
        tuple(windows()),
        NEGATIONS,
        (THROUGHPUT, RECORDS),
        (
            ahead("NSEQ", "NEG on top", must=True),
            at_least(5, "NSEQ", "NEG on top", "2000"),
        ),
        PAIRS,
    ),
    Experiment(
        "fig16",
        "ZStream, figure 16: negation of query 7, more and more Sun",
        RATES,
        query_7("Sun"),
        NEGATIONS,
        (THROUGHPUT, RECORDS),
        (ahead("NSEQ", "NEG on top", must=True),),
        "With many Suns there is little to find either way, and most of the time goes into "
        "reading the events.",
    ),
    Experiment(
        "fig17",
        "ZStream, figure 17: query 8 on a month of a web log",
        "events",
        settings("q8"),
        DEEP,
        (THROUGHPUT, RECORDS),
        (ahead("left-deep", "right-deep"),),
        "The log is generated, with the counts of Table 4. " + NO_NFA,
        bars=True,
    ),
    Experiment(
        "table3",
        "ZStream, table 3: peak memory of query 6",
        SETTING,
        _query_6(RARE_IBM, FIRST),
        TREES,
        (PEAK, HELD),
        (),
        "Peak memory is what Python's tracemalloc sees during a run with batches of a round: the "
        "buffers, the stored events and the output that is being filled. Arrow's own memory, which "
        "holds the input, isn't in it. " + NO_NFA,
        bars=True,
    ),
    Experiment(
        "table5",
        "ZStream, table 5: peak memory of query 8",
        "events",
        settings("q8"),
        DEEP,
        (PEAK, HELD),
        (),
        "Measured as in table 3. " + NO_NFA,
        bars=True,
    ),
)
