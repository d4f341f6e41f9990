"""How a streaming query ends: what made it fail, as an error of Cepheid's with one sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cepheid import errors
from cepheid.errors import CepheidError, StateError, StreamError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_OURS = re.compile(
    r"^cepheid\.errors\.(\w+): (.+?)(?=\n\s*\n|\n\s+at |\n===|\s+SQLSTATE:|\Z)",
    re.MULTILINE | re.DOTALL,
)
"""One of Cepheid's errors, raised on a worker, in Spark's text."""

_AROUND = (
    re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: "),
    re.compile(
        r"^(?:Job aborted due to stage failure: )?Task \d+ in stage .*? \(TID.*?\)(?: \(.*?\))?: "
    ),
    re.compile(r"^An error occurred while calling \S+\s+: "),
    re.compile(r"^(?:[a-z]\w*\.)+\w+(?:Exception|Error): "),
    re.compile(r"(?:\s+SQLSTATE: \w+)+$"),
)
"""The text that Spark writes around the message, from the outside in."""

_BEHIND = re.compile(r"\n\s+at |\n=== Streaming Query ===|\n\s*\n")
"""The text after the message: stacks, and the query's plan."""

_PYTHON = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)")
_CAUSE = re.compile(r"^Caused by: (.+?)(?=\n\s+at |\Z)", re.MULTILINE | re.DOTALL)


_SOURCES = re.compile(
    r"There are \[(\d+)\] sources in the checkpoint offsets and now there are \[(\d+)\]"
)

_OTHER_BUCKETS = "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE]"
"""What Spark says if keys were buckets of their own, and now share some, or the other way round."""


def wait(query: StreamingQuery, seconds: int | None = None) -> bool:
    """Wait until a streaming query ends, or until the timeout (in seconds); return whether it has
    ended.

    This is the query's `awaitTermination`, but what made the query fail is raised as an error of
    Cepheid's: the one that was raised on a worker, such as a `StateError`, or else a `StreamError`
    with Spark's sentence. What Spark raised, stacks included, is its `__context__`.
    """
    from pyspark.errors import StreamingQueryException

    try:
        ended = query.awaitTermination() if seconds is None else query.awaitTermination(seconds)
    except StreamingQueryException as error:
        raise failure(error) from None
    return True if ended is None else bool(ended)


def failure(error: BaseException) -> CepheidError:
    """Cepheid's error inside an exception of Spark's; else a `StreamError` with Spark's message.

    >>> failure(RuntimeError("Traceback\\ncepheid.errors.StateError: it is damaged\\n\\n\\tat x"))
    StateError('it is damaged')
    >>> failure(RuntimeError("Traceback\\ncepheid.errors.DataError: no time\\n SQLSTATE: 38000"))
    DataError('no time')
    """
    text = str(error).strip()
    if named := _OURS.findall(text):
        name, sentence = named[-1]
        kind: type[CepheidError] = getattr(errors, name, StreamError)
        # Some errors carry more than a sentence, which can't be made again.
        return kind(sentence) if "__init__" not in vars(kind) else StreamError(sentence)
    if sources := _SOURCES.search(text):
        return StateError(
            f"the checkpoint was written with {sources[1]} sources, and now there are "
            f"{sources[2]}: a stream has come or gone, or heartbeat= has, which is a source, too; "
            "run the query as before, or start with a new checkpoint"
        )
    if _OTHER_BUCKETS in text:
        return StateError(
            "the checkpoint was written with a bucket for each key, and now keys share buckets, or "
            "the other way round: the options `limit` and `engine` decide it, and the version of "
            "Cepheid; run the query as before, or start with a new checkpoint"
        )
    return StreamError(spark_sentence(text) or type(error).__name__)


def spark_sentence(text: str) -> str:
    """Spark's message, without the query's ids, tasks, classes and stacks.

    >>> spark_sentence("org.apache.spark.SparkException: [X] no such file. SQLSTATE: KD001")
    '[X] no such file.'
    >>> spark_sentence("[X] no such file.  SQLSTATE: KD001\\n  SQLSTATE: XXKST")
    '[X] no such file.'
    """
    if "[FAILED_READ_FILE.NO_HINT]" in text and (causes := _CAUSE.findall(text)):
        text = causes[-1]  # the sentence itself says only that it failed
    if python := _PYTHON.search(text):
        text = python[1]
    text = _BEHIND.split(text.strip())[0]
    for around in _AROUND:
        text = around.sub("", text.strip())
    return " ".join(text.split())
