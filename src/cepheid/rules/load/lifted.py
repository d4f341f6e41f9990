"""Written rules as a template: those that only differ in plain conditions are bound once.

Constants of conditions are parameters, and a condition that not all rules have is `(:p IS NULL OR
condition)`. So thousands of queries become one query and a table, as if somebody had written them
like that. What a rule finds stays the same; errors are reported for the query itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from cepheid.engine.attribution.json_rows import RULE
from cepheid.language.outline import Frame, PlainCondition
from cepheid.language.text_constants import (
    FLOAT,
    INTEGER,
    INTEGERS,
    MARK,
    STRING,
    STRINGS,
    Value,
)
from cepheid.query import Query
from cepheid.rules.template import Template

FEWEST = 4
"""From this many rules of one frame on, a template pays."""

_TYPES: Mapping[str, pa.DataType] = {
    INTEGER: pa.int64(),
    FLOAT: pa.float64(),
    STRING: pa.string(),
    INTEGERS: pa.list_(pa.int64()),
    STRINGS: pa.list_(pa.string()),
}


@dataclass(frozen=True)
class Lifted:
    """A template, and for each of its rows the place of the rule that it stands for."""

    template: Template
    places: tuple[int, ...]


def lifted(templates: Sequence[Template], fewest: int = FEWEST) -> list[Lifted]:
    """Templates for written rules that differ only in plain conditions."""
    groups: dict[tuple[Frame, tuple[str, ...]], list[int]] = {}
    for place, template in enumerate(templates):
        if template.outline is not None and len(template) == 1:
            # A list is no parameter that may be missing.
            lists = tuple(c.form for c in template.outline.conditions if c.is_listed)
            groups.setdefault((template.outline.frame, lists), []).append(place)
    return [
        Lifted(_template([templates[place] for place in places]), tuple(places))
        for places in groups.values()
        if len(places) >= fewest
    ]


def _template(rules: Sequence[Template]) -> Template:
    outlines = [rule.outline for rule in rules if rule.outline is not None]
    columns: dict[tuple[str, int], list[tuple[Value, ...] | None]] = {}
    for row, outline in enumerate(outlines):
        for key, condition in _numbered(outline.conditions):
            if key not in columns:
                columns[key] = [None] * len(rules)
            columns[key][row] = condition.values
    parameters: dict[str, pa.Array] = {RULE: pa.array([str(rule.names[0]) for rule in rules])}
    conditions = [
        _condition(form, values, parameters) for (form, _), values in sorted(columns.items())
    ]
    constants = [
        _constant(mark, [outline.constants[n] for outline in outlines], parameters)
        for n, mark in enumerate(_marks(outlines[0].frame))
    ]
    query = Query(outlines[0].text(conditions, constants), rules[0].query.name)
    return Template(rules[0].name, query, pa.table(parameters))


def _marks(frame: Frame) -> list[str]:
    head, others, tail = frame
    return [mark for part in (head, *others, tail) for mark in MARK.findall(part)]


def _constant(mark: str, values: list[Value], parameters: dict[str, pa.Array]) -> str:
    """What stands in the place of a constant of the frame: the constant itself if all rules have
    it, else a parameter, of which the column is added to `parameters`."""
    if all(value == values[0] for value in values):
        return _literal(values[0])
    name = f"p{len(parameters)}"
    parameters[name] = pa.array(values, _TYPES[mark])
    return f":{name}"


def _literal(value: Value) -> str:
    match value:
        case str():
            return "'" + value.replace("'", "''") + "'"
        case float():
            return f"{Decimal(repr(value)):f}"  # without an exponent, as it was written
        case _:
            return str(value)


def _numbered(conditions: Sequence[PlainCondition]) -> list[tuple[tuple[str, int], PlainCondition]]:
    """Number the conditions of one form: a rule may have several, `a.x <> 1 AND a.x <> 2`."""
    seen: Counter[str] = Counter()
    numbered = []
    for condition in conditions:
        numbered.append(((condition.form, seen[condition.form]), condition))
        seen[condition.form] += 1
    return numbered


def _condition(
    form: str, values: list[tuple[Value, ...] | None], parameters: dict[str, pa.Array]
) -> str:
    """The condition with parameters for its constants; adds their columns to `parameters`."""
    attribute, *words = form.split(" ")
    names: list[str] = []
    for n, word in enumerate(words):
        if word in _TYPES:
            column = [None if row is None else row[len(names)] for row in values]
            names.append(f"p{len(parameters)}")
            parameters[names[-1]] = pa.array(column, _TYPES[word])
            words[n] = f":{names[-1]}"
    condition = " ".join((attribute, *words))
    return f"(:{names[0]} IS NULL OR {condition})" if None in values else condition
