"""Figure 16 with iterations in its templates: Cayuga's μ over the events between the steps.

NonDeterministic has μ with the identity: an instance stays, whatever comes. Here what comes is
kept: all events with the primary value between two steps are bound, and RETURN counts them
(*Iterated*), or adds up their values (*IteratedAgg*), as NonDeterministicAgg does with the three
steps. They find the three events of NonDeterministic, which is measured beside them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

import pyarrow as pa

from benchmarks.measure import WrongAnswer
from benchmarks.report import Record, Verdict, provenance, short
from benchmarks.rules.answers import EVENTS
from benchmarks.rules.figures import Say, Size
from benchmarks.rules.running import OPTIONS, WARM_UP, Load, compiled, load, run
from cepheid.engine.attribution.json_rows import alert_schema
from cepheid.engine.attribution.typed_rows import typed
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import CompiledRules, compile_rules
from cepheid.rules.run import process
from cepheid.workloads.cayuga import ITERATED, SCHEMA, Parameters

COUNTS = (10_000, 20_000, 40_000)
STILL = "NonDeterministic"
CURVES = (STILL, *ITERATED)
BETWEEN = "between"


@dataclass(frozen=True)
class Measured:
    """Seconds of processor time for matching, by template and number of rules."""

    events: int
    seconds: Mapping[tuple[str, int], float]

    @property
    def counts(self) -> list[int]:
        return list(dict.fromkeys(count for _, count in self.seconds))

    def rate(self, curve: str, count: int) -> float:
        return self.events / self.seconds[curve, count]


def measure(size: Size, say: Say) -> Measured:
    seconds: dict[tuple[str, int], float] = {}
    for count in (n // size.rules for n in COUNTS):
        with load(count, size.events, Parameters()) as given:
            for curve in CURVES:
                say(f"{count:,} rules: {curve}")
                seconds[curve, count] = _timed(curve, given)
    return Measured(size.events, seconds)


def _timed(curve: str, given: Load) -> float:
    """One run, of right answers alone."""
    if curve == STILL:
        merged = compiled(curve, given.rules)
        run(merged, given.events.slice(0, WARM_UP))
        begin = time.process_time()
        run(merged, given.events)
        return time.process_time() - begin
    rules = RuleSet.from_template(curve, ITERATED[curve], given.rules)
    ready = compile_rules(rules.templates, SCHEMA, OPTIONS, deals=True, ends=True)
    _matched(ready, given.events.slice(0, WARM_UP))
    begin = time.process_time()
    found = _matched(ready, given.events)
    seconds = time.process_time() - begin
    _check(curve, rules, found, given.answers.iterated())
    _check(curve, rules, _matched(ready, given.planted), given.planted_answers.iterated())
    return seconds


def _matched(ready: CompiledRules, events: pa.Table) -> pa.Table:
    schema = alert_schema(ready.rules, events.schema.field(OPTIONS.time).type)
    return pa.Table.from_batches(process.run(ready, events, schema, OPTIONS), schema)


def _check(curve: str, rules: RuleSet, alerts: pa.Table, expected: pa.Table) -> None:
    """The rule, the times of the three events, and how many are between them."""
    numbers = {name: number for number, name in enumerate(rules)}
    columns = pa.schema([(name, pa.int64()) for name in (*EVENTS, BETWEEN)])
    columns = columns.append(pa.field("match_start", pa.int64()))
    columns = columns.append(pa.field("match_end", pa.int64()))
    found: Counter[tuple[int, ...]] = Counter()
    for batch in alerts.to_batches():
        rows = typed(batch, columns).to_pylist()
        for rule, row in zip(batch.column("rule").to_pylist(), rows, strict=True):
            found[numbers[rule], row["a"], row["b"], row["c"], row[BETWEEN]] += 1
    answer = Counter(map(tuple, zip(*expected.to_pydict().values(), strict=True)))
    if found != answer:
        raise WrongAnswer(f"{curve} finds {found.total():,} matches, not {answer.total():,}")


# ── to keep ──


def verdicts(measured: Measured) -> Iterator[Verdict]:
    first, last = measured.counts[0], measured.counts[-1]
    slowest = min(measured.rate(curve, last) for curve in ITERATED)
    text = f"as in the paper, {last:,} rules with iterations run at 1,000 events per second or more"
    yield Verdict(text, slowest >= 1_000, f"{slowest:,.0f}")
    grown = {c: measured.rate(c, first) / measured.rate(c, last) for c in ITERATED}
    detail = ", ".join(f"{curve} {factor:.1f} ×" for curve, factor in grown.items())
    text = f"the cost of an event grows less than the rules do ({last / first:g} ×)"
    yield Verdict(text, max(grown.values()) < last / first, detail)
    costs = {c: measured.rate(STILL, last) / measured.rate(c, last) for c in ITERATED}
    detail = ", ".join(f"{curve} {factor:,.0f} ×" for curve, factor in costs.items())
    text = f"iterations cost at most 20 times as much as {STILL}, which binds three events"
    yield Verdict(text, max(costs.values()) <= 20, detail)


def record(measured: Measured, quick: bool) -> Record:
    rows = [
        [f"{count:,}", *(short(measured.rate(curve, count)) for curve in CURVES)]
        for count in measured.counts
    ]
    points = [
        {"curve": c, "x": n, "events": measured.events, "seconds": round(seconds, 4)}
        for (c, n), seconds in measured.seconds.items()
    ]
    return {
        **provenance(quick),
        "name": "iterations",
        "title": "Cayuga, figure 16(a), with iterations in the templates",
        "tables": [{"title": "events per second", "head": ["rules", *CURVES], "rows": rows}],
        "claims": [asdict(verdict) for verdict in verdicts(measured)],
        "points": points,
    }
