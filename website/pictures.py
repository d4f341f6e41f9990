"""Queries with pictures of their examples: timelines, made by the build."""

from __future__ import annotations

import re
from functools import cache

import cepheid as cep
from cepheid.language import Source, parse
from cepheid.language.ast import Unit
from cepheid.options import Unit as TickUnit
from tests.corpus.reader import Case, case_of, fields_of, table
from website.recipes import recipes

_UNITS: dict[Unit, TickUnit] = {
    Unit.MICROSECONDS: "us",
    Unit.MILLISECONDS: "ms",
    Unit.SECONDS: "s",
    Unit.MINUTES: "min",
    Unit.HOURS: "h",
    Unit.DAYS: "d",
}

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OUTPUT = re.compile(r"^```text\n.*?^```$", re.DOTALL | re.MULTILINE)


@cache
def _of_recipes(page: str) -> dict[str, str]:
    return {recipe.title: picture(recipe.timeline) for recipe in recipes(page)}


def with_recipes(page: str) -> str:
    """The cookbook, with a picture behind the answer of each recipe."""
    drawn = _of_recipes(page)
    sections = re.split(r"(?m)^(?=## )", page)
    return "".join(_illustrated(section, drawn) for section in sections)


def _illustrated(section: str, drawn: dict[str, str]) -> str:
    title = section.partition("\n")[0].removeprefix("## ")
    if title not in drawn:
        return section
    return _OUTPUT.sub(lambda found: f"{found[0]}\n\n{drawn[title]}", section, count=1)


def with_examples(page: str, name: str) -> str:
    """The reference, with a picture behind each example that has events of one stream."""

    def illustrated(found: re.Match[str]) -> str:
        if found[1].strip() != "cep":
            return found[0]
        case = case_of({"name": name, **fields_of(found[2], name)}, name)
        drawn = _of_case(case)
        return f"{found[0]}\n\n{drawn}" if drawn else found[0]

    return _FENCE.sub(illustrated, page)


def _of_case(case: Case) -> str:
    if case.schema.streams is not None or case.schema.start is not None or not case.events:
        return ""
    events = table(case.schema, case.events)
    drawn = cep.timeline(
        events,
        case.query_text,
        time=case.schema.time,
        type=case.schema.type,
        tie=case.schema.tie,
        params=dict(case.params),
        unit=None if case.schema.unit is None else _UNITS[case.schema.unit],
    )
    return picture(drawn)


def picture(timeline: cep.Timeline) -> str:
    """The drawing, as a page of Markdown takes it: without empty lines."""
    drawing = re.sub(r"\n\s*", " ", timeline.to_svg())
    return f'<div class="picture">{drawing}</div>'


def check_snippets(page: str, name: str) -> None:
    """Fail if a snippet of Python or of the query language can't be read."""
    for found in _FENCE.finditer(page):
        kind, text = found[1].strip(), found[2]
        place = f"{name}:{page.count(chr(10), 0, found.start()) + 1}"
        if kind == "python":
            compile(text, place, "exec")
        elif kind in ("cep", "cep answers"):
            query = fields_of(text, place)["query"]
            parse(query, Source(query, place).name)
