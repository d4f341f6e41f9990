"""The matches of one rule in what a set has found, as a frame with columns of their own types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.findings import did_you_mean
from cepheid.algebra.schemas import bind_streams
from cepheid.engine.attribution.json_rows import MATCH, RULE
from cepheid.engine.attribution.typed_rows import typed
from cepheid.engine.match_schema import MATCH_END, MATCH_START, output_schema
from cepheid.errors import DataError
from cepheid.inprocess.frames import as_table, like, to_arrow
from cepheid.options import Options
from cepheid.query import Query, is_spark
from cepheid.rules.load.check import columns_of

_NEEDED = (RULE, MATCH_START, MATCH_END, MATCH)


def typed_frame(rule: str, query: Query, found: Any, data: Any, options: Options) -> Any:
    """A frame of the kind that `found` is, with the columns that the query returns from the data.
    JSON doesn't tell a timestamp from a text: what types there are follows from the events."""
    columns = columns_of(data)
    schema = output_schema(query.bind(columns, options), _merged(columns, options))
    if is_spark(found):
        from cepheid.spark.rules import typed_of

        _require(found.columns)
        return typed_of(found, rule, schema)
    table = as_table(to_arrow(found))
    _require(table.column_names)
    own = table.select(_NEEDED).filter(pc.equal(table[RULE], rule))
    return like(found, schema, (typed(batch, schema) for batch in own.to_batches()))


def _merged(columns: Any, options: Options) -> pa.Schema:
    return columns if isinstance(columns, pa.Schema) else bind_streams(columns, options)[0]


def _require(names: list[str]) -> None:
    for name in _NEEDED:
        if name not in names:
            hint = did_you_mean(name, names, "pass the result of RuleSet.match")
            raise DataError(f"the matches have no column `{name}`; {hint}")
