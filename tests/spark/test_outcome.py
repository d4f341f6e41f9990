"""What a streaming query says when it fails."""

from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException

import cepheid as cep
from cepheid.spark.streaming.status.outcome import failure, spark_sentence, wait

FAILED = "[STREAM_FAILED] Query [id = 1-2, runId = 3-4] terminated with exception: "
LOST = (
    "Job aborted due to stage failure: Task 0 in stage 4.0 failed 1 times, most recent failure: "
    "Lost task 0.0 in stage 4.0 (TID 4) (host executor driver): "
)
STACK = "\n\tat org.apache.spark.Some.thing(Some.scala:1)\n\nDriver stacktrace:\n"


class Ended:
    """A query that has ended, or goes on."""

    def __init__(self, error: Exception | None = None, ended: bool = True) -> None:
        self.error, self.ended = error, ended

    def awaitTermination(self, timeout: float | None = None) -> bool | None:
        if self.error is not None:
            raise self.error
        return None if timeout is None else self.ended


def test_an_error_of_a_worker_is_raised_again() -> None:
    text = (
        f"{FAILED}{LOST}org.apache.spark.api.python.PythonException: Traceback (most recent call "
        'last):\n  File "x.py", line 1\ncepheid.errors.StateError: the query is not\nthe one\n'
        f"{STACK}Caused by: the same"
    )
    with pytest.raises(cep.StateError) as raised:
        wait(Ended(StreamingQueryException(text)))
    assert str(raised.value) == "the query is not\nthe one"
    assert raised.value.__suppress_context__ and raised.value.__context__ is not None


def test_another_error_is_one_sentence() -> None:
    reason = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/a.csv."
    plan = "\n=== Streaming Query ===\nIdentifier: [id = 1-2]\nLogical Plan:\n~Project [a#1]"
    text = f"{FAILED}{LOST}org.apache.spark.SparkException: {reason} SQLSTATE: KD001{plan}"
    with pytest.raises(cep.StreamError) as raised:
        wait(Ended(StreamingQueryException(text)), 5)
    assert str(raised.value) == reason
    assert (
        spark_sentence(f"An error occurred while calling o1.save.\n: a.b.XException: no{STACK}")
        == "no"
    )
    python = (
        f"{FAILED}a.b.PythonException: Traceback (most recent call last):\n  File x\nKeyError: 1\n"
    )
    assert spark_sentence(python) == "KeyError: 1"
    assert str(failure(StreamingQueryException("\n"))) == "StreamingQueryException"


def test_keys_that_no_longer_have_buckets_of_their_own() -> None:
    reason = "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match"
    found = failure(StreamingQueryException(f"{FAILED}{reason} existing state key schema.{STACK}"))
    assert isinstance(found, cep.StateError)
    assert "with a bucket for each key, and now keys share buckets" in str(found)


def test_errors_that_carry_more_than_a_sentence() -> None:
    (found,) = [failure(RuntimeError("cepheid.errors.QueryError: CEP104: it ends\n  query:1:8"))]
    assert isinstance(found, cep.StreamError) and str(found) == "CEP104: it ends\n  query:1:8"


def test_waiting() -> None:
    assert wait(Ended()) and wait(Ended(), 1)
    assert not wait(Ended(ended=False), 1)
