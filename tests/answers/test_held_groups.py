"""What a fold holds: the groups and slices of windows that are open, however long the stream is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.algebra import Schema, Type, bind
from cepheid.answers import AnswerFold
from cepheid.errors import StateLimitError
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


@pytest.mark.parametrize("pushed", [1, 4, 30])
def test_a_limit_is_noticed_while_windows_are_open(pushed: int) -> None:
    """With the push after which more are held, or a little later: an eighth of the limit may wait
    to be merged with the others."""
    text = "FROM a GROUP BY a.id, TUMBLE(10000) RETURN a.id, count(*) AS n"
    schema = pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("x", pa.int64())])
    session = cep.open(text, schema, time="ts", limit=cep.Limit(total=24))
    held = 0
    with pytest.raises(StateLimitError, match="groups and slices of windows, more than limit="):
        while held < 24 + 24 // 8 + pushed:
            ids = range(held, held + pushed)
            session.push(pa.table({"ts": ids, "id": ids, "x": ids}, schema=schema))
            held += pushed
    few = cep.open(text, schema, time="ts", limit=cep.Limit(total=24))
    for n in range(50):  # of the same groups
        times = range(24 * n, 24 * (n + 1))
        few.push(pa.table({"ts": times, "id": range(24), "x": times}, schema=schema))
    assert few.advance(10_000).num_rows == 24
