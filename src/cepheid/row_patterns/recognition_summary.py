"""What there is to say of a MATCH_RECOGNIZE: its program, conditions, work, and a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cepheid.language.ast import Span
from cepheid.language.diagnostics import Source
from cepheid.plan.amounts import count
from cepheid.row_patterns.bound import BoundRecognition
from cepheid.row_patterns.definitions import of_rows
from cepheid.row_patterns.recognize import RecognitionProfile
from cepheid.row_patterns.row_machine import Budget
from cepheid.row_patterns.syntax import Recognition, SortKey

MASK, PATH, ALWAYS = "once for every row", "while rows are taken", "always true"


@dataclass(frozen=True, slots=True)
class ConditionSummary:
    """When the condition of a label is checked; `text` is empty for a label without one."""

    label: str
    checked: str
    text: str = ""


@dataclass(frozen=True)
class RecognitionSummary:
    """How a clause is run over a table; `where` names what runs it. `profile` is what happened."""

    table: str
    program: str
    conditions: tuple[ConditionSummary, ...]
    search: str
    where: str
    distribution: tuple[tuple[str, str], ...]
    profile: RecognitionProfile | None = None

    def __str__(self) -> str:
        parts = (
            [f"MATCH_RECOGNIZE over {self.table}"],
            ["program", *(f"  {line}" for line in self.program.splitlines())],
            ["conditions", *_table((c.label, _condition(c)) for c in self.conditions)],
            ["search", f"  {self.search}"],
            [self.where, *_table(self.distribution)],
            [] if self.profile is None else ["run", *_table(_run(self.profile))],
        )
        return "\n\n".join("\n".join(lines) for lines in parts if lines)


def summary(
    recognition: Recognition,
    bound: BoundRecognition,
    source: Source,
    table: str,
    where: str,
    partitioning: str,
    profile: RecognitionProfile | None = None,
) -> RecognitionSummary:
    texts = {d.label: _text(source, d.condition.span) for d in recognition.definitions}
    conditions = tuple(_checked(bound, label, texts) for label in bound.program.labels)
    columns = f"{len(bound.reads)} of {len(bound.schema.columns)}: {', '.join(bound.reads)}"
    return RecognitionSummary(
        table=table,
        program=str(bound.program),
        conditions=conditions,
        search=_search(bound, conditions),
        where=where,
        distribution=(("partitioning", partitioning), ("columns", columns)),
        profile=profile,
    )


def order_text(order: Iterable[SortKey]) -> str:
    return ", ".join(f"{key.column} DESC" if key.descending else key.column for key in order)


def _text(source: Source, span: Span) -> str:
    return " ".join(source.text[span.start : span.end].split())


def _checked(bound: BoundRecognition, label: str, texts: dict[str, str]) -> ConditionSummary:
    condition = bound.conditions.get(label)
    if condition is None:
        return ConditionSummary(label, ALWAYS)
    return ConditionSummary(label, MASK if of_rows(label, condition) else PATH, texts[label])


def _search(bound: BoundRecognition, conditions: Iterable[ConditionSummary]) -> str:
    budget = Budget()
    most = f"at most {count(budget.per_row)} steps for each row of a partition"
    dependent = [c.label for c in conditions if c.checked == PATH]
    if dependent:
        return f"failures before {', '.join(dependent)} are tried again; {most}"
    if bound.window is not None:
        return f"failures are remembered for the matches that begin at one row; {most}"
    return "failures are remembered: each alternative is tried once at a row"


def _condition(condition: ConditionSummary) -> str:
    return f"{condition.checked}: {condition.text}" if condition.text else condition.checked


def _run(profile: RecognitionProfile) -> Iterator[tuple[str, str]]:
    for name in ("rows", "partitions", "matches", "steps", "backtracks"):
        yield name, count(getattr(profile, name))


def _table(pairs: Iterable[tuple[str, str]]) -> list[str]:
    rows = list(pairs)
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name:<{width}}  {value}" for name, value in rows]
