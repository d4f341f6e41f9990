"""The thesis' figures 6.2 to 6.12, without its NFA: SASE's experiments measure ours.

The thesis compares trees that push results up with trees that pull them, and a left-deep tree with
one that adapts its shape. Windows are in units of one trade each.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.cases import FIXED
from benchmarks.experiments import trades
from benchmarks.experiments.experiment import (
    THROUGHPUT,
    Claim,
    Experiment,
    Figure,
    Metric,
    Setting,
    Verdict,
    Way,
    ahead,
    gain_over,
)
from benchmarks.experiments.trades import SixStocks, workload
from cepheid.options import Adaptation

ROWS = 500_000
FREQUENCY_ROWS = 200_000
FREQUENCIES = (1, 2, 5, 10, 20, 50)
SHORT, LONG = 20, 40
WINDOWS = (5, 10, 15, 20, 25, 30, 40, 45, 50)
PHASE_ROWS = 100_000
RARITIES = (1, 2, 5, 10, 20, 50, 100, 200)

LEFT_PUSH = Way("left-deep, push", {**FIXED, "propagation": "push"})
LEFT_PULL = Way("left-deep, pull", {**FIXED, "propagation": "pull"})
ADAPTS = {**FIXED, "plan": "auto", "adapt": Adaptation()}
ADAPTIVE_PUSH = Way("adaptive, push", {**ADAPTS, "propagation": "push"})
ADAPTIVE_PULL = Way("adaptive, pull", {**ADAPTS, "propagation": "pull"})
WAYS = (LEFT_PUSH, LEFT_PULL, ADAPTIVE_PUSH, ADAPTIVE_PULL)

NO_NFA = "The thesis' NFA is left out. "
LITTLE_TO_GAIN = (
    "With short windows most of the time goes into reading the events, and no tree can be much "
    "faster than another; looking at the data while it runs is what adapting costs then. "
)
AGAINST = "left-deep, push"
GAIN = gain_over(AGAINST)


def frequency(place: str, frequent: str) -> Experiment:
    """Two of the six inputs are more and more frequent (section 6.2)."""
    figure = {"first": "6.2", "middle": "6.3", "last": "6.4"}[place]
    claims = {
        "first": (
            ahead("left-deep, pull", "left-deep, push", ("20", "50")),
            ahead("adaptive, push", "left-deep, push", ("5", "10", "20", "50")),
        ),
        "middle": (ahead("adaptive, push", "left-deep, push", ("5", "10", "20", "50")),),
        "last": (),
    }[place]
    return Experiment(
        f"thesis{figure}",
        f"Thesis, figure {figure}: the {place} inputs occur frequently",
        f"frequency of the {place} two inputs, relative to the others",
        tuple(_frequency_settings(frequent)),
        WAYS,
        (THROUGHPUT,),
        claims,
        NO_NFA + "Prices are 0 or 1, so that an equality holds for half of all pairs.",
    )


def _frequency_settings(frequent: str) -> Iterator[Setting]:
    for window in (SHORT, LONG):
        for query in (trades.QUERY_5, trades.QUERY_6):
            for times in FREQUENCIES:
                rates = {v: float(times if v in frequent else 1) for v in trades.STOCKS}
                name = f"{frequent} {times} times as frequent"
                found = workload(name, query, window, FREQUENCY_ROWS, rates, top=1)
                yield Setting(f"{times}", found, f"query {query.number} within {window}")


def structure() -> Experiment:
    """All predicates meet in one event (section 6.3)."""
    queries = (trades.QUERY_7, trades.QUERY_8, trades.QUERY_9)
    settings = (
        Setting(f"query {query.number}", workload("even", query, window, ROWS), f"within {window}")
        for window in (SHORT, LONG)
        for query in queries
    )
    return Experiment(
        "thesis6.6",
        "Thesis, figure 6.6: predicates that all read the first, the fourth or the last event",
        "predicates",
        tuple(settings),
        WAYS,
        (THROUGHPUT,),
        (ahead("adaptive, push", "left-deep, push", ("query 8", "query 9")),),
        NO_NFA + "Prices are from 0 to 1000: of 0 and 1 alone, query 8 would match nothing. "
        "Predicates that all read one event are not independent, as the cost model takes them to "
        "be: an event with a low price fails all of them. " + LITTLE_TO_GAIN,
        bars=True,
    )


def window_sizes(name: str, title: str, metric: Metric, changing: bool) -> Experiment:
    """Longer and longer windows, on random and on changing data (sections 6.4 and 6.6)."""
    note = NO_NFA + LITTLE_TO_GAIN
    if metric is GAIN:
        note += "The thesis' percentages are over the NFA; these are over the left-deep tree. "
    if changing:
        note += (
            f"A phase lasts {PHASE_ROWS:,} events instead of 5,000: the engine looks at the data, "
            "and may change its plan, at the end of a round of 4,096."
        )
    return Experiment(
        name,
        title,
        "window",
        tuple(_window_settings((trades.QUERY_10, trades.QUERY_11), changing)),
        WAYS,
        (metric,),
        (ahead("adaptive, pull", "left-deep, push", ("25", "30", "40", "45", "50")),),
        note,
    )


def _window_settings(queries: tuple[SixStocks, ...], changing: bool) -> Iterator[Setting]:
    for query in queries:
        for window in WINDOWS:
            if changing:
                rows = 2 * PHASE_ROWS * len(trades.PHASES)
                found = workload(
                    "changing", query, window, rows, phases=trades.PHASES, phase_rows=PHASE_ROWS
                )
            else:
                found = workload("even", query, window, ROWS)
            yield Setting(f"{window}", found, f"query {query.number}")


def closures() -> Experiment:
    """One and two Kleene closures (section 6.5)."""
    return Experiment(
        "thesis6.9",
        "Thesis, figure 6.9: one and two closures",
        "window",
        tuple(_window_settings((trades.QUERY_12, trades.QUERY_13), changing=False)),
        WAYS,
        (THROUGHPUT,),
        (ahead("adaptive, pull", "left-deep, push", ("25", "30", "40", "45", "50")),),
        NO_NFA + "There, `b+` stands for every subset of the events between the neighbors; here, "
        "for all of them: one group for a pair of neighbors, so there are fewer matches.",
    )


# ── figure 6.12 ──

LAST = "f"
PULL = Way("pull", {**FIXED, "propagation": "pull"})
PASS_DOWN = Way("pass-down", {**FIXED, "propagation": "pass-down"})
CHOSEN = Way("planner's choice", {**FIXED, "propagation": "auto"}, analyzed=True)
NOISE = 0.05


PASS_DOWN_ROWS = {50: 600_000, 100: 100_000}
"""By window: the thesis', and one in which a trigger finds more to do than to read the events."""


def pass_down() -> Experiment:
    """The last event is more and more rare (section 6.7)."""
    settings = []
    for window, rows in PASS_DOWN_ROWS.items():
        for query in (trades.QUERY_14, trades.QUERY_15):
            for times in RARITIES:
                rates = {v: float(1 if v == LAST else times) for v in trades.STOCKS}
                found = workload(f"{LAST} {times} times as rare", query, window, rows, rates)
                settings.append(Setting(f"{times}", found, f"query {query.number} within {window}"))
    longer = tuple(dict.fromkeys(s.panel for s in settings if s.panel.endswith("100")))
    shorter = tuple(dict.fromkeys(s.panel for s in settings if s.panel.endswith("50")))
    return Experiment(
        "thesis6.12",
        "Thesis, figure 6.12: passing a predicate down",
        "how many times as rare the last event is",
        tuple(settings),
        (PULL, PASS_DOWN, CHOSEN),
        (THROUGHPUT,),
        (
            Claim("pass-down is never chosen where it loses", _never_chosen_in_vain, must=True),
            ahead("pass-down", "pull", ("20", "50", "100", "200"), longer, must=True),
            ahead("pass-down", "pull", ("10", "20"), shorter),
        ),
        f"A choice counts as lost if pass-down takes more than {NOISE:.0%} longer than pull. In "
        "the thesis' window of 50 events there is so little to find for a trigger that, the rarer "
        "triggers are, the more of the time goes into reading the events, which costs the same "
        "either way; so longer windows stand beside it.",
    )


def _never_chosen_in_vain(figure: Figure) -> Verdict:
    chosen, lost = [], []
    for spot, points in figure.points.items():
        if "pass-down" in points["planner's choice"].chosen:
            chosen.append(spot)
            if points["pass-down"].cpu > (1 + NOISE) * points["pull"].cpu:
                lost.append(f"{spot.panel} at {spot.label}")
    if lost:
        return Verdict(False, f"it loses for {', '.join(lost)}")
    return Verdict(True, f"chosen in {len(chosen)} of {len(figure.points)} settings")


EXPERIMENTS = (
    frequency("first", "ab"),
    frequency("middle", "cd"),
    frequency("last", "ef"),
    structure(),
    window_sizes("thesis6.7", "Thesis, figure 6.7: size of the window", THROUGHPUT, False),
    window_sizes("thesis6.8", "Thesis, figure 6.8: gain by size of the window", GAIN, False),
    closures(),
    window_sizes("thesis6.10", "Thesis, figure 6.10: data that change", THROUGHPUT, True),
    window_sizes("thesis6.11", "Thesis, figure 6.11: gain on data that change", GAIN, True),
    pass_down(),
)
