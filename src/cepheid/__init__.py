"""Cepheid: complex event processing for Spark, in Python.

>>> import cepheid as cep, pyarrow as pa
>>> events = pa.table({"ts": [1, 2, 3, 9], "name": ["A", "B", "C", "C"]})
>>> query = "PATTERN A a ; B b ; C c WITHIN 5 RETURN a.ts AS a, b.ts AS b, c.ts AS c"
>>> cep.match(events, query, time="ts", type="name").to_pylist()
[{'a': 1, 'b': 2, 'c': 3, 'match_start': 1, 'match_end': 3}]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.errors import (
    CepheidError,
    DataError,
    ExtraError,
    OptionError,
    PlanError,
    QueryError,
    RuleSetError,
    SessionError,
    StateError,
    StateLimitError,
    StreamError,
    UnsupportedError,
)
from cepheid.extras import require, stand_in
from cepheid.spark.start.session import ensure_worker_python

if TYPE_CHECKING:
    from cepheid.explain import Explanation
    from cepheid.inprocess.disorder import Heartbeat
    from cepheid.notebook import Shell
    from cepheid.options import Adaptation, Limit, Options
    from cepheid.query import Query, match, rejected
    from cepheid.query.analysis import analyze
    from cepheid.query.compiled_ahead import warm
    from cepheid.query.continuous import open, resume
    from cepheid.query.questions import funnel, timeline, why
    from cepheid.query.timeouts import timeouts
    from cepheid.reasons.funnel import Funnel
    from cepheid.reasons.timeline import Timeline
    from cepheid.reasons.why.report import Why
    from cepheid.reasons.why.why_not import WhyNot
    from cepheid.rewrites import REWRITES
    from cepheid.rules import LiveRules, Rule, RuleSet, Watch
    from cepheid.sessions.session import Session, SessionStatus
    from cepheid.spark.streaming.status.checkpoint import reached
    from cepheid.spark.streaming.status.metrics import Metrics
    from cepheid.spark.streaming.status.outcome import wait
    from cepheid.spark.streaming.status.reports import Status, status
    from cepheid.statements.registration import register
    from cepheid.statements.sql import explain_sql, sql
    from cepheid.statements.statement_explanation import StatementExplanation
    from cepheid.statistics import Statistics

__all__ = [
    "REWRITES",
    "Adaptation",
    "CepheidError",
    "DataError",
    "Explanation",
    "ExtraError",
    "Funnel",
    "Heartbeat",
    "Limit",
    "LiveRules",
    "Metrics",
    "OptionError",
    "Options",
    "PlanError",
    "Query",
    "QueryError",
    "Rule",
    "RuleSet",
    "RuleSetError",
    "Session",
    "SessionError",
    "SessionStatus",
    "StateError",
    "StateLimitError",
    "StatementExplanation",
    "Statistics",
    "Status",
    "StreamError",
    "Timeline",
    "UnsupportedError",
    "Watch",
    "Why",
    "WhyNot",
    "analyze",
    "explain_sql",
    "funnel",
    "match",
    "open",
    "reached",
    "register",
    "rejected",
    "resume",
    "sql",
    "status",
    "timeline",
    "timeouts",
    "wait",
    "warm",
    "why",
]

__version__ = "0.2.0"

# Before a Spark session starts: its workers need this interpreter's packages.
ensure_worker_python()

_HOMES = {
    "REWRITES": "cepheid.rewrites",
    "Adaptation": "cepheid.options",
    "Explanation": "cepheid.explain",
    "Funnel": "cepheid.reasons.funnel",
    "Heartbeat": "cepheid.inprocess.disorder",
    "Limit": "cepheid.options",
    "LiveRules": "cepheid.rules",
    "Metrics": "cepheid.spark.streaming.status.metrics",
    "Options": "cepheid.options",
    "Rule": "cepheid.rules",
    "RuleSet": "cepheid.rules",
    "Session": "cepheid.sessions.session",
    "SessionStatus": "cepheid.sessions.session",
    "StatementExplanation": "cepheid.statements.statement_explanation",
    "Statistics": "cepheid.statistics",
    "Status": "cepheid.spark.streaming.status.reports",
    "Timeline": "cepheid.reasons.timeline",
    "Watch": "cepheid.rules",
    "Why": "cepheid.reasons.why.report",
    "WhyNot": "cepheid.reasons.why.why_not",
    "analyze": "cepheid.query.analysis",
    "explain_sql": "cepheid.statements.sql",
    "funnel": "cepheid.query.questions",
    "open": "cepheid.query.continuous",
    "reached": "cepheid.spark.streaming.status.checkpoint",
    "register": "cepheid.statements.registration",
    "resume": "cepheid.query.continuous",
    "sql": "cepheid.statements.sql",
    "status": "cepheid.spark.streaming.status.reports",
    "timeline": "cepheid.query.questions",
    "timeouts": "cepheid.query.timeouts",
    "wait": "cepheid.spark.streaming.status.outcome",
    "warm": "cepheid.query.compiled_ahead",
    "why": "cepheid.query.questions",
}


def __getattr__(name: str) -> object:
    """The public names are loaded when first used: a worker that only runs the engine never
    loads the parser or the planner. Those of Spark are stand-ins if Spark isn't installed, so that
    `from cepheid import *` works without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = _HOMES.get(name, "cepheid.query")
    if home.startswith("cepheid.spark."):
        try:
            require("spark")
        except ExtraError as error:
            return stand_in(name, error)
    return getattr(import_module(home), name)


def load_ipython_extension(shell: Shell) -> None:
    """What `%load_ext cepheid` calls: it adds `%%cep`."""
    from importlib import import_module

    import_module("cepheid.notebook").register(shell)


def __dir__() -> list[str]:
    """The public names, also of what isn't loaded yet."""
    return [*__all__, "__version__"]
