"""Written rules that begin alike and end differently: joined where that pays, and each alone.

Five beginnings that no merged automaton takes (two events in any order, groups), and eight ends for
each of them; and five of these rules that have no more than classes of events in common. Both ways
take all rules over the same events, and must find the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

import pyarrow as pa

from benchmarks.report import Record, Verdict, provenance
from benchmarks.rules.figures import Say, Size
from benchmarks.rules.running import SEED
from benchmarks.rules.ways import Way, figures, measure_ways, table
from cepheid.rules import RuleSet
from cepheid.workloads import fraud

BEGINNINGS = {
    "refused": ("(login a & decline b)", "a.country <> b.country"),
    "changed": ("(pin_change a & decline b)", "b.amount > 50"),
    "abroad": ("(purchase a & purchase b)", "a.amount < 30 AND b.amount > 90"),
    "spree": ("login a ; purchase+ g ; purchase b", "g.amount < 50 AND b.amount > 100"),
    "tried": ("pin_change a ; decline+ g ; purchase b", "b.amount > 60"),
}
"""By name, patterns with events a and b, and the conditions on them."""

ENDS = {
    "more": ("purchase z", "z.amount > b.amount"),
    "large": ("purchase z", "z.amount > 250"),
    "back": ("purchase z", "z.country <> a.country"),
    "declined": ("decline z", "z.amount > 100"),
    "again": ("login z", "z.country = a.country"),
    "reset": ("pin_change z", "z.country <> a.country"),
    "unseen": ("!login n ; purchase z", "z.amount > 150"),
    "kept": ("!decline n ; login z", "n.amount > 80"),
}
WAYS = ("joined", "each alone")
JOINED, ALONE = WAYS
ALIKE, UNLIKE = "that begin alike", "that read the same events"
UNLIKE_RULES = (
    "refused-more", "changed-large", "abroad-back", "spree-declined", "tried-again",
)  # fmt: skip
MORE_EVENTS = 4


@dataclass(frozen=True)
class Found:
    """What both ways find with a set of rules, and what each of them takes."""

    which: str
    rules: int
    events: int
    matches: int
    ways: Mapping[str, Way]

    @property
    def times(self) -> float:
        return self.ways[ALONE].matching / self.ways[JOINED].matching


def rules() -> RuleSet:
    return RuleSet.of(
        {
            f"{begin}-{end}": f"PATTERN {pattern} ; {last} WHERE [card] AND {condition} AND {too} "
            "WITHIN 5 days RETURN a.card, a.id AS first, z.id AS last"
            for begin, (pattern, condition) in BEGINNINGS.items()
            for end, (last, too) in ENDS.items()
        }
    )


def measure(size: Size, say: Say) -> tuple[Found, ...]:
    events = fraud.generate(MORE_EVENTS * size.events, SEED)
    every = rules()
    sets = {ALIKE: every, UNLIKE: every.select(UNLIKE_RULES)}
    return tuple(_measured(which, given, events, size, say) for which, given in sets.items())


def _measured(which: str, given: RuleSet, events: pa.Table, size: Size, say: Say) -> Found:
    sets = {JOINED: [given], ALONE: [given.select([name]) for name in given]}
    ways, matches = measure_ways(
        sets,
        events,
        size.repeats,
        lambda c: len(c.runs),
        lambda text: say(f"rules {which}, {text}"),
    )
    return Found(which, len(given), events.num_rows, matches, ways)


# ── to keep ──


def verdicts(found: Iterable[Found]) -> Iterator[Verdict]:
    for measured in found:
        times = f"{measured.times:.1f} ×"
        rules = f"{measured.rules} rules {measured.which}"
        if measured.which == ALIKE:
            text = f"{rules} are at least 2 times as fast joined as alone"
            yield Verdict(text, measured.times >= 2, times)
        else:
            text = f"{rules} are no slower joined than alone"
            yield Verdict(text, measured.times >= 0.95, times)


def record(found: tuple[Found, ...], quick: bool) -> Record:
    return {
        **provenance(quick),
        "name": "joined",
        "title": "Written rules that have parts in common",
        "tables": [
            table(
                f"{measured.rules} rules {measured.which}, {measured.events:,} events, "
                f"{measured.matches:,} matches",
                measured.ways,
                measured.events,
            )
            for measured in found
        ],
        "claims": [asdict(verdict) for verdict in verdicts(found)],
        "sets": {measured.which: figures(measured.ways) for measured in found},
    }
