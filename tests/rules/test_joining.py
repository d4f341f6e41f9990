"""Rules that are joined return exactly what they return alone, by the oracle."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, reject, settings

from cepheid.algebra.types import Schema
from cepheid.errors import UnsupportedError
from cepheid.options import Options
from cepheid.rules import joining
from tests.corpus.reader import table
from tests.properties.strategies import COLUMNS
from tests.rules.overlapping import overlapping
from tests.rules.strategies import Set
from tests.rules.test_matching import expected, found, rule_set

EXAMPLES = int(os.environ.get("CEPHEID_EXAMPLES", "100"))
"""How many random sets: a longer run is `CEPHEID_EXAMPLES=100000 make test`."""

random = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), deadline=None)
SCHEMA = table(Schema(COLUMNS, time="ts", type="type"), ()).schema


@contextmanager
def whatever_it_costs() -> Iterator[None]:
    """All queries are joined that can be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joining, "_pays", lambda *given: True)
        yield


@random
@given(overlapping())
def test_every_rule_that_is_joined_finds_what_it_finds_alone(drawn: Set) -> None:
    schema = Schema(COLUMNS, time="ts", type="type", tie=drawn.tie)
    rules = rule_set(drawn)
    options = Options("ts", type="type", tie=drawn.tie, jit=False)
    try:
        with whatever_it_costs():
            result = found(rules, table(schema, drawn.events), options)
    except UnsupportedError:
        reject()
    for name, rule in rules.items():
        assert result[name] == expected(rule, schema, drawn.events), (name, rule.query.text)
