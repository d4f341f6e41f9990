"""`python -m benchmarks.calibrate [--scans] [--dry-run]`: fit the cost model's weights.

Small workloads, each of which stresses something else, are timed and held against the counts of
the cost model itself. Its cost is linear in the weights, so a count is the cost of a plan under
weights of which one is 1 and the others are 0. The weights are those with the least relative
error, and none is negative; what the workloads can't tell apart stays near a rough guess. The
workloads of the papers' figures are not among them: the correlation is measured on those
(`benchmarks.correlation`).

The weights of stacks and automata are fitted after the others, which they share, on workloads of
their own; `--scans` measures those alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import cepheid as cep
from benchmarks.cases import FIXED, STOCK_COLUMNS, known
from benchmarks.experiments.planning import FORCIBLE
from benchmarks.fitting import Floats, nonnegative
from benchmarks.measure import BATCH, PREFIX
from benchmarks.report import Record, provenance, write_json
from benchmarks.tree import may_record
from cepheid.planner import cost
from cepheid.planner.cost.plan_cost import cost_of
from cepheid.planner.cost.weights import Weights, calibrated
from cepheid.planner.search import search
from cepheid.statistics import Statistics
from cepheid.workloads import stocks

SEED = 1978
ROWS = 400_000
REPEATS = 7
TARGET = Path(cost.__file__).parent / "weights.json"

SCANS = ("push", "back", "start", "look")
"""The weights of stacks and automata."""

NANOSECONDS = tuple(f.name for f in fields(Weights) if f.name not in (*SCANS, "pass_down"))
"""The weights that are fitted first. `pass_down` is no time; it is found by trying."""

GUESS = {
    "access": 0.7,
    "chain": 3.0,
    "test": 0.7,
    "output": 6.0,
    "probe": 15.0,
    "hash": 30.0,
    "element": 10.0,
    "emit": 2.0,
    "event": 80.0,
    "demand": 5.0,
    "push": 20.0,
    "back": 3.0,
    "start": 60.0,
    "look": 4.0,
}
"""From looking at single kernels."""

TRUST = 0.3
"""What missing the guess by its own size counts for, compared with a workload's time by its own."""

EVEN = {"A": 1, "B": 1, "C": 1}


@dataclass(frozen=True)
class Micro:
    """A query over ticks with these rates and price selectivities, and how it is run."""

    query: str
    rates: Mapping[str, float]
    selectivity: Mapping[tuple[str, str], float] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    distinct: int = 0
    """If there are any: how many different volumes there are, for equalities."""

    @property
    def name(self) -> str:
        text = " ".join(self.query.split()).partition(" RETURN")[0]
        rates = ":".join(f"{rate:g}" for rate in self.rates.values())
        how = ", ".join(self.options.values())
        return f"{text} | {rates}{f' | {how}' if how else ''}"

    def events(self, rows: int) -> pa.Table:
        table = stocks.generate(rows, SEED, rates=self.rates, selectivity=self.selectivity)
        if not self.distinct:
            return table
        volume = pa.array(table["volume"].to_numpy() % self.distinct)
        return table.set_column(table.schema.get_field_index("volume"), "volume", volume)

    def statistics(self) -> Statistics:
        """What the events were drawn with."""
        shares = {f"{a}.price > {b}.price": share for (a, b), share in self.selectivity.items()}
        rates = known(self.rates).rates
        distinct = {f"{v}.volume": float(self.distinct) for v in self.rates if self.distinct}
        named = {text: share for text, share in shares.items() if text in self.query}
        read = {column: n for column, n in distinct.items() if column in self.query}
        return Statistics(rates, named, read)


def micros() -> Iterator[Micro]:
    """Each weight has workloads that depend on it more than on the others."""
    two = {"A": 1, "B": 1}
    for window in (2, 20, 100, 400):  # emit
        yield Micro(f"PATTERN A ; B WITHIN {window} RETURN A.price AS a, B.price AS b", two)
    for window in (50, 200, 800):  # access, test
        for share in (1 / 4, 1 / 50):
            where = "A.price > B.price"
            yield Micro(
                f"PATTERN A ; B WHERE {where} WITHIN {window} RETURN A.price AS a, B.price AS b",
                two,
                {("A", "B"): share},
            )
    for window in (50, 200):  # output: intermediate pairs of which few are ever used
        for plan in ("left-deep", "right-deep"):
            for pair in (("C", "B"), ("A", "B")):
                text = f"{pair[0]}.price > {pair[1]}.price"
                yield Micro(
                    f"PATTERN A ; B ; C WHERE {text} WITHIN {window} RETURN A.price AS a",
                    EVEN,
                    {pair: 1 / 50},
                    {"plan": plan},
                )
    for window in (30, 100):  # access: half of the pairs that are tried are too long
        for plan in ("left-deep", "right-deep"):
            yield Micro(
                f"PATTERN A ; B ; C WITHIN {window} RETURN A.price AS a, C.price AS c",
                EVEN,
                options={"plan": plan},
            )
    for micro in _long():  # what a round costs in each of many operators
        for plan in ("left-deep", "auto"):
            yield replace(micro, options={"plan": plan})
        yield replace(micro, options={"plan": "auto", "propagation": "pull"})
    for rates in ({"A": 1, "B": 50}, {"A": 50, "B": 1}, {"A": 1, "B": 200}):  # event, probe
        yield Micro("PATTERN A ; B WITHIN 20 RETURN A.price AS a", rates)
        yield Micro("PATTERN A ; B WITHIN 200 RETURN A.price AS a", rates)
    for distinct in (2, 20, 50, 200, 1000):  # hash, and chain where chains are long
        for window in (100, 1000) if distinct > 20 else (400, 2000):
            yield Micro(
                f"PATTERN A ; B WHERE A.volume = B.volume WITHIN {window} RETURN A.price AS a",
                two,
                distinct=distinct,
            )
    for window in (50, 500):  # negations
        for negation in ("push", "top"):
            for rates in (EVEN, {"A": 1, "B": 1, "C": 10}, {"A": 1, "B": 10, "C": 1}):
                yield Micro(
                    f"PATTERN A ; !B ; C WITHIN {window} RETURN A.price AS a",
                    rates,
                    options={"negation": negation},
                )
    for window in (20, 60, 200):  # element
        for rates in (EVEN, {"A": 1, "B": 10, "C": 1}):
            yield Micro(f"PATTERN A ; B+ ; C WITHIN {window} RETURN count(B) AS n", rates)
    for rare in (1, 20, 200):  # demand: the same with and without pull
        for propagation in ("lazy", "pull"):
            yield Micro(
                "PATTERN A ; B ; C WHERE A.price > B.price WITHIN 100 RETURN A.price AS a",
                {"A": rare, "B": rare, "C": 1},
                {("A", "B"): 1 / 10},
                {"propagation": propagation},
            )


def _long() -> Iterator[Micro]:
    """Chains of six classes, in short windows."""
    six = dict.fromkeys("ABCDEF", 1)
    for window in (15, 30):
        for pairs in (("AB", "CD", "EF"), ("AC", "BD", "EF"), ("BF",)):
            shares = {(a, b): 1 / 3 for a, b in pairs}
            where = " AND ".join(f"{a}.price > {b}.price" for a, b in pairs)
            text = f"PATTERN {' ; '.join(six)} WHERE {where} WITHIN {window} RETURN A.price AS a"
            yield Micro(text, six, shares)


def scan_micros() -> Iterator[Micro]:
    """The same for stacks and automata."""
    forced = {"engine": "nfa", "plan": "auto"}
    agree = "A.volume = B.volume AND B.volume = C.volume"
    pair = {("A", "B"): 1 / 50}
    for micro in _long():
        yield replace(micro, options=forced)
    chain = "PATTERN A ; B ; C"
    for window in (20, 100, 400):  # push, and back where a predicate leaves little
        text = f"WHERE A.price > B.price WITHIN {window} RETURN A.price AS a"
        yield Micro(f"{chain} {text}", EVEN, pair, forced)
        yield Micro(f"PATTERN A ; B {text}", {"A": 1, "B": 1}, pair, forced)
    for distinct in (20, 200, 1000):  # back along partitions
        for window in (100, 1000):
            text = f"{chain} WHERE {agree} WITHIN {window} RETURN A.price AS a"
            yield Micro(text, EVEN, {}, forced, distinct)
    for arrows in ("A -> B -> C", "A => B => C", "A -> B+ -> C"):  # start
        yield Micro(f"PATTERN {arrows} WITHIN 100 RETURN A.price AS a", EVEN, {}, forced)
        text = f"PATTERN {arrows} WHERE {agree} WITHIN 1000 RETURN A.price AS a"
        yield Micro(text, EVEN, {}, forced, 200)
    for window in (50, 200):  # look
        for tail in ("B -> C", "B => C"):
            text = f"PATTERN A ; {tail} WHERE A.price > B.price WITHIN {window} RETURN A.price AS a"
            yield Micro(text, EVEN, pair, forced)


@dataclass(frozen=True)
class Measured:
    """Nanoseconds per event, and the model's counts per event by weight."""

    micro: Micro
    nanoseconds: float
    counts: Mapping[str, float]


def measure(micro: Micro, rows: int = ROWS, repeats: int = REPEATS) -> Measured:
    table = micro.events(rows)
    query = cep.Query(micro.query)
    options: dict[str, Any] = {**STOCK_COLUMNS, **FIXED, **micro.options}
    options["stats"] = micro.statistics()

    def run(events: pa.Table) -> float:
        began = user_seconds()
        for _ in query.match(iter(events.to_batches(max_chunksize=BATCH)), **options):
            pass
        return user_seconds() - began

    run(table.slice(0, PREFIX))
    seconds = min(run(table) for _ in range(repeats))
    return Measured(micro, 1e9 * seconds / rows, counts(micro, query, table.schema))


def user_seconds() -> float:
    """Processor time without the system's: that is for memory that was given back before, and
    depends on what else has run."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def counts(micro: Micro, query: cep.Query, schema: pa.Schema) -> dict[str, float]:
    """How often a plan is expected to do what each weight stands for, per event."""
    statistics = micro.statistics()
    options = {**FIXED, **micro.options}
    forced = {name: options[name] for name in ("engine", *FORCIBLE) if name in options}
    plan = search(query.bind(schema, **STOCK_COLUMNS), statistics, **forced).plan
    assert plan.window is not None
    nothing = dict.fromkeys((f.name for f in fields(Weights)), 0.0)
    return {
        name: cost_of(plan, statistics, Weights.of(nothing | {name: 1.0})) / plan.window.size
        for name in (*NANOSECONDS, *SCANS)
    }


def fit(
    measured: list[Measured],
    names: Sequence[str] = NANOSECONDS,
    known: Mapping[str, float] = MappingProxyType({}),
) -> tuple[dict[str, float], Floats]:
    """The weights of these names, beside others that are known, and by what factor each estimate
    misses: 1 is right."""
    matrix = np.array([[m.counts[name] for name in names] for m in measured])
    times = np.array([m.nanoseconds for m in measured])
    done = np.array([sum(w * m.counts[name] for name, w in known.items()) for m in measured])
    relative = matrix / times[:, None]
    guess = TRUST * np.diag([1 / GUESS[name] for name in names])
    target = np.concatenate([1 - done / times, np.full(len(guess), TRUST)])
    found = nonnegative(np.vstack([relative, guess]), target)
    weights = {name: round(float(w), 3) for name, w in zip(names, found, strict=True)}
    return weights, relative @ found + done / times


def document(weights: Mapping[str, float], measured: list[Measured], factors: Floats) -> Record:
    """What is written of a first fit: the weights, and where they come from."""
    fixed = {name: getattr(calibrated(), name) for name in (*SCANS, "pass_down")}
    return {"weights": {**weights, **fixed}, "provenance": source(measured, factors)}


def source(measured: list[Measured], factors: Floats) -> Record:
    """Where weights come from, and how good they are."""
    errors = np.abs(np.log2(np.maximum(factors, 1e-9)))
    return {
        "by": "python -m benchmarks.calibrate",
        **{k: v for k, v in provenance().items() if k != "quick"},
        "fit": {
            "workloads": len(measured),
            "median_factor": round(float(2 ** np.median(errors)), 3),
            "worst_factor": round(float(2 ** errors.max()), 3),
        },
        "workloads": [
            {
                "name": m.micro.name,
                "nanoseconds_per_event": round(m.nanoseconds, 2),
                "estimate_over_measured": round(float(factor), 3),
            }
            for m, factor in zip(measured, factors, strict=True)
        ],
    }


def with_scans(found: Record, measured: list[Measured]) -> Record:
    """The record with the weights of stacks and automata fitted to what was measured."""
    known = {name: found["weights"][name] for name in NANOSECONDS}
    weights, factors = fit(measured, SCANS, known)
    return {**found, "weights": {**found["weights"], **weights}, "scans": source(measured, factors)}


def show(found: Record, of: str, console: Console) -> None:
    table = Table("workload", "ns per event", "estimate / measured", title="calibration")
    for row in found[of]["workloads"]:
        factor = row["estimate_over_measured"]
        table.add_row(row["name"], f"{row['nanoseconds_per_event']:.1f}", f"{factor:.2f}")
    console.print(table)
    weights = ", ".join(f"{name} {value:g}" for name, value in found["weights"].items())
    quality = found[of]["fit"]
    console.print(f"weights (ns): {weights}", highlight=False)
    console.print(
        f"half of the estimates are within a factor of {quality['median_factor']}, all within "
        f"{quality['worst_factor']}",
        highlight=False,
    )


def main(
    measuring: Callable[[Micro], Measured] = measure,
    workloads: Iterator[Micro] | None = None,
    scans: Iterator[Micro] | None = None,
) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibrate", description=__doc__)
    parser.add_argument(
        "--dry-run", action="store_true", help="show the weights and leave weights.json as it is"
    )
    parser.add_argument(
        "--scans", action="store_true", help="measure stacks and automata alone, keep the others"
    )
    given = parser.parse_args()
    if not given.dry_run and not may_record():
        return 1
    console = Console(emoji=False, width=None if sys.stdout.isatty() else 140)
    pa.set_cpu_count(1)

    def times(micros_: Iterator[Micro]) -> list[Measured]:
        measured = []
        with console.status("measuring") as status:
            for micro in micros_:
                status.update(micro.name)
                measured.append(measuring(micro))
        return measured

    if given.scans:
        found = json.loads(TARGET.read_text(encoding="utf-8"))
    else:
        measured = times(workloads or micros())
        weights, factors = fit(measured)
        found = document(weights, measured, factors)
        show(found, "provenance", console)
    found = with_scans(found, times(scans or scan_micros()))
    show(found, "scans", console)
    if not given.dry_run:
        write_json(TARGET, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
