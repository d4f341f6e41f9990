"""The end of finite data: time passes to infinity, or only to a given moment."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from cepheid.algebra.query import Clock
from cepheid.algebra.types import Schema, Type
from cepheid.algebra.values import constant, parse_moment
from cepheid.engine.needs import tie
from cepheid.engine.operators.base import FOREVER
from cepheid.engine.run import Engine
from cepheid.errors import OptionError
from cepheid.options import LAST_EVENT
from cepheid.plan.nodes import Plan

_DAY = 86_400_000_000


def last_moment(until: object, plan: Plan) -> int | None:
    """How far time passes at the end of the data, on the clock of events: None is to infinity, and
    -FOREVER to the last event. `OptionError` if the option doesn't fit the query."""
    if until is None:
        return None
    if plan.window is not None and plan.window.clock is Clock.EVENTS:
        raise OptionError(
            "until= is a time, and the window of this query counts events: leave until= out, or "
            "give the window as a duration"
        )
    if tie(plan) is not None:
        raise OptionError(
            "until= can't be used with a tie-break column and a delay or FOR: these are decided "
            "at the end of the data; leave one of them out"
        )
    return -FOREVER if until == LAST_EVENT else _ticks(until, plan.schema)


def _ticks(until: object, schema: Schema) -> int:
    return moment(until, schema, "until=", f", or '{LAST_EVENT}'")


def moment(value: object, schema: Schema, option: str, others: str = "") -> int:
    """A time like those of the events, on their clock. `option` says in an error where it was
    given, `others` what else may stand there."""
    is_number = schema.columns[schema.time] is Type.INTEGER
    try:
        if isinstance(value, str):
            parsed = constant(int(value)) if is_number else parse_moment(value)
        else:
            parsed = constant(value)
    except ValueError:
        parsed = None
    kinds = (Type.INTEGER,) if is_number else (Type.TIMESTAMP, Type.DATE)
    if parsed is None or parsed.type not in kinds or not isinstance(parsed.value, int):
        example = "1000" if is_number else "'2026-01-31 12:00'"
        given = f"{option}{example}" if option.endswith("=") else f"{option}({example})"
        raise OptionError(
            f"{option} is a time like those of `{schema.time}`, as in {given}{others}; "
            f"not {value!r}"
        )
    return parsed.value * (_DAY if parsed.type is Type.DATE else 1)


def end(engine: Engine, until: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the last matches: with a last moment, those that are decided then. The others are
    counted as undecided: a later event might still rule them out, or change them."""
    reached = engine.context.frontier
    if until is None or reached == -FOREVER:
        yield from engine.finish()
        return
    yield from engine.advance(max(until, reached))
    for batch in engine.tree.sink.in_turn():
        engine.counts.matches += batch.num_rows
        yield batch
    undecided = sum(batch.num_rows for batch in engine.finish())
    engine.counts.matches -= undecided
    engine.counts.undecided += undecided
