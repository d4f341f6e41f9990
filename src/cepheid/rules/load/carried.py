"""Values that go to the output with a rule's matches, and the one that switches a rule off.

They are columns of the template's table. A query's header, or `RuleSet.of(carried=…)`, gives a
value for all rules of the query, and a table that has the column has its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.attribution.json_rows import RULE
from cepheid.language.words import scan
from cepheid.rules.findings import Finding
from cepheid.rules.load.headers import NOTHING, SIGN, header_above, stray_headers
from cepheid.rules.template import Template

ENABLED = "enabled"
"""The column that says whether a rule is used; without a value it is."""


def with_headers(
    templates: Iterable[Template], text: str, findings: list[Finding]
) -> Iterator[Template]:
    """The queries of a text with what their headers say. A header that can't be read, or that
    stands above no query, is a finding."""
    queries = list(templates)
    lines = text.splitlines() if SIGN in text else []
    firsts = [_first_line(template) for template in queries]
    for template, first in zip(queries, firsts, strict=True):
        header = header_above(lines, first) if lines else NOTHING
        for number, message in header.wrong:
            findings.append(_at(template, number, message))
        yield with_values(template, header.values)
    for number in stray_headers(lines, firsts) if lines and queries else ():
        message = "this header stands above no query: write it before the query's first word"
        findings.append(_at(queries[-1], number, message))


def _first_line(template: Template) -> int:
    """The index of the line with the query's first word in its file."""
    text = template.query.text
    first = next(scan(text), None)
    before = 0 if first is None else text.count("\n", 0, first.start())
    return template.query.line - 1 + before


def _at(template: Template, number: int, message: str) -> Finding:
    return Finding(template.query.name, f"line {number}: {message}", template=template.name)


def with_values(template: Template, values: Mapping[str, object]) -> Template:
    """The template's rules with these values in columns that its table lacks."""
    if not values:
        return template
    rows = pa.table({RULE: [template.name]}) if template.rows is None else template.rows
    return replace(template, rows=with_columns(rows, values))


def with_columns(rows: pa.Table, values: Mapping[str, object]) -> pa.Table:
    """The rows, and a column for each of these values that they have no column for."""
    for name, value in values.items():
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.array([value] * rows.num_rows, _type(value)))
    return rows


def _type(value: object) -> pa.DataType:
    return pa.array([value]).type


def constants(template: Template) -> dict[str, object]:
    """What a query's header says, before the query has a table."""
    if template.rows is None:
        return {}
    return {name: template.rows[name][0].as_py() for name in template.rows.column_names
            if name != RULE}  # fmt: skip


def enabled(templates: Iterable[Template], findings: list[Finding]) -> Iterator[Template]:
    """The templates without the rules that are switched off."""
    for template in templates:
        if template.rows is None or ENABLED not in template.carried:
            yield template
            continue
        column = template.rows[ENABLED]
        if not (pa.types.is_boolean(column.type) or pa.types.is_null(column.type)):
            message = f"the column `{ENABLED}` is {column.type}"
            hint = "it says true or false; without a value a rule is used"
            findings.append(Finding(template.origin, message, hint, (), template.name))
            yield template
            continue
        used = pc.fill_null(column.cast(pa.bool_()), True)
        written = template.is_written
        left = template if pc.all(used).as_py() else template.where(used)
        if len(left) or not written:
            assert left.rows is not None
            yield replace(left, rows=left.rows.drop_columns([ENABLED]))
