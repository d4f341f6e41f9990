"""The report of `why` in words: text and HTML say the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

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
    if part.more == 0:
        return "no more"
    least = "" if part.complete else "at least "
    return f"{least}{count(abs(part.more))} {'more' if part.more > 0 else 'fewer'}"


def miss_words(miss: Miss) -> tuple[str, str]:
    """Its rows, and what stopped it."""
    rows = ", ".join(f"{v} {' '.join(map(str, rows))}" for v, rows in miss.rows.items())
    if miss.kind == "window":
        return rows, f"needs {miss.text}"
    if miss.kind in ("candidate", "together"):
        return rows, miss.text
    verbs = {"negation": "forbidden by", "after match": "left out by", "limit": "left out by"}
    seen = ", ".join(f"{name} is {value}" for name, value in miss.values)
    return rows, f"{verbs.get(miss.kind, 'fails')} {miss.text}" + (seen and f": {seen}")


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
        yield from columns([("nearest misses: rows", ""), *map(miss_words, report.misses)])
    if report.notes:
        yield ""
        yield from report.notes
