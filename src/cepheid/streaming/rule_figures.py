"""What rules did in a batch: their matches, and the time of what they share."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace

import pyarrow as pa

from cepheid.engine.attribution.json_rows import RULE, TEMPLATE

MOST, MOST_RUNS = 1000, 100
"""Of how many rules a bucket tells in a batch, those with the most matches; and of how many runs,
those that took longest."""


RuleName = tuple[str, str]
"""The names of a rule and of its template."""


@dataclass(frozen=True)
class RuleFigures:
    """What a rule did: the template it is of, its matches that were given out, and those that
    `throttle=` left out."""

    template: str
    matches: int = 0
    suppressed: int = 0

    def plus(self, other: RuleFigures) -> RuleFigures:
        matches, suppressed = self.matches + other.matches, self.suppressed + other.suppressed
        return replace(other, matches=matches, suppressed=suppressed)


@dataclass(frozen=True)
class RunFigures:
    """What several rules share: an example of them, how many there are, the seconds that it took,
    and the most partial matches that it held at once in a bucket, where that is known."""

    example: str
    rules: int
    seconds: float
    held: int | None

    def plus(self, other: RunFigures) -> RunFigures:
        known = [held for held in (self.held, other.held) if held is not None]
        seconds = self.seconds + other.seconds
        return replace(other, seconds=seconds, held=max(known, default=None))


@dataclass(frozen=True)
class NamedRules:
    """Rules that run together, by one of them."""

    example: str = ""
    count: int = 0


@dataclass(frozen=True)
class FiguresOfRules:
    """By the names of the rules that have matches, and by the names of the examples."""

    rules: Mapping[str, RuleFigures] = field(default_factory=dict)
    runs: Mapping[str, RunFigures] = field(default_factory=dict)

    def plus(self, other: FiguresOfRules) -> FiguresOfRules:
        rules = dict(self.rules)
        for name, figures in other.rules.items():
            rules[name] = rules[name].plus(figures) if name in rules else figures
        runs = dict(self.runs)
        for name, run in other.runs.items():
            runs[name] = runs[name].plus(run) if name in runs else run
        return FiguresOfRules(rules, runs)

    def to_json(self) -> str:
        most = sorted(self.rules.items(), key=lambda n: -(n[1].matches + n[1].suppressed))[:MOST]
        rules = {name: asdict(figures) for name, figures in most}
        runs = sorted(self.runs.values(), key=lambda run: -run.seconds)[:MOST_RUNS]
        return json.dumps({"rules": rules, "runs": [asdict(run) for run in runs]})

    @staticmethod
    def of_json(texts: Iterable[str]) -> FiguresOfRules:
        """Those of several buckets together."""
        total = FiguresOfRules()
        for given in map(json.loads, texts):
            rules = {name: RuleFigures(**figures) for name, figures in given["rules"].items()}
            runs = {run["example"]: RunFigures(**run) for run in given["runs"]}
            total = total.plus(FiguresOfRules(rules, runs))
        return total


def counted(alerts: Iterable[pa.RecordBatch]) -> Counter[RuleName]:
    """How many alerts each rule has, with the name of its template."""
    counts: Counter[RuleName] = Counter()
    for batch in alerts:
        named = pa.table([batch.column(RULE), batch.column(TEMPLATE)], [RULE, TEMPLATE])
        for row in named.group_by([RULE, TEMPLATE]).aggregate([([], "count_all")]).to_pylist():
            counts[row[RULE], row[TEMPLATE]] += row["count_all"]
    return counts


def figures_of(matches: Counter[RuleName], suppressed: Counter[RuleName]) -> dict[str, RuleFigures]:
    names = matches.keys() | suppressed.keys()
    return {
        rule: RuleFigures(template, matches[rule, template], suppressed[rule, template])
        for rule, template in sorted(names)
    }
