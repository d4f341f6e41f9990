"""Templates as bytes: how rules are kept in checkpoints and in tables of versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from cepheid.language.diagnostics import Source
from cepheid.rules.load.query_texts import QueryTexts
from cepheid.rules.template import Template

_SCHEMA = pa.schema(
    {
        "name": pa.string(),
        "query": pa.string(),
        "source": pa.string(),
        "line": pa.int64(),
        "column": pa.int64(),
        "rows": pa.binary(),
        "origin": pa.string(),
        "numbers": pa.list_(pa.int64()),
    }
)


def encoded(templates: Iterable[Template]) -> bytes:
    """As Arrow: queries as text, and the tables of their parameters.

    >>> from cepheid.query import Query
    >>> pair = Template("pair", Query("PATTERN A ; B WITHIN 5", "pair"))
    >>> [template.query.text for template in decoded(encoded([pair]))]
    ['PATTERN A ; B WITHIN 5']
    """
    rows = [
        {
            "name": template.name,
            "query": template.query.text,
            "source": template.query.name,
            "line": template.query.line,
            "column": template.query.column,
            "rows": None if template.rows is None else _bytes(template.rows),
            "origin": template.origin,
            "numbers": None if template.numbers is None else template.numbers.to_pylist(),
        }
        for template in templates
    ]
    return _bytes(pa.Table.from_pylist(rows, _SCHEMA))


def decoded(data: bytes) -> tuple[Template, ...]:
    """The same as they were loaded: written rules that are alike are parsed and compiled once."""
    texts = QueryTexts()
    return tuple(_template(row, texts) for row in _table(data).to_pylist())


def _template(row: dict[str, Any], texts: QueryTexts) -> Template:
    query, apart = texts.read(Source(row["query"], row["source"], row["line"], row["column"]))
    numbers = None if row["numbers"] is None else pa.array(row["numbers"], pa.int32())
    rows = None if row["rows"] is None else _table(row["rows"])
    return Template(row["name"], query, rows, row["origin"], numbers, apart)


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks())
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _table(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
