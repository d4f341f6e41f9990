"""`warm`: compile a query's kernels before its first events come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import pyarrow as pa

from cepheid.inprocess.runtime import InProcess
from cepheid.options import GivenOptions, Options, takes_options
from cepheid.query.option_arguments import options_of
from cepheid.query.parsed_query import Query, query_of


@takes_options
def warm(
    query: str | Query,
    sample: Any,
    options: Options | None = None,
    **named: Unpack[GivenOptions],
) -> int:
    """Compile the kernels that a query needs, keep them on disk, and return how many were compiled:
    a later run on this machine, or on another with the same folder, doesn't wait for them.

    `sample` is a `pyarrow.schema` of the events, or a few of them in any kind of frame; of several
    streams, a dict of those. Kernels for columns with NULLs are others than those without, so a
    sample says more than a schema: which columns have NULLs, and which kind of plan the run will
    have. The options are those of `match`.

    >>> import cepheid as cep, pyarrow as pa
    >>> schema = pa.schema({"ts": pa.int64(), "name": pa.string(), "price": pa.float64()})
    >>> query = "PATTERN IBM ; Sun WHERE IBM.price > Sun.price WITHIN 3"
    >>> compiled = cep.warm(query, schema, time="ts", type="name")
    >>> cep.warm(query, schema, time="ts", type="name")
    0
    """
    tables = _tables(sample)
    return InProcess().warm(query_of(query, tables), tables, options_of(options, named))


def _tables(sample: Any) -> Any:
    if isinstance(sample, Mapping):
        return {name: _tables(part) for name, part in sample.items()}
    return sample.empty_table() if isinstance(sample, pa.Schema) else sample
