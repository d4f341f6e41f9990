"""The exception tree.

    CepheidError              everything that Cepheid raises on purpose
    ├── QueryError            the query is wrong; carries its diagnostics
    ├── RuleSetError          rules are wrong; carries all that was found in all files
    ├── UnsupportedError      the query is right, but this version can't run it yet
    ├── PlanError             a forced plan doesn't fit the query
    ├── StateLimitError       more events would have to be held than the caller allows
    ├── StateError            saved stream state can't be resumed
    ├── SessionError          a session is used by two threads at once, or after its end
    ├── StreamError           a streaming query has failed; the message is Spark's sentence
    ├── ExtraError            an extra of the installation is missing; the message names it
    └── DataError             the data doesn't fit: a missing column, a wrong type, disorder
        └── OptionError       an option is wrong: it names what isn't there, or what can't be used

Messages say what to do next. A `QueryError` prints the line and a caret (see
`cepheid.language.diagnostics`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cepheid.language.diagnostics import Diagnostic
    from cepheid.rules.findings import Finding


_SHOWN = 20
"""How many diagnostics a message prints; `QueryError.diagnostics` has all."""


class CepheidError(Exception):
    """Base of every error that Cepheid raises on purpose.

    >>> import cepheid as cep
    >>> try:
    ...     cep.Query("PATTERN")
    ... except cep.CepheidError as error:
    ...     print(type(error).__name__)
    QueryError
    """


class QueryError(CepheidError):
    """The query text is wrong. `diagnostics` holds every finding, the first one first.

    >>> import cepheid as cep
    >>> try:
    ...     cep.Query("PATTERN A a ; B b WHERE a.x > 'oops WITHIN 5")
    ... except cep.QueryError as error:
    ...     print(error)
    CEP107: this string is never closed
      query:1:31
      1 | PATTERN A a ; B b WHERE a.x > 'oops WITHIN 5
        |                               ^ add a closing '
    """

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        more = len(self.diagnostics) - _SHOWN
        parts = [d.render() for d in self.diagnostics[:_SHOWN]]
        super().__init__("\n\n".join([*parts, f"and {more:,} more"] if more > 0 else parts))

    def __reduce__(self) -> tuple[type[QueryError], tuple[tuple[Diagnostic, ...]]]:
        return (QueryError, (self.diagnostics,))


class RuleSetError(CepheidError):
    """Rules are wrong. `findings` holds everything that is, in the order of the files.

    >>> import cepheid as cep
    >>> try:
    ...     cep.RuleSet.of({"a": "PATTERN A a ; B b", "b": "PATTERN"})
    ... except cep.RuleSetError as error:
    ...     print(error)
    CEP104: the query ends too early
      b:1:8
      1 | PATTERN
        |        ^ expected a pattern
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n\n".join(finding.render() for finding in self.findings))

    def __reduce__(self) -> tuple[type[RuleSetError], tuple[tuple[Finding, ...]]]:
        return (RuleSetError, (self.findings,))


class UnsupportedError(CepheidError):
    """The query means something, but no engine here runs it yet.

    >>> import cepheid as cep, pyarrow as pa
    >>> query = "PATTERN (a ; (b ; !c ; d)+ ; e)+ ; f WITHIN 9"
    >>> try:
    ...     cep.match(pa.table({"ts": [1]}), query, time="ts")
    ... except cep.UnsupportedError as error:
    ...     print(error)
    a negation in a repeated group inside another one can't run; write an exception,
    `((B b ; C c) \\ N n)+`, which leaves out the rounds that have one
    """


class PlanError(CepheidError):
    """A plan that the caller forced doesn't fit the query.

    >>> import cepheid as cep
    >>> try:
    ...     cep.Query("PATTERN A ; B ; C WITHIN 5").explain(plan="(A C)")
    ... except cep.PlanError as error:
    ...     print(error)
    the plan '(A C)' leaves out `B`; write `left-deep`, `right-deep` or a tree over A B C
    """


class StateLimitError(CepheidError):
    """A run would have to hold more events than `limit` allows. Earlier matches are correct."""


class StateError(CepheidError):
    """The saved state of a streaming query is damaged, or belongs to another query."""


class SessionError(CepheidError):
    """A session is used by two threads at once, or after its end.

    >>> import cepheid as cep, pyarrow as pa
    >>> session = cep.open("PATTERN a ; b WITHIN 5", pa.schema({"ts": pa.int64()}), time="ts")
    >>> session.close().num_rows
    0
    >>> try:
    ...     session.push({"ts": 1})
    ... except cep.SessionError as error:
    ...     print(error)
    the session is closed
    """


class StreamError(CepheidError):
    """A streaming query has failed, for a reason that Spark gives (see `cepheid.wait`)."""


class ExtraError(CepheidError):
    """A missing extra of the installation: `pip install 'cepheid[spark]'`."""


class DataError(CepheidError):
    """The data given doesn't fit the query or the options.

    >>> import cepheid as cep, pyarrow as pa
    >>> try:
    ...     cep.match(pa.table({"ts": ["noon"]}), "PATTERN a ; b WITHIN 5", time="ts")
    ... except cep.DataError as error:
    ...     print(error)
    the time column `ts` is string; it must be a timestamp, a date or an integer: parse it first,
    with `to_datetime` (pandas, polars) or `to_timestamp` (Spark)
    """


class OptionError(DataError, ValueError):
    """An option is wrong: it names something that doesn't exist, or can't be used.

    >>> import cepheid as cep, pyarrow as pa
    >>> try:
    ...     cep.match(pa.table({"ts": [1]}), "PATTERN a ; b WITHIN 5", time="tss")
    ... except cep.OptionError as error:
    ...     print(error)
    there is no column `tss` (time=); did you mean `ts`?
    """
