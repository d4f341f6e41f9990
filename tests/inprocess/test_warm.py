"""What `warm` has compiled, a run doesn't compile again."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from numba.core.event import install_recorder

import cepheid as cep
from cepheid.engine import run
from cepheid.inprocess import threads

KINDS = "ABACBBCABCAABC"
EVENTS = pa.table(
    {
        "ts": range(len(KINDS)),
        "type": list(KINDS),
        "id": [1] * 13 + [2],
        "x": pa.array([3.5, 1.5, 2.5] * 4 + [3.0, None]),
    }
)
OPTIONS: Any = {"time": "ts", "type": "type", "adapt": None}


@pytest.mark.parametrize(
    ("text", "forced"),
    [
        ("PATTERN A a ; B b ; C c WHERE [id] WITHIN 9", {}),
        ("PATTERN A a ; B b ; C c WHERE a.x < b.x + 0.25 WITHIN 9", {"plan": "(a (b c))"}),
        ("PATTERN A a ; !B b ; C c WHERE b.x < c.x + 0.25 WITHIN 9", {"plan": "(a c)"}),
        ("PATTERN A a & B b WHERE b.x < a.x + 0.25 WITHIN 9", {}),
        ("PATTERN A a ; B+ b ; C c WHERE b.x < a.x + 0.25 WITHIN 9", {}),
        ("PATTERN A a -> B b WHERE b.x < a.x + 0.25 WITHIN 9", {}),
        (
            "PATTERN A a ; B b WHERE b.x < a.x + 0.5 AND [id] WITHIN 9 "
            "AFTER MATCH SKIP PAST LAST EVENT LIMIT 2 PER KEY",
            {},
        ),
    ],
    ids=["stacks", "tree", "negation", "conjunction", "closure", "automaton", "after match"],
)
def test_a_run_compiles_nothing_after_warm(
    text: str, forced: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**OPTIONS, **forced}
    cep.warm(text, EVENTS.schema, **options)
    cep.warm(text, EVENTS, **options)
    monkeypatch.setattr(run, "COMPILE_AT", 0)
    with install_recorder("numba:compile") as compiled:
        assert cep.match(EVENTS, text, **options).num_rows
    assert compiled.buffer == []
    assert cep.warm(text, EVENTS, **options) == 0


def test_also_what_matches_all_events_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LEAST_ROWS", 2)
    text = """PATTERN a => b+ => c WHERE [id] AND b.ts > PREV(b.ts, a.ts) AND c.ts > a.ts + 0.125
        AFTER MATCH SKIP PAST LAST EVENT RETURN a.id AS id"""
    cep.warm(text, EVENTS.schema, time="ts")
    assert cep.warm(text, EVENTS, time="ts") == 0
    with install_recorder("numba:compile") as compiled:
        assert cep.match(EVENTS, text, time="ts").num_rows
    assert compiled.buffer == []
