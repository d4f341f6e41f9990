"""The columns that every alert has, whatever rule it is of."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cepheid.algebra.binding.findings import did_you_mean
from cepheid.engine.attribution.json_rows import MATCH, RULE
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.errors import DataError

ALERT_COLUMNS = (RULE, MATCH_START, MATCH_END, MATCH)


def require_alert_columns(names: Sequence[str]) -> None:
    for name in ALERT_COLUMNS:
        if name not in names:
            hint = did_you_mean(name, names, "pass the result of RuleSet.match")
            raise DataError(f"the matches have no column `{name}`; {hint}")


def filled(alerts: pa.Table, schema: pa.Schema) -> pa.Table:
    """With all columns that rules carry."""
    columns = [
        alerts[f.name].cast(f.type)
        if f.name in alerts.column_names
        else pa.nulls(alerts.num_rows, f.type)
        for f in schema
    ]
    return pa.table(columns, schema=schema)


def carrying(rules: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rules with their carried columns, as the alerts have them."""
    fields = [pa.field(RULE, pa.string()), *list(schema)[_FIXED:]]
    columns = [
        rules[f.name].cast(f.type)
        if f.name in rules.column_names
        else pa.nulls(rules.num_rows, f.type)
        for f in fields
    ]
    return pa.table(columns, schema=pa.schema(fields))


_FIXED = 5
"""How many columns an alert has before the carried ones."""
