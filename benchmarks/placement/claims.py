"""What the paper says of figures 9 and 10, whether it holds here, and what is kept of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from statistics import mean, median

from benchmarks.next.ordering import ROUNDING
from benchmarks.placement.model import WORKLOADS, Workload
from benchmarks.placement.queries import OPERATORS
from benchmarks.placement.rewriting import ISSUED, ONE, REWRITTEN, Figure, Measured, percent, spent
from benchmarks.report import Record, Verdict, provenance, short

NOISE = 3.0
"""Percent by which a query may seem to lose."""


def verdicts(figure: Figure) -> Iterator[Verdict]:
    yield ahead(figure)
    yield grows(figure, "next")
    yield grows(figure, "union")
    yield below(figure)
    yield between(figure)
    yield doubled(figure)
    yield fifth(figure)
    yield steady(figure)


def ahead(figure: Figure) -> Verdict:
    most = max(figure.effort.sizes)
    found = {workload: figure.gain(workload, most) for workload in WORKLOADS}
    text = f"queries of {most} operators: more are supported when rewritten"
    return Verdict(text, min(found.values()) > 0, _gains(found), must=True)


def grows(figure: Figure, workload: Workload) -> Verdict:
    sizes = [size for size in figure.effort.sizes if size > 1]
    few, many = (figure.gain(workload, size) for size in (sizes[0], sizes[-1]))
    text = (
        f"{workload}: what rewriting gains increases with the size of queries "
        f"({sizes[0]} to {sizes[-1]} operators)"
    )
    return Verdict(text, many > few, f"{few:+.0f} % to {many:+.0f} %")


def below(figure: Figure) -> Verdict:
    sizes = [size for size in figure.effort.sizes if size >= OPERATORS]
    pairs = [(figure.gain("union", size), figure.gain("next", size)) for size in sizes]
    detail = ", ".join(f"{one:+.0f} % and {other:+.0f} %" for one, other in pairs)
    text = f"union gains less than next, from {sizes[0]} operators on"
    return Verdict(text, all(one < other for one, other in pairs), detail)


def between(figure: Figure) -> Verdict:
    sizes = [size for size in figure.effort.sizes if size >= OPERATORS]
    rows = [{w: figure.gain(w, size) for w in WORKLOADS} for size in sizes]
    detail = "; ".join(
        f"{size} operators: {_gains(row)}" for size, row in zip(sizes, rows, strict=True)
    )
    holds = all(sorted(row.values())[1] == row["mix"] for row in rows)
    return Verdict("mix is between the two", holds, detail)


def doubled(figure: Figure) -> Verdict:
    found = [figure.faster("next", number) for number in figure.effort.numbers]
    text = "next: throughput is doubled in many cases (at half of the numbers of queries)"
    often = sum(gain >= 100 for gain in found)
    detail = f"at {often} of {len(found)}: " + ", ".join(f"{gain:+.0f} %" for gain in found)
    return Verdict(text, 2 * often >= len(found), detail)


def fifth(figure: Figure) -> Verdict:
    found = mean(figure.faster("union", number) for number in figure.effort.numbers)
    text = "union: about 20 % more throughput on average (within 10)"
    return Verdict(text, abs(found - 20) <= 10, f"{found:+.0f} %")


def steady(figure: Figure) -> Verdict:
    """By the model no query gets slower; by the clock one may."""
    changed = [
        query.timed.seconds
        for queries in figure.queries.values()
        for query in queries
        if query.cost[REWRITTEN] < (1 - ROUNDING) * query.cost[ISSUED]
    ]
    slower = sum(s[REWRITTEN] > (1 + NOISE / 100) * s[ISSUED] for s in changed)
    text = f"no query gets slower by rewriting (by more than {NOISE:g} %)"
    return Verdict(text, not slower, f"{slower} of the {len(changed)} that it changes do")


def _gains(found: Mapping[Workload, float]) -> str:
    return ", ".join(f"{workload} {gain:+.0f} %" for workload, gain in found.items())


# ── to keep ──


def record(figure: Figure, quick: bool) -> Record:
    effort = figure.effort
    return {
        **provenance(quick),
        "name": "rewriting",
        "title": "NEXT, figures 9 and 10: rewriting on a single node",
        "seeds": effort.seeds,
        "seconds": effort.seconds,
        "tables": [
            *(_supported(figure, workload) for workload in WORKLOADS),
            *(_throughput(figure, workload) for workload in WORKLOADS),
        ],
        "claims": [asdict(verdict) for verdict in verdicts(figure)],
        "note": note(figure),
        "curves": list(_curves(figure)),
        "points": [
            {
                "workload": workload,
                "operators": operators,
                "seed": seed,
                "seconds": [
                    {way: round(s, 5) for way, s in query.timed.seconds.items()}
                    for query in queries
                ],
                "matches": [query.timed.matches for query in queries],
                "modeled": [
                    {way: round(c, 2) for way, c in query.cost.items()} for query in queries
                ],
            }
            for (workload, operators, seed), queries in figure.queries.items()
        ],
    }


def note(figure: Figure) -> str:
    """Only what the figures say by themselves: what holds in a run is for the claims."""
    most, number = max(figure.effort.sizes), figure.effort.queries
    runs = figure.own("next", most, number)
    seeds = [percent(spent(run, ISSUED), spent(run, REWRITTEN)) for run in runs]
    modeled, found = figure.modeled("next", most, number), figure.gain("next", most)
    one, best = (figure.supported("next", OPERATORS, way) for way in (ONE, REWRITTEN))
    same = _gains({workload: figure.gain(workload, 1) for workload in WORKLOADS})
    issued = [q for run in figure.own("next", OPERATORS, max(figure.effort.numbers)) for q in run]
    return (
        "A query of one operator has nothing to rewrite, so what it seems to gain "
        f"({same}) is how far two measurements of the same work are apart; a gain or a loss of "
        f"that size means nothing. Seeds differ far more: next queries of {most} operators gain "
        f"{found:+.0f} %, and {min(seeds):+.0f} to {max(seeds):+.0f} % by seed, because a few "
        f"queries decide. Of the next queries of {OPERATORS} operators, as issued, the most "
        f"expensive tenth takes {dearest(issued):.0%} of the time, and rewriting gains "
        f"{typical(issued):+.0f} % for the median one. The cost model promises more than was "
        f"measured ({modeled:+.0f} % for those of {most} operators). It leaves out what an "
        "operator costs for each run, whatever it reads, and it counts an event that meets one "
        "that waits for it as much as one that arrives, which here is a step in a kernel's loop "
        "against being merged, filtered and copied. How much of the difference is due to which "
        "was not measured. "
        f"*{ONE}* supports {one / best:.1f} times the operators of the rewritten tree (queries of "
        f"{OPERATORS}): a sequence that is written as one query has no streams between its parts, "
        "and no parentheses to choose. NEXT's order matters where parts are queries of their own, "
        "which others read."
    )


def dearest(queries: list[Measured]) -> float:
    """The share of the time that the most expensive tenth takes, as issued."""
    times = sorted((query.timed.seconds[ISSUED] for query in queries), reverse=True)
    return sum(times[: max(1, len(times) // 10)]) / sum(times)


def typical(queries: list[Measured]) -> float:
    """What rewriting gains for the median query, in percent."""
    times = [query.timed.seconds for query in queries]
    return median(percent(seconds[ISSUED], seconds[REWRITTEN]) for seconds in times)


def _ways(workload: Workload) -> list[str]:
    return [ISSUED, REWRITTEN, *([ONE] if workload == "next" else [])]


def _curves(figure: Figure) -> Iterator[Record]:
    """What is drawn: for each figure and workload, a curve for each way."""
    for workload in WORKLOADS:
        for way in _ways(workload):
            ys = [figure.supported(workload, size, way) for size in figure.effort.sizes]
            yield _curve(9, workload, way, figure.effort.sizes, ys)
    for workload in WORKLOADS:
        for way in _ways(workload):
            ys = [figure.throughput(workload, number, way) for number in figure.effort.numbers]
            yield _curve(10, workload, way, figure.effort.numbers, ys)


def _curve(
    number: int, workload: Workload, way: str, xs: tuple[int, ...], ys: list[float]
) -> Record:
    whole = [round(y) for y in ys]
    return {"figure": number, "workload": workload, "way": way, "x": list(xs), "y": whole}


def _supported(figure: Figure, workload: Workload) -> Record:
    ways, number = _ways(workload), figure.effort.queries
    rows = [
        [
            str(size),
            *(f"{figure.supported(workload, size, way):,.0f}" for way in ways),
            f"{figure.gain(workload, size):+.0f} %",
            f"{figure.modeled(workload, size, number):+.0f} %",
        ]
        for size in figure.effort.sizes
    ]
    head = ["operators of a query", *ways, "rewriting gains", "by the cost model"]
    return {"title": f"figure 9, {workload}: operators supported", "head": head, "rows": rows}


def _throughput(figure: Figure, workload: Workload) -> Record:
    ways = _ways(workload)
    rows = [
        [
            str(number),
            *(short(figure.throughput(workload, number, way)) for way in ways),
            f"{figure.faster(workload, number):+.0f} %",
            f"{figure.modeled(workload, OPERATORS, number):+.0f} %",
        ]
        for number in figure.effort.numbers
    ]
    head = ["queries", *ways, "rewriting gains", "by the cost model"]
    return {"title": f"figure 10, {workload}: events per second", "head": head, "rows": rows}
