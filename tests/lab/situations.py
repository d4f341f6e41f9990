"""Situations as a page sends them."""

from __future__ import annotations

import json
from typing import Any

from cepheid.lab.answers_process import answer
from cepheid.lab.situations.cells import to_cells
from cepheid.lab.situations.notation import read_events

QUERY = "PATTERN A a ; !X n ; B b WHERE b.x > a.x WITHIN 10"
EVENTS = "A@1(x=5) B@3(x=7) A@20(x=5) B@22(x=4) A@40(x=1) X@41 B@42(x=9) A@60(x=1) B@75(x=2)"


def situation(query: str = QUERY, events: str = EVENTS, **more: Any) -> dict[str, Any]:
    cells = to_cells(read_events(events), "ts")
    return {"query": query, "events": cells, "time": "ts", "type": "type", **more}


def asked(task: str, given: Any) -> dict[str, Any]:
    """What the process answers, as the page reads it."""
    return dict(json.loads(json.dumps(answer(task, json.dumps(given).encode()), allow_nan=False)))
