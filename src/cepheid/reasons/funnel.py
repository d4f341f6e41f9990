"""`funnel`: how many got to each step of a pattern, how long it took, and where the others went."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.algebra.answer_shape import WINDOW_START
from cepheid.algebra.text import span_text
from cepheid.explain.markup import element, escape
from cepheid.explain.page import STYLE, document, section
from cepheid.language import ast
from cepheid.language.render import render
from cepheid.plan.amounts import count, share
from cepheid.reasons.anatomy import anatomy
from cepheid.reasons.columns_of_text import columns
from cepheid.reasons.first_groups import Groups, StartWindows
from cepheid.reasons.funnel_picture import funnel_picture
from cepheid.reasons.progress import Stage, stages
from cepheid.reasons.saved import save
from cepheid.reasons.trials import StepTime, Trials
from cepheid.reasons.why.report import Lost
from cepheid.reasons.why.report_page import table
from cepheid.reasons.why.report_text import lost_words


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """A step, or `match` at the end. `reached` counts events of the first step that got that far;
    `of_first` and `of_before` are shares of those of the first step and of the step before, None if
    that has none. `median` and `p90` are the times from the step before, in microseconds or units
    of an integer time. `group` is the value of `by`."""

    group: str | None
    text: str
    reached: int | None
    of_first: float | None
    of_before: float | None
    median: int | None
    p90: int | None
    lost: tuple[Lost, ...]


@dataclass(frozen=True)
class Funnel:
    """How far partial matches get: print it, or save it as .txt, .json, .svg or .html.

    query    its text
    by       the column whose values are the groups, or `window_start`; None if there is one group
    steps    of each group, the steps and the complete match
    events   how many events were looked at; `sample` says which, if not all
    ticks    whether times are integers without a unit
    """

    query: str
    by: str | None
    steps: tuple[FunnelStep, ...]
    events: int
    sample: str | None
    ticks: bool

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        reached = " → ".join(_number(s.reached) for s in self.steps if s.group == self._first)
        return f"Funnel({reached}{', …' if self.by else ''})"

    @property
    def _first(self) -> str | None:
        return self.steps[0].group if self.steps else None

    @property
    def groups(self) -> tuple[str | None, ...]:
        return tuple(dict.fromkeys(step.group for step in self.steps))

    def to_dict(self) -> dict[str, Any]:
        return {"version": 1, **asdict(self)}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_arrow(self) -> pa.Table:
        """A row per group and step."""
        rows = [
            {
                **({} if self.by is None else {self.by: step.group}),
                "step": step.text,
                "reached": step.reached,
                "of_first": step.of_first,
                "of_before": step.of_before,
                "median": step.median,
                "p90": step.p90,
                "lost": [asdict(lost) for lost in step.lost],
            }
            for step in self.steps
        ]
        return pa.Table.from_pylist(rows)

    def to_svg(self) -> str:
        """A bar per step."""
        return funnel_picture(
            [(s.group, s.text, s.reached, _share(s.of_first)) for s in self.steps]
        )

    def cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The names of the columns, and the lines, as they are printed."""
        return _table(self)

    def to_html(self) -> str:
        """A page that needs nothing else."""
        return document("Funnel", self._repr_html_())

    def _repr_html_(self) -> str:
        head, rows = _table(self)
        return element(
            "div",
            element("style", STYLE),
            section("Query", element("pre", escape(self.query))),
            section("Funnel", element("div", self.to_svg(), class_="drawing")),
            section(f"Steps, {_seen(self)}", table(head, rows, figures(head))),
            class_="cepheid",
        )

    def save(self, path: str | Path) -> None:
        """Write it as what the name says: .txt, .json, .svg or .html."""
        forms = {".json": self.to_json, ".svg": self.to_svg, ".html": self.to_html}
        save(path, {".txt": lambda: f"{self}\n", **forms})


def funnel_of(query: ast.Query, trials: Trials, by: Groups | None) -> Funnel:
    """The funnel of a query; with `by`, one for each group of first events."""
    parts = anatomy(query, trials)
    reached = stages(parts, trials)
    later = [parts.prefix(length) for length in range(2, len(parts.steps) + 1)]
    step_times = trials.step_times(parts.step_variables, later, by)
    groups: list[tuple[str | None, set[int] | None]] = [(None, None)]
    if by is not None:
        values = {row: trials.group(row, by) for row in reached[0].starts}
        names = sorted(set(values.values()), key=_order)
        groups = [(name, {row for row in values if values[row] == name}) for name in names]
    steps = tuple(s for name, rows in groups for s in _steps(reached, step_times, name, rows))
    column = WINDOW_START if isinstance(by, StartWindows) else by
    return Funnel(render(query), column, steps, trials.count, trials.sample, parts.ticks)


def _order(name: str) -> tuple[bool, float, str]:
    """Numbers by their size."""
    try:
        return False, float(name), name
    except ValueError:
        return True, 0.0, name


def _steps(
    reached_stages: Sequence[Stage],
    step_times: Sequence[Mapping[str | None, StepTime]],
    group: str | None,
    rows: set[int] | None,
) -> Iterator[FunnelStep]:
    first = before = None
    for place, stage in enumerate(reached_stages):
        starts = [m for r, m in stage.starts.items() if rows is None or r in rows]
        reached = None if stage.refused else sum(match.like for match in starts)
        lost = [
            Lost(c.kind, c.text(mine), sum(c.starts[r] for r in mine))
            for c in stage.causes
            if (mine := c.starts.keys() if rows is None else c.starts.keys() & rows)
        ]
        step_time = (
            step_times[place - 1].get(group, StepTime())
            if 0 < place <= len(step_times)
            else StepTime()
        )
        yield FunnelStep(
            group,
            stage.text,
            reached,
            _ratio(reached, first if place else reached),
            _ratio(reached, before if place else reached),
            step_time.median,
            step_time.p90,
            tuple(lost),
        )
        first, before = (reached if place == 0 else first), reached


def _ratio(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


# ── words ────────────────────────────────────────────────────────────────────


def _number(value: int | None) -> str:
    return "?" if value is None else count(value)


def _seen(funnel: Funnel) -> str:
    return f"in {funnel.sample or f'{count(funnel.events)} events'}"


def _share(part: float | None) -> str:
    return "" if part is None else share(part)


def _table(funnel: Funnel) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    head = ("step", "reached", "of first", "of before", "median", "90 %", "lost")
    rows = []
    for step in funnel.steps:
        took = ["" if t is None else _lasting(t, funnel.ticks) for t in (step.median, step.p90)]
        lost = ", ".join(f"{count(cause.count)} {lost_words(cause)}" for cause in step.lost)
        shares = (_share(step.of_first), _share(step.of_before))
        cells = (step.text, _number(step.reached), *shares, *took, lost)
        rows.append(cells if funnel.by is None else (str(step.group), *cells))
    return (head if funnel.by is None else (funnel.by, *head)), rows


def figures(head: Sequence[str]) -> range:
    """The columns of numbers: those between the step and what was lost."""
    return range(head.index("step") + 1, len(head) - 1)


def _lines(funnel: Funnel) -> Iterator[str]:
    head, rows = _table(funnel)
    yield from columns([head, *rows], right=figures(head))
    yield ""
    yield _seen(funnel)


_EXACT = 120_000_000
_LARGER = (
    ("days", 86_400_000_000),
    ("hours", 3_600_000_000),
    ("minutes", 60_000_000),
    ("seconds", 1_000_000),
    ("milliseconds", 1_000),
)


def _lasting(size: int, ticks: bool) -> str:
    """Whole seconds exactly, if they are few; longer times with three digits.

    >>> _lasting(90_000_000, False), _lasting(1_138_000_000, False), _lasting(7, True)
    ('90 seconds', '19 minutes', '7 units')
    """
    fitting = (s for s in _LARGER if size > s[1])
    exact = ticks or (size % 1_000_000 == 0 and size <= _EXACT)
    unit = None if exact else next(fitting, None)
    return span_text(size, ticks) if unit is None else f"{size / unit[1]:.3g} {unit[0]}"
