"""Every construct as a query and as a rule of a set, in process: the oracle's matches."""

from __future__ import annotations

import json
from collections import defaultdict

import pyarrow as pa
import pytest

import cepheid as cep
from tests.constructs import CONSTRUCTS, OPTIONS, Rows, data, expected, row

pytestmark = pytest.mark.filterwarnings("ignore:.*compares texts that look like numbers")


def ends(found: pa.Table) -> zip[tuple[int, int]]:
    names = ("match_start", "match_end")
    return zip(*(found[name].cast(pa.int64()).to_pylist() for name in names), strict=True)


@pytest.mark.some(8)
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_a_query(name: str) -> None:
    found = cep.match(data(), CONSTRUCTS[name], jit=False, **OPTIONS)
    values = found.drop_columns(["match_start", "match_end"]).to_pylist()
    assert expected(name)
    assert Rows(row(*at, own) for at, own in zip(ends(found), values, strict=True)) == expected(
        name
    )


def test_a_set_of_all() -> None:
    found = cep.RuleSet.of(CONSTRUCTS).match(data(), jit=False, **OPTIONS)
    rows: dict[str, Rows] = defaultdict(Rows)
    for at, own in zip(ends(found), found.to_pylist(), strict=True):
        rows[own["rule"]][row(*at, json.loads(own["match"]))] += 1
    assert rows == {name: expected(name) for name in CONSTRUCTS}
