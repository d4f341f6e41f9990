"""Rules that share a query with others return exactly what they return alone, by the oracle."""

from __future__ import annotations

import os
from collections import Counter

from hypothesis import HealthCheck, given, reject, settings

from cepheid.algebra.types import Schema
from cepheid.errors import UnsupportedError
from cepheid.options import Options
from cepheid.rules.compiling import Compiled, compile_rules
from tests.corpus.reader import table
from tests.properties.strategies import COLUMNS
from tests.rules.strategies import Set
from tests.rules.templates import templates
from tests.rules.test_matching import expected, found, rule_set

EXAMPLES = int(os.environ.get("CEPHEID_EXAMPLES", "200"))
"""How many random templates: a longer run is `CEPHEID_EXAMPLES=100000 make test`."""

random = settings(
    max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), deadline=None
)


def options(drawn: Set) -> Options:
    return Options("ts", type="type", tie=drawn.tie, jit=False)


@random
@given(templates())
def test_every_rule_of_a_template_finds_what_it_finds_alone(drawn: Set) -> None:
    schema = Schema(COLUMNS, time="ts", type="type", tie=drawn.tie)
    rules = rule_set(drawn)
    try:
        result = found(rules, table(schema, drawn.events), options(drawn))
    except UnsupportedError:
        reject()
    for name, rule in rules.items():
        assert result[name] == expected(rule, schema, drawn.events), (name, rule.params)
