"""Options of a run: everything but the query itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from datetime import date, datetime
from numbers import Integral
from typing import Literal, TypedDict, TypeVar

from cepheid.errors import OptionError
from cepheid.statistics import Statistics

Partitioning = Literal["auto", "key", "partial", "slices", "single"]
Placement = Literal["auto", "keys", "one", "split"]
EngineChoice = Literal["auto", "tree", "nfa"]
NegationChoice = Literal["auto", "push", "top"]
PropagationChoice = Literal["auto", "push", "lazy", "pull", "pass-down"]
Unit = Literal["us", "ms", "s", "min", "h", "d"]

AUTO = "auto"
LAST_EVENT = "last event"
"""`until`: time passes only to there."""

DURATION = re.compile(r"(\d+) *(millisecond|second|minute|hour|day|week)s?")
"""How options name durations, as Spark does."""

_US = {
    "millisecond": 10**3,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
    "day": 86400 * 10**6,
    "week": 7 * 86400 * 10**6,
}

TICK_US: Mapping[Unit, int] = {
    "us": 1,
    "ms": 10**3,
    "s": 10**6,
    "min": 60 * 10**6,
    "h": 3600 * 10**6,
    "d": 86400 * 10**6,
}
"""What a tick of an integer time column may be, in microseconds."""


@dataclass(frozen=True)
class Adaptation:
    """When a running plan is replaced (ZStream 5.3).

    change  how far a statistic must move from the one that the plan is based on (t): 0.5 is by half
    gain    how much cheaper another plan must be to be installed (c): 0.1 is by a tenth
    """

    change: float = 0.5
    gain: float = 0.1

    def __post_init__(self) -> None:
        for name, value in (("change", self.change), ("gain", self.gain)):
            if not 0 <= value < float("inf"):
                raise OptionError(f"{name} must be a number from 0 up, not {value}")


@dataclass(frozen=True)
class Limit:
    """The largest number of events that a run may hold, per class and key, and in total. None is no
    limit. Automata hold events that a match may still need, trees and stacks all events of the
    window.

    `policy` says what happens beyond it. With `fail` the run stops with a `StateLimitError`. With
    `drop-oldest` it drops the oldest events, and the matches that would begin with or before them.
    The matches that it finds are correct, and dropped events are counted.
    """

    per_key: int | None = None
    total: int | None = None
    policy: Literal["fail", "drop-oldest"] = "fail"

    def __post_init__(self) -> None:
        _one_of("policy", self.policy, ("fail", "drop-oldest"))
        for name, value in (("per_key", self.per_key), ("total", self.total)):
            _count(name, value)


@dataclass(frozen=True)
class Options:
    """Options of a run. `time` is the only one that is always needed.

    time          column of the event time: a timestamp, a date or an integer
    type          column of the event type, if one stream holds several types
    tie           column that orders events of the same time; without it they are simultaneous
    start         column of the time at which an event starts, if events have a duration; `time` is
                  then when they end, and there is no `tie`
    unit          what one tick of an integer time column is, to allow `WITHIN 10 seconds`
    params        values of the query's `:parameters`
    engine        `auto` (the cheapest), `tree` (joins, ZStream) or `nfa` (automata, SASE and
                  Cayuga); what only automata can do, such as `->`, they do in any case
    plan          `auto` (the cheapest), `left-deep`, `right-deep`, or a tree such as `((a b) c)`
    negation      `auto`, `push` (NSEQ where it is correct) or `top` (filters on top)
    propagation   `auto`, `push` (all operators, every round), `lazy` (only when a match can end),
                  `pull` (left inputs only as needed), or `pass-down`
    stats         statistics of the data, from `analyze` or by hand; the run measures the rest
    adapt         when to replace the plan during the run; None keeps it
    without       names of rewrite rules to leave out; `cepheid.REWRITES` lists them
    limit         how many events may be held, `Limit(per_key=.., total=..)`: needed by `->` and
                  `=>` queries without WITHIN on data that may never end
    until         how far time passes at the end of the data: to a time, or to the "last event";
                  what is undecided then, such as a match that waits for the end of its window, is
                  left out and counted. None: time passes for ever, and all is decided
    delay         of sessions and iterators of record batches: by how much events may come out of
                  order, as "10 seconds", or in ticks if times are integers; they are put in order,
                  and those that come later than that are left out and counted. None: an iterator
                  is in order, and of a session the events of one push are put in order
    partitioning  on Spark: `auto`, `key`, `partial` (events without the key are copied to all
                  partitions), `slices` of time, or `single`; the matches are always the same
    placement     sets of rules on Spark: `auto` (what is done first), `keys` (a pass for each key),
                  `one` (a pass for all), or `split` (a pass for each key, and the rules of each
                  divided among the cores); the matches are always the same
    partitions    on Spark: how many partitions; by default as many as the session shuffles into
    buckets       on Spark streams: into how many buckets the keys go, 8 by default; it can't change
                  while a checkpoint is used
    future        on Spark streams: how far ahead of the clock an event may be, as "5 minutes"; one
                  further ahead is rejected, and moves no watermark. `auto` is an hour, or two days
                  for times without a zone, and no limit for integers; None is no limit
    idle          on Spark streams with a key and `WITHIN n EVENTS`: a key that has no event for so
                  long, as "1 day", is over and forgotten; None keeps all keys for ever
    heartbeat     on Spark streams: when nothing has come for so long, as "1 minute", time advances
                  with the clock and releases what waits for it; None: it passes only with events
    dead_letters  on Spark streams: hand out the rows that are late, ahead of the clock or without a
                  time, too, in a column `dead_letter` beside the matches; with names, those columns
                  of the rows besides the ones that are read
    threads       in process: how many threads match a large table, 1 by default; the matches are
                  always the same
    jit           compile the kernels; without it the same code runs as plain Python

    >>> Options(time="ts", type="name").plan
    'auto'
    """

    time: str
    type: str | None = None
    tie: str | None = None
    start: str | None = None
    unit: Unit | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    engine: EngineChoice = "auto"
    plan: str = "auto"
    negation: NegationChoice = "auto"
    propagation: PropagationChoice = "auto"
    stats: Statistics | None = None
    adapt: Adaptation | None = Adaptation()
    without: tuple[str, ...] = ()
    limit: Limit | None = None
    until: int | datetime | date | str | None = None
    delay: str | int | None = None
    partitioning: Partitioning = "auto"
    placement: Placement = "auto"
    partitions: int | None = None
    buckets: int | None = None
    future: str | None = AUTO
    idle: str | None = None
    heartbeat: str | None = None
    dead_letters: bool | Sequence[str] = False
    threads: int = 1
    jit: bool = True

    def __post_init__(self) -> None:
        for part in ("time", "type", "tie", "start"):
            _column(part, getattr(self, part))
        _one_of("engine", self.engine, ("auto", "tree", "nfa"))
        _one_of("negation", self.negation, ("auto", "push", "top"))
        _one_of("propagation", self.propagation, ("auto", "push", "lazy", "pull", "pass-down"))
        _one_of("partitioning", self.partitioning, ("auto", "key", "partial", "slices", "single"))
        _one_of("placement", self.placement, ("auto", "keys", "one", "split"))
        if self.unit is not None:
            _one_of("unit", self.unit, ("us", "ms", "s", "min", "h", "d"))
        if not isinstance(self.plan, str):
            raise OptionError(
                f"plan is auto, left-deep, right-deep or a tree of joins such as '((a b) c)'; not "
                f"{self.plan!r}"
            )
        if not isinstance(self.jit, bool):
            raise OptionError(f"jit is True or False, not {self.jit!r}")
        _names("without", self.without)
        if not isinstance(self.dead_letters, bool):
            _names("dead_letters", self.dead_letters)
        for part, kind, remedy in _KINDS:
            _instance(part, getattr(self, part), kind, remedy)
        if self.start is not None and self.tie is not None:
            raise OptionError(
                "start and tie exclude each other: a tie is between events of one time"
            )
        for name in ("partitions", "buckets", "threads"):
            _count(name, getattr(self, name))
        if self.future is not None and self.future != AUTO:
            duration_us(self.future)
        _delay(self.delay)
        for name, length in (("idle", self.idle), ("heartbeat", self.heartbeat)):
            if length is not None and duration_us(length) == 0:
                raise OptionError(f"{name} must be longer than {length}")


def refuse_until(options: Options) -> None:
    """Streams have no end."""
    if options.until is not None:
        raise OptionError(
            "until= is for data that end: on a stream time passes with the watermark, and with "
            "heartbeat= also when nothing comes; leave until= out"
        )


def refuse_dead_letters(options: Options) -> None:
    """Of data that have an end, none is late."""
    if options.dead_letters is not False:
        raise OptionError(
            "dead_letters= is for streams; for other data, cep.rejected returns the rows without "
            "a time"
        )


ON_SPARK = (
    "a batch is put in order anyway, and the delay of a stream is that of withWatermark; leave it "
    "out"
)
"""What is done there instead of `delay`."""


def refuse_delay(options: Options, kind: str, instead: str) -> None:
    """Where rows are put in order without it."""
    if options.delay is not None:
        raise OptionError(
            f"delay= is for sessions and iterators of record batches, not for {kind}: {instead}"
        )


def duration_us(text: object) -> int:
    """A duration in microseconds.

    >>> duration_us("90 seconds"), duration_us("1 hour")
    (90000000, 3600000000)
    """
    parts = DURATION.fullmatch(text) if isinstance(text, str) else None
    if parts is None:
        raise OptionError(f"a duration is like '10 seconds', not {text!r}")
    return int(parts[1]) * _US[parts[2]]


def _column(part: str, name: object) -> None:
    if not isinstance(name, str) and (name is not None or part == "time"):
        raise OptionError(f"{part} is the name of a column, a string; not {name!r}")


def _names(part: str, names: object) -> None:
    if isinstance(names, str | bytes) or not isinstance(names, Collection):
        raise OptionError(f"{part} is a list of names, not {names!r}")
    for name in names:
        if not isinstance(name, str):
            raise OptionError(f"{part} is a list of names, not {names!r}")


def _delay(delay: object) -> None:
    if isinstance(delay, str):
        duration_us(delay)
    elif delay is not None and (not isinstance(delay, Integral) or delay < 0):
        raise OptionError(
            f"delay is a duration like '10 seconds', or ticks from 0 up; not {delay!r}"
        )


def _count(name: str, count: object) -> None:
    if count is None and name != "threads":
        return
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
        raise OptionError(f"{name} must be at least 1, not {count!r}")


_KINDS: tuple[tuple[str, type, str], ...] = (
    ("params", Mapping, "a dict of values by the parameters' names"),
    ("stats", Statistics, "Statistics: of a file, `Statistics.from_json(path.read_text())`"),
    ("limit", Limit, "a Limit, such as Limit(total=1_000_000)"),
    ("adapt", Adaptation, "an Adaptation, or None to keep the first plan"),
)
"""Options that are objects, and how to make them."""


def _instance(name: str, value: object, kind: type, remedy: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise OptionError(f"{name} is {remedy}; not {value!r}")


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise OptionError(f"{name} must be one of {', '.join(known)}; not {value!r}")


class GivenOptions(TypedDict, total=False):
    """The options by name, as functions take them: those of `Options`."""

    time: str
    type: str | None
    tie: str | None
    start: str | None
    unit: Unit | None
    params: Mapping[str, object]
    engine: EngineChoice
    plan: str
    negation: NegationChoice
    propagation: PropagationChoice
    stats: Statistics | None
    adapt: Adaptation | None
    without: tuple[str, ...]
    limit: Limit | None
    until: int | datetime | date | str | None
    delay: str | int | None
    partitioning: Partitioning
    placement: Placement
    partitions: int | None
    buckets: int | None
    future: str | None
    idle: str | None
    heartbeat: str | None
    dead_letters: bool | Sequence[str]
    threads: int
    jit: bool


Function = TypeVar("Function", bound=Callable[..., object])


def takes_options(function: Function) -> Function:
    """Show the options one by one in the signature of a function that takes them by name, which is
    what `help` and completion look at."""
    signature = inspect.signature(function)
    declared = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    options = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if option.default is MISSING else option.default,
            annotation=option.type,
        )
        for option in fields(Options)
    ]
    spelled = signature.replace(parameters=[*declared, *options])
    function.__signature__ = spelled  # type: ignore[attr-defined]
    return function
