"""The alerts of one rule, as a frame with columns of its own types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cepheid.algebra.schemas import bind_streams
from cepheid.answers import AnswerFold
from cepheid.engine.match_schema import output_schema
from cepheid.options import Options
from cepheid.query import Query
from cepheid.rules.load.validation import columns_of
from cepheid.rules.run.runtimes import set_runtime_of


def typed_frame(rule: str, query: Query, matches: Any, data: Any, options: Options) -> Any:
    """A frame of the same kind as `matches`, with the columns that the query returns. JSON doesn't
    distinguish a timestamp from a text, so the types come from the events."""
    columns = columns_of(data)
    bound = query.bind(columns, options)
    schema = output_schema(bound, _merged(columns, options))
    if bound.answers is not None:
        schema = AnswerFold(bound.answers, schema).schema
    return set_runtime_of(matches).typed(matches, rule, schema)


def _merged(columns: Any, options: Options) -> pa.Schema:
    return columns if isinstance(columns, pa.Schema) else bind_streams(columns, options)[0]
