"""Every aggregate of the language over matches: the states kept of parts, merged, against the
oracle's definitions. One that is added to the table alone fails here."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.answer_shape import MatchAggregate
from cepheid.algebra.types import Type
from cepheid.answers.aggregate_states import (
    MatchCounts,
    empty_result,
    first_state,
    merged,
    result_type,
    results,
)
from tests.answers.test_corpus import same
from tests.oracle.values import aggregate as by_definition

PARTS = ([3, None, -1, 3], [None], [5], [2, 2, 7, None, 11])


@pytest.mark.parametrize("distinct", [False, True], ids=["all", "distinct"])
@pytest.mark.parametrize("name", AGGREGATES)
def test_states_of_parts(name: str, distinct: bool) -> None:
    function = AGGREGATES[name]
    aggregate = MatchAggregate(
        "x", name, "x", Type.INTEGER, distinct and not function.extreme and not function.placed
    )
    values = [value for part in PARTS for value in part]
    places = np.arange(len(values), dtype=np.int64)
    offsets = np.cumsum([0, *map(len, PARTS)])
    column = pa.array(values, pa.int64())
    state = first_state(aggregate, column, places, places, MatchCounts.single(len(values)))
    answers = results(aggregate, merged(aggregate, state, offsets))
    assert answers.type == result_type(aggregate, column.type)
    for part, answer in zip(PARTS, answers.to_pylist(), strict=True):
        assert same(answer, by_definition(name, part, aggregate.distinct)), part


@pytest.mark.parametrize("name", AGGREGATES)
def test_over_no_matches(name: str) -> None:
    aggregate = MatchAggregate("x", name, "x", Type.INTEGER)
    (answer,) = empty_result(aggregate, result_type(aggregate, pa.int64()), 1).to_pylist()
    assert answer == by_definition(name, [])


def test_an_aggregate_without_a_state_is_an_error() -> None:
    unknown = MatchAggregate("x", "median", "x", Type.INTEGER)
    place = np.zeros(1, np.int64)
    with pytest.raises(AssertionError, match="no state is known of the aggregate `median`"):
        first_state(unknown, pa.array([1]), place, place, MatchCounts.single(1))
