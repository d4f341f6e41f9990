"""What becomes of a text: a query that can be planned and explained, or diagnostics. Anything else
is a finding."""

from __future__ import annotations

import json
import resource
import signal
import time
import traceback
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import pyarrow as pa

import cepheid as cep
from cepheid.algebra.schemas import assumed
from cepheid.errors import CepheidError, QueryError
from cepheid.language import ast, parse
from cepheid.language.traversal import parameters, walk
from cepheid.options import Options
from cepheid.planner import prepare

SECONDS = 1.0
"""Of the processor, which a text may take to be parsed, and each time it is bound and planned."""

MEGABYTES = 300
"""By which a text may raise the memory of the process."""

_SOURCES = Path(cep.__file__).parent

_TYPES = (
    *(pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.timestamp("us", "UTC"), pa.date32()),
    *(pa.decimal128(18, 4), pa.list_(pa.int64()), pa.binary(), pa.duration("us"), pa.int8()),
    *(pa.timestamp("ns"), pa.float32(), pa.large_string(), pa.uint64()),
)


_TABLE = pa.schema(
    {
        **dict.fromkeys("ktxyn", pa.int64()),
        **{"s": pa.string(), "price": pa.float64(), "ts": pa.timestamp("us", "UTC")},
    }
).empty_table()


class _TooSlow(BaseException):
    """Raised in the middle of whatever runs when its time is over."""


@dataclass(frozen=True)
class Finding:
    """`kind` is the same for texts that go wrong in the same way."""

    kind: str
    detail: str


def outcome(text: str, seconds: float = SECONDS) -> Finding | str:
    """What is wrong with the way in which the text was taken, or in a word what became of it."""
    memory = _peak()
    try:
        became = _through(text, seconds)
    except _TooSlow as error:
        return Finding(f"slow in {_place(error)}", _trace(error))
    except _Wrong as error:
        return Finding(str(error), "")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        kind = f"{type(error).__name__} in {_place(error)}"
        return Finding(kind, _trace(error))
    more = _peak() - memory
    if more > MEGABYTES:
        return Finding("memory", f"{more:.0f} MB")
    return became


class _Wrong(Exception):
    """An answer that isn't what was promised."""


def _through(text: str, seconds: float) -> str:
    if "MATCH_RECOGNIZE" in text:
        return _statement(text, seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with _alarm(seconds):
                query = cep.Query(text)
        except QueryError as error:
            _check(error, text)
            return "refused by the parser"
        with _alarm(2 * seconds):
            if parse(str(query)) != query.syntax:
                raise _Wrong("its rendering is another query")
        became = []
        for number in range(3):
            with _alarm(seconds):
                became.append(_bound(query, number))
        if "planned" in became[0]:
            with _alarm(2 * seconds):
                _explain(query)
        return max(became)


def _statement(text: str, seconds: float) -> str:
    """SQL with a clause of ours: its explanation over a table without rows."""
    try:
        with _alarm(seconds):
            str(cep.explain_sql(text, {"t": _TABLE})).encode()
    except CepheidError as error:
        _check(error, text)
        return "a refused statement"
    return "an explained statement"


def _bound(query: cep.Query, number: int) -> str:
    try:
        schema, options = _schemas(query, number)
        bound = query.bind(schema, options)
    except CepheidError as error:
        _check(error, query.text)
        return "bound to none of the schemas"
    try:
        prepare(bound, options)
    except CepheidError as error:
        _check(error, query.text)
        return "not planned"
    return "planned"


def _explain(query: cep.Query) -> None:
    """In all forms; a page takes longest, so it is made for some."""
    explanation = query.explain(params=_params(query))
    str(explanation).encode()
    json.loads(explanation.to_json())
    if zlib.crc32(query.text.encode()) % 8 == 0:
        explanation.to_html()


def _params(query: cep.Query) -> dict[str, object]:
    return {name: _value(name) for name in parameters(query.syntax)}


def _schemas(query: cep.Query, number: int) -> tuple[pa.Schema | dict[str, pa.Schema], Options]:
    """As without data; columns of all types with a timestamp; a stream for every type."""
    params = _params(query)
    if number == 0:
        options = Options(time="ts", type="type", params=params)
        return assumed(query.syntax, options), options
    nodes = list(walk(query.syntax))
    names = {n.name for n in nodes if isinstance(n, ast.Attribute)}
    names |= {n.attribute for n in nodes if isinstance(n, ast.KeyTest)}
    names = {n for n in names if n.isidentifier() and not n.startswith("__")}
    columns = {name: _TYPES[zlib.crc32(name.encode()) % len(_TYPES)] for name in sorted(names)}
    if number == 1:
        columns["ts"] = pa.timestamp("us", "UTC")
        return pa.schema(columns), Options(time="ts", params=params)
    columns["ts"] = pa.int64()
    types = {n.name for n in nodes if isinstance(n, ast.Atom)}
    types |= {t for n in nodes if isinstance(n, ast.AnyOf) for t in n.types}
    streams = sorted(types)[:20] or ["A"]
    return dict.fromkeys(streams, pa.schema(columns)), Options(time="ts", unit="s", params=params)


def _value(name: str) -> object:
    return (5, 2.5, "x", None, True)[zlib.crc32(name.encode()) % 5]


def _check(error: CepheidError, text: str) -> None:
    str(error).encode()  # it can be printed
    if not str(error):
        raise _Wrong("an error that says nothing")
    if len(str(error)) > 20_000:
        raise _Wrong("a message of more than 20,000 characters")
    if not isinstance(error, QueryError):
        return
    if not error.diagnostics:
        raise _Wrong("an error without diagnostics")
    for found in error.diagnostics:
        if not 0 <= found.span.start <= found.span.end <= len(text):
            raise _Wrong(f"{found.code} points outside the text")
        if not found.code.startswith("CEP") or not found.render():
            raise _Wrong("a diagnostic without a code")


# ── bounds ──


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Ends what takes longer. The alarm rings between two steps of Python, so a single long one
    is looked at afterward."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise _TooSlow

    start = time.process_time()
    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    if time.process_time() - start > 1.5 * seconds:
        raise _TooSlow


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    frames = traceback.extract_tb(error.__traceback__, limit=-60)
    return [f for f in frames if str(_SOURCES) in f.filename]


def _place(error: BaseException) -> str:
    """Module and function of ours in which it happened."""
    frames = _frames(error)
    if not frames:
        return "?"
    return f"{Path(frames[-1].filename).relative_to(_SOURCES)}:{frames[-1].name}"


def _trace(error: BaseException) -> str:
    places = [f"{Path(f.filename).relative_to(_SOURCES)}:{f.lineno}" for f in _frames(error)[-6:]]
    return f"{str(error)[:200]} ({' < '.join(reversed(places))})"
