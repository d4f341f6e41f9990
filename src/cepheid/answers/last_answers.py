"""The answers that the end of the data brings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from cepheid.answers.answer_fold import AnswerFold
from cepheid.engine.run import Engine


def last_answers(
    fold: AnswerFold, engine: Engine, matches: Iterable[pa.RecordBatch], until: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield them, given the last matches. With `until`, time passes only to there: matches in
    windows that are open then are left out and counted."""
    reached = engine.context.frontier
    for batch in matches:
        fold.push(batch)
    if until is None or not fold.windowed:
        yield from fold.finish()
    else:
        yield from fold.advance(max(until, reached))
        engine.counts.undecided += fold.open
