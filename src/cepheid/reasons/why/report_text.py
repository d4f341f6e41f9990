"""The report of `why` in words: text and HTML say the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cepheid.language.diagnostics import printable
from cepheid.plan.amounts import count
from cepheid.reasons.columns_of_text import columns

if TYPE_CHECKING:
    from cepheid.reasons.why.report import Lost, Miss, Why, WithoutPart


def report_text(report: Why) -> str:
    return "\n".join(_lines(report))


def matches_words(report: Why) -> str:
    if not report.complete:
        return f"more than {count(report.matches)} matches"
    return "no match" if not report.matches else _plural(report.matches, "match", "matches")


def _plural(number: int, singular: str, plural: str) -> str:
    return f"{count(number)} {singular if number == 1 else plural}"


def headline(report: Why) -> str:
    seen = report.sample or _plural(report.events, "event", "events")
    return f"{matches_words(report)} in {seen}"


def step_rows(report: Why) -> list[tuple[str, str, str]]:
    return [
        (
            step.text,
            "?" if step.reached is None else count(step.reached),
            ", ".join(f"{count(lost.count)} {lost_words(lost)}" for lost in step.lost),
        )
        for step in report.steps
    ]


def lost_words(lost: Lost) -> str:
    match lost.kind:
        case "candidate" | "together":
            return lost.text
        case "window":
            return f"only outside the window ({lost.text})"
        case _:
            return f"by {lost.text}"


def variable_rows(report: Why) -> list[tuple[str, str, str]]:
    rows = []
    for v in report.variables:
        name = f"!{v.variable}" if v.negated else v.variable
        rows.append((name, _known(v.events), "events of the type"))
        rows += [("", _known(passing), text) for text, passing in v.conditions]
        if len(v.conditions) > 1:
            rows.append(("", _known(v.passing), "all of these"))
    return rows


def _known(number: int | None) -> str:
    return "?" if number is None else count(number)


def without_rows(report: Why) -> list[tuple[str, str]]:
    return [(without_words(part), more_words(part)) for part in report.without]


def without_words(part: WithoutPart) -> str:
    return f"with {part.text}" if part.kind == "window" else f"without {part.text}"


def more_words(part: WithoutPart) -> str:
    if part.more is None:
        return f"{'' if part.complete else 'more than '}{count(part.matches)} in all"
    if part.more == 0 and part.complete:
        return "no more"
    least = "" if part.complete else "at least "
    return f"{least}{count(abs(part.more))} {'more' if part.more > 0 else 'fewer'}"


def miss_words(miss: Miss) -> tuple[str, str]:
    """Its rows, or its times if they have no numbers; and what stopped it."""
    events = miss.rows or miss.times
    rows = ", ".join(f"{v} {' '.join(map(str, each))}" for v, each in events.items())
    seen = ", ".join(f"{name} is {value}" for name, value in miss.values)
    return rows, f"{_reason(miss)}: {seen}" if seen else _reason(miss)


def _reason(miss: Miss) -> str:
    match miss.kind:
        case "candidate" | "together":
            return miss.text
        case "window":
            return f"needs {miss.text}"
        case "negation":
            return f"forbidden by {miss.text}"
        case "after match" | "limit":
            return f"left out by {miss.text}"
        case _:
            return f"fails {miss.text}"


def misses_are(report: Why) -> str:
    """What tells their events."""
    return "rows" if any(miss.rows for miss in report.misses) else "times"


def _lines(report: Why) -> Iterator[str]:
    yield report.query
    yield ""
    yield headline(report)
    yield ""
    head = ("step", "reached", "lost")
    yield from columns([head, *step_rows(report)], right=(1,))
    yield ""
    yield from columns([("variable", "events", ""), *variable_rows(report)], right=(1,))
    if report.without:
        yield ""
        yield from columns([("change", "matches"), *without_rows(report)])
    if report.misses:
        yield ""
        yield from columns(
            [(f"nearest misses: {misses_are(report)}", ""), *map(miss_words, report.misses)]
        )
    if report.notes:
        yield ""
        yield from map(printable, report.notes)
