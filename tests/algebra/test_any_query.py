"""Whatever parses either binds or is refused with diagnostics; nothing else escapes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from cepheid.algebra import BoundQuery, bind
from cepheid.errors import QueryError
from cepheid.language import ast
from tests.algebra.schemas import SCHEMAS
from tests.examples import examples
from tests.language.strategies import queries


@pytest.mark.parametrize("schema", sorted(SCHEMAS))
@settings(
    max_examples=examples("any query is bound"),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(query=queries())
def test_binds_or_explains(schema: str, query: ast.Query) -> None:
    try:
        bound = bind(query, SCHEMAS[schema])
    except QueryError as error:
        assert all(d.code.startswith(("CEP2", "CEP3", "CEP4")) for d in error.diagnostics)
    else:
        assert isinstance(bound, BoundQuery)
        assert set(bound.required) <= {*SCHEMAS[schema].columns}
