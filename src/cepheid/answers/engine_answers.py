"""Answers of an engine that finds matches, or of one that counts them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeAlias

import pyarrow as pa

from cepheid.algebra.answer_shape import Answers
from cepheid.answers.answer_fold import AnswerFold
from cepheid.answers.counted.counting_engine import CountingEngine
from cepheid.engine.counts import Counts
from cepheid.engine.end_of_data import end
from cepheid.engine.run import Engine
from cepheid.engine.settled_time import settled_time
from cepheid.options import Limit


class PromptEngine(Protocol):
    """One that lets out what it finds with the event that completes it."""

    counts: Counts
    schema: pa.Schema

    @property
    def settled(self) -> int: ...

    @property
    def reached(self) -> int: ...

    def finish(self) -> Iterator[pa.RecordBatch]: ...


AnsweringEngine: TypeAlias = Engine | PromptEngine


def new_fold(shape: Answers, engine: AnsweringEngine, limit: Limit | None) -> AnswerFold:
    matches = engine.matches if isinstance(engine, CountingEngine) else engine.schema
    return AnswerFold(shape, matches, limit)


def fold_found(fold: AnswerFold, engine: AnsweringEngine, found: pa.RecordBatch) -> None:
    """Take up what the engine has let out: matches, or parts of groups."""
    if isinstance(engine, CountingEngine):
        fold.merge(pa.Table.from_batches([found]))
    else:
        fold.push(found)


def known_answers(fold: AnswerFold, engine: AnsweringEngine) -> Iterator[pa.RecordBatch]:
    """The answers that are known, when all that is known has been folded."""
    yield from fold.advance(settled_time(engine) if isinstance(engine, Engine) else engine.settled)


def last_answers(
    fold: AnswerFold, engine: AnsweringEngine, until: int | None
) -> Iterator[pa.RecordBatch]:
    """The answers that the end of the data brings. With `until`, time passes only to there: matches
    in windows that are open then are left out and counted."""
    if isinstance(engine, Engine):
        reached, last = engine.context.frontier, end(engine, until)
    else:
        reached, last = engine.reached, engine.finish()
    for batch in last:
        fold_found(fold, engine, batch)
    if until is None or not fold.windowed:
        yield from fold.finish()
    else:
        yield from fold.advance(max(until, reached))
        engine.counts.undecided += fold.open
