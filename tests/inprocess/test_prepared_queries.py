"""A query that was prepared before isn't bound and planned again, unless something is different."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.inprocess import prepared_queries

TEXT = "PATTERN A a ; B b WHERE b.x - a.x > :least WITHIN 10"
OPTIONS: Any = {"time": "ts", "type": "type"}


def events(*values: float) -> pa.Table:
    return pa.table({"ts": range(len(values)), "type": list("AB" * 9)[: len(values)], "x": values})


def plans(caplog: pytest.LogCaptureFixture) -> int:
    """How many plans were made since this was asked last."""
    made = sum(message.startswith("plan: ") for message in caplog.messages)
    caplog.clear()
    return made


def test_what_is_prepared_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared_queries, "_kept", type(prepared_queries._kept)())
    caplog.set_level("INFO", "cepheid")

    def count(table: pa.Table, least: float, **more: Any) -> int:
        return cep.match(table, TEXT, params={"least": least}, **OPTIONS, **more).num_rows

    assert count(events(1, 5), 2) == 1
    assert plans(caplog) == 1
    # The same again, over other events.
    assert count(events(1, 5, 1, 2, 1, 9), 2) == 4
    assert plans(caplog) == 0
    # Another value of a parameter, another type of a column, another option.
    assert count(events(1, 5), 4) == 0
    assert count(events(1.5, 5.5), 2) == 1
    assert count(events(1, 5), 2, plan="left-deep") == 1
    assert plans(caplog) == 3


def test_places_in_messages_are_those_of_the_query_at_hand() -> None:
    """Two queries of one text, at two places of a file: each is bound for itself."""
    table = pa.table({"ts": [1, 2], "x": [1, 2]})
    text = "PATTERN a -> b WHERE b.x = a.x"
    for line in (1, 7):
        query = cep.Query(text, "file", line=line)
        assert cep.match(table, query, time="ts").num_rows == 0
        with pytest.raises(cep.QueryError, match=f"file:{line}:9"):
            cep.match(iter(table.to_batches()), query, time="ts")


def test_no_more_are_kept_than_a_service_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared_queries, "_kept", type(prepared_queries._kept)())
    monkeypatch.setattr(prepared_queries, "_MOST", 2)
    for least in (1, 2, 3, 2, 1):
        assert cep.match(events(1, 5), TEXT, params={"least": least}, **OPTIONS).num_rows == 1
        assert len(prepared_queries._kept) <= 2
