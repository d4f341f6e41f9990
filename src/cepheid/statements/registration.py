"""`register`: a query of our own language as a table function of Spark's."""

from __future__ import annotations

from typing import Any, Unpack

from cepheid.extras import require
from cepheid.options import GivenOptions, Options, takes_options
from cepheid.query import Query
from cepheid.query.option_arguments import options_of
from cepheid.query.parsed_query import query_of


@takes_options
def register(
    spark: Any,
    name: str,
    query: str | Query,
    like: Any,
    options: Options | None = None,
    **named: Unpack[GivenOptions],
) -> None:
    """Register a query as a table function, for `spark.sql` and everything that sends SQL:

        cep.register(spark, "stolen", query, like=readings, time="ts", type="type")
        spark.sql("SELECT * FROM stolen(TABLE(readings) PARTITION BY tag ORDER BY ts)")

    Tables that it is called with have the columns of `like`, a DataFrame. The query is matched in
    each partition by itself.
    """
    require("spark")
    from cepheid.spark.table_function import register_function

    register_function(spark, name, query_of(query, like), like, options_of(options, named))
