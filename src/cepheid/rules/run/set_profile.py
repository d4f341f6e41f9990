"""What the rules of a set did in a run: print it, or take it as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.engine.attribution.json_rows import RULE, TEMPLATE
from cepheid.plan.amounts import count, duration, share
from cepheid.reasons.columns_of_text import columns

MATCHES = "matches"
_SHOWN = 10
"""How many passes and rules are printed."""


@dataclass(frozen=True)
class PassProfile:
    """A pass over the events: the numbers of its rules, how long it took, and the most partial
    matches that it held at once; None where they aren't counted, as of answers."""

    rules: NDArray[np.int64]
    seconds: float
    held: int | None


@dataclass(frozen=True)
class SetProfile:
    """A run of a set: the number of events, the name, template and matches of every rule, and the
    passes, in which rules share their time. Rules that read others are in no pass."""

    events: int
    rules: pa.Table
    passes: tuple[PassProfile, ...]

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.passes)

    def to_arrow(self) -> pa.Table:
        """A row for each rule: `rule`, `template`, `matches`, the number of its pass, from 1, and
        of the pass how many rules share it, its seconds, and the partial matches it held."""
        places = np.full(self.rules.num_rows, -1)
        for place, each in enumerate(self.passes):
            places[each.rules] = place
        known = pa.table(
            {
                "pass": pa.array(range(1, len(self.passes) + 1), pa.int64()),
                "rules_in_pass": pa.array([len(p.rules) for p in self.passes], pa.int64()),
                "seconds": pa.array([p.seconds for p in self.passes], pa.float64()),
                "held": pa.array([p.held for p in self.passes], pa.int64()),
            }
        )
        of_pass = known.take(pa.array(places, mask=places < 0))
        return pa.table({**_named(self.rules), **_named(of_pass)})

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        total = pc.sum(self.rules[MATCHES]).as_py() or 0
        return f"SetProfile({self.rules.num_rows:,} rules, {total:,} matches)"

    def _lines(self) -> Iterator[str]:
        total = pc.sum(self.rules[MATCHES]).as_py() or 0
        silent = pc.sum(pc.equal(self.rules[MATCHES], 0)).as_py() or 0
        yield (
            f"{count(self.events)} events, {count(total)} matches of "
            f"{count(self.rules.num_rows - silent)} rules; {count(silent)} never fired"
        )
        yield ""
        slowest = sorted(enumerate(self.passes, 1), key=lambda each: -each[1].seconds)
        rows = [
            (
                f"pass {number}",
                count(len(each.rules)),
                duration(each.seconds * 1e9),
                share(each.seconds / self.seconds if self.seconds else 0.0),
                "" if each.held is None else count(each.held),
                self.rules[RULE][int(each.rules[0])].as_py(),
            )
            for number, each in slowest[:_SHOWN]
        ]
        head = ("", "rules", "time", "share", "held", "for example")
        yield from columns([head, *rows], right=(1, 2, 3, 4))
        if len(slowest) > _SHOWN:
            yield f"{_SHOWN} of {len(slowest)} passes shown"
        yield ""
        most = self.rules.sort_by([(MATCHES, "descending"), (RULE, "ascending")]).slice(0, _SHOWN)
        fired = most.filter(pc.greater(most[MATCHES], 0)).select([RULE, TEMPLATE, MATCHES])
        if fired.num_rows:
            lines = [(row[RULE], row[TEMPLATE], count(row[MATCHES])) for row in fired.to_pylist()]
            yield from columns([(RULE, TEMPLATE, MATCHES), *lines], right=(2,))


def _named(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))
