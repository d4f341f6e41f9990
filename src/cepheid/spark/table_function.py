"""A query as a table function: plain SQL of Spark's calls it, once for each partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from cepheid.algebra.kinds import check_readable, reasons
from cepheid.algebra.nested_columns import with_extracted
from cepheid.engine.end_of_data import end, last_moment
from cepheid.engine.match_schema import output_schema
from cepheid.errors import DataError, OptionError, UnsupportedError
from cepheid.options import ON_SPARK, Options, refuse_dead_letters, refuse_delay
from cepheid.planner import prepare
from cepheid.runtime import Bindable
from cepheid.spark.columns.entrance import entered
from cepheid.spark.columns.schema import event_schema, spark_schema
from cepheid.spark.start.session import adopt_session

ANSWERS = (
    "a table function returns matches, and this query returns aggregates of them: leave them out, "
    "and aggregate in SQL, as in `SELECT count(*) FROM function(TABLE(events) PARTITION BY key)`"
)


def register_function(spark: Any, name: str, query: Bindable, like: Any, options: Options) -> None:
    """Register the query under this name. Tables that it is called with have the columns of `like`;
    it is matched in the rows of each partition alone, which are held in memory."""
    from pyspark.sql.functions import arrow_udtf

    if not name.isidentifier():
        raise OptionError(f"a function is called by a name like `stolen`, not {name!r}")
    refuse_delay(options, "data on Spark", ON_SPARK)
    refuse_dead_letters(options)
    adopt_session(spark)
    events = entered(like)
    schema, names, safe = event_schema(events), list(like.columns), list(events.columns)
    prepared = prepare(query.bind(schema, options), options)
    plan, jit = prepared.plan, options.jit
    if prepared.query.answers is not None:
        raise UnsupportedError(ANSWERS)
    check_readable(reasons(schema), plan.required)
    prepared.warn()
    result, until = output_schema(plan, schema), last_moment(options.until, plan)
    nothing = prepared.query.nothing is not None

    class PartitionMatches:
        """Gathers the rows of a partition, and matches them at its end."""

        def __init__(self) -> None:
            self._rows: list[pa.RecordBatch] = []

        def eval(self, rows: pa.RecordBatch) -> Iterator[pa.Table]:
            for missing in (name for name in names if name not in rows.schema.names):
                raise DataError(f"`{name}` is called with a table without the column `{missing}`")
            events = rows.select(names).rename_columns(safe)
            self._rows.append(with_extracted(events, plan.required).select(plan.required))
            return iter(())

        def terminate(self) -> Iterator[pa.Table]:
            if nothing or not self._rows:
                return
            rows = pa.Table.from_batches(self._rows)
            engine = prepared.engine(rows.schema, jit)
            for batch in prepared.in_order(rows).to_batches():
                yield from _tables(engine.push(batch), result)
            yield from _tables(end(engine, until), result)

    made: Any = arrow_udtf(PartitionMatches, returnType=spark_schema(result))
    spark.udtf.register(name, made)


def _tables(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    for batch in batches:
        yield pa.Table.from_batches([batch]).cast(schema)
