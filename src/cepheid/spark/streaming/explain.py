"""How a query over a stream is spread: buckets, watermark, state."""

from __future__ import annotations

from collections.abc import Sequence

from cepheid.algebra.answer_shape import Answers
from cepheid.engine.match_schema import output_schema
from cepheid.options import Options
from cepheid.planner.bounds import uncut
from cepheid.spark.columns.schema import event_schema
from cepheid.spark.group_parts import shuffled_text
from cepheid.spark.partitions.arrange import EventSource
from cepheid.spark.partitions.layout import ByKey, Layout, Rows, Single, layout_reason, layout_text
from cepheid.spark.streaming.answer_pipeline import answer_parts
from cepheid.spark.streaming.stateful.buckets import (
    bucket_count,
    by_single_key,
    counts_keys,
    stream_layout,
)

EVERY_KEY = (
    "The last events of every key stay in the state, because events are counted: if new keys keep "
    "coming, the state grows without end; set idle=, or use a window of time"
)

Labeled = tuple[tuple[str, str], ...]


def explain_stream(source: EventSource, options: Options, delays: Sequence[int | None]) -> Labeled:
    """The lines as labels and texts. `delays` are the delays of the streams' watermarks, in
    milliseconds."""
    layout = stream_layout(source, options)
    shape = source.prepared.query.answers
    answers = () if shape is None else (("answers", _answers_text(source, shape, options)),)
    return (
        ("partitioning", _layout_text(source, layout, options)),
        ("why", _reason(source, layout, options)),
        ("watermark", _watermark_text(delays)),
        ("state", _state_text(source, layout, options)),
        *answers,
    )


def _answers_text(source: EventSource, shape: Answers, options: Options) -> str:
    matches = output_schema(source.plan, event_schema(source.events))
    count = answer_parts(source.prepared, shape, matches, options).count
    text = shuffled_text(shape, count, "bucket")
    return f"{text}, and returned when the watermark has passed the end of a window"


def _layout_text(source: EventSource, layout: Layout, options: Options) -> str:
    if isinstance(layout, ByKey) and by_single_key(source, layout):
        return f"key {', '.join(layout.columns[0])} (a bucket for each value)"
    if isinstance(layout, Single):
        return "one bucket"
    return layout_text(layout, bucket_count(layout, options), "buckets")


def _reason(source: EventSource, layout: Layout, options: Options) -> str:
    query = source.prepared.query
    chosen = options.partitioning == "auto"
    if chosen and isinstance(layout, Single) and uncut(query) is None:
        return "no key partitions all events, and a stream can't be cut in time"
    return layout_reason(layout, source.plan, query, options)


def _watermark_text(delays: Sequence[int | None]) -> str:
    waits = [delay for delay in delays if delay]
    if not waits:
        return "no delay: events are matched in their batch, and those out of order are late"
    longest = max(waits)
    text = f"{longest // 1000} s" if longest % 1000 == 0 else f"{longest} ms"
    return f"{text} behind the newest event: events wait until it passes them, in order"


def _state_text(source: EventSource, layout: Layout, options: Options) -> str:
    if isinstance(layout, Rows) and source.prepared.query.answers is None:
        return "none"
    if counts_keys(source, layout):
        where = "by key" if by_single_key(source, layout) else "by bucket"
        if options.idle is None:
            return f"in Spark's state store, {where}. {EVERY_KEY}"
        return f"in Spark's state store, {where}: a key until it has no event for {options.idle}"
    return (
        "in Spark's state store, by bucket: a segment of events for each batch, dropped when no "
        "match can need it any more"
    )
