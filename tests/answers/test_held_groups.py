"""What a fold holds: the groups and slices of windows that are open, however long the stream is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cepheid.algebra import Schema, Type, bind
from cepheid.answers import AnswerFold
from cepheid.language import parse
from cepheid.options import Options
from cepheid.planner import prepare

SCHEMA = Schema({"ts": Type.INTEGER, "id": Type.INTEGER, "x": Type.INTEGER}, time="ts")
GROUPS = 3


@pytest.mark.parametrize(
    ("window", "most"),
    [
        ("TUMBLE(10)", 2),
        ("HOP(5, 20)", 10),
        ("HOP(5, 18)", 10),
        ("SESSION(2)", 1),
        ("RANGE(10)", 21),
    ],
)
def test_what_is_over_is_dropped(window: str, most: int) -> None:
    """`most` slices of each group: those of open windows, and of the time that is still open."""
    text = f"FROM a GROUP BY a.id, {window} RETURN a.id, count(*) AS n, max(a.x) AS x"
    query = bind(parse(text), SCHEMA)
    prepared = prepare(query, Options("ts", jit=False))
    time = np.repeat(np.arange(150), GROUPS)
    rows = pa.table({"ts": time, "id": np.tile(np.arange(GROUPS), 150), "x": time})
    (batch,) = rows.to_batches()
    engine = prepared.engine(rows.schema, jit=False)
    matches = [*engine.push(batch), *engine.finish()]
    assert query.answers is not None
    fold = AnswerFold(query.answers, engine.schema)
    held, answers = [], 0
    for match in pa.Table.from_batches(matches).to_batches(max_chunksize=GROUPS):
        end = match["match_end"][0].as_py()
        answers += sum(answer.num_rows for answer in fold.advance(end))
        fold.push(match)
        held.append(fold.parts().num_rows)
    assert max(held[30:]) <= most * GROUPS
    assert max(held[90:]) <= max(held[30:90])
    answers += sum(answer.num_rows for answer in fold.finish())
    assert answers >= GROUPS
