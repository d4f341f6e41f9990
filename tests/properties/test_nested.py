"""A query over nested values finds what the same query finds over flat ones."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
from hypothesis import given, reject, settings

from cepheid.algebra.types import Type
from cepheid.errors import UnsupportedError
from tests.corpus.reader import Case, bound
from tests.engine.harness import Setup, multiset, run
from tests.examples import examples
from tests.oracle.events import Event
from tests.oracle.match import matches
from tests.properties.full_strategies import full_cases
from tests.properties.test_full import full, setups

PLACES = {"x": "r.x", "id": "r.inner.id", "s": "t[1]", "y": "m['y']"}
"""Where the attributes of a flat event are in a nested one."""

TYPES = {
    "r": pa.struct([("x", pa.int64()), ("inner", pa.struct([("id", pa.int64())]))]),
    "t": pa.list_(pa.string()),
    "m": pa.map_(pa.string(), pa.float64()),
}


def nested_text(text: str) -> str:
    return re.sub(r"(\w\.|\[)(x|id|s|y)\b", lambda found: found[1] + PLACES[found[2]], text)


def nested_event(event: Event) -> Event:
    """What is NULL isn't there, in one of several ways."""
    x, id_, s, y = (event.values[name] for name in PLACES)
    inner = None if id_ is None else {"id": id_}
    values = {
        **{name: value for name, value in event.values.items() if name not in PLACES},
        "r": None if x is None and inner is None else {"x": x, "inner": inner},
        "t": [""] if s is None else ["", s],
        "m": {"z": 0.0} if y is None else {"z": 0.0, "y": y},
    }
    return replace(event, values=values)


def nested_case(case: Case) -> Case:
    schema = case.schema
    columns = {name: kind for name, kind in schema.columns.items() if name not in PLACES}
    columns |= dict.fromkeys(TYPES, Type.OTHER)
    return replace(
        case,
        query_text=nested_text(case.query_text),
        schema=replace(schema, columns=columns, nested=TYPES),
        events=tuple(map(nested_event, case.events)),
    )


@settings(full, max_examples=examples("nested"))
@given(full_cases(), setups())
def test_nested_values_match_as_flat_ones(case: Case, setup: Setup) -> None:
    flat, nested = bound(case), nested_case(case)
    query = bound(nested)
    wanted = multiset(flat, matches(flat, case.events))
    assert multiset(query, matches(query, nested.events)) == wanted
    try:
        found = run(query, nested.events, setup)
    except UnsupportedError:
        reject()
    assert multiset(query, found) == wanted
