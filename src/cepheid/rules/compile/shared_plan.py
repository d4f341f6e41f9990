"""Queries that run by themselves, run as one where they have something in common.

Cayuga's "equal sub-patterns are evaluated once", for what isn't in the merged automaton: a few
queries become one plan (`planner.together`), whose matches are separated again. That is exact for
what trees of joins run, since no tree knows of the others. What belongs to a run as a whole must
agree:

- the schema, and the key, whose columns are the same for all events;
- the window; a longer one of another query will do where it only says which matches are too long
  (`shared_query.window_is_filter`), which is then checked on the matches;
- AFTER MATCH with a SKIP, a limit, events that last, and a plan that the caller has chosen are
  about all that is held or found, so such queries stay alone; and so do those that an automaton
  runs, which it does in an order of its own.

Queries are joined as they come, each with those with which it has most classes in common, if the
estimated cost is lower than apart. On a cluster it need not be: a query less is a shuffle less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cepheid.algebra.patterns import leaves
from cepheid.algebra.query import BoundQuery, Clock
from cepheid.engine.attribution.owners import Owner
from cepheid.options import Adaptation, Options
from cepheid.plan.nodes import has_automaton
from cepheid.plan.reads import uniform_key
from cepheid.planner import Prepared
from cepheid.planner.bounds import skips
from cepheid.planner.together import Ways, column, prepare_together, tag, ways
from cepheid.rules.compile.canonical import Form, NamedForm, called_alike, canonical, classes, parts
from cepheid.rules.compile.shared_query import window_is_filter
from cepheid.statistics import Statistics

MOST_MEMBERS = 8
MOST_LEAVES = 24
"""The most event classes of one joint: each event is checked against every class."""

MOST_TRIES = 3
"""How many joints are tried for a query, to see if there is room in them."""


@dataclass(frozen=True)
class SharedPlan:
    """Queries, by their places, that run as one, and the owner of each query's matches."""

    places: tuple[int, ...]
    prepared: Prepared
    owners: tuple[Owner, ...]


@dataclass(frozen=True)
class _Member:
    """A query with its joint's variable names, and the ways to run it unless it is alone."""

    place: int
    query: BoundQuery
    parts: tuple[NamedForm, ...]
    ways: Ways = ()


@dataclass(frozen=True)
class _Draft:
    members: tuple[_Member, ...]
    prepared: Prepared

    @property
    def parts(self) -> list[NamedForm]:
        return [part for member in self.members for part in member.parts]

    @cached_property
    def classes(self) -> frozenset[Form]:
        return classes(self.parts)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(v for member in self.members for v in member.query.variables)

    def has_room(self, member: _Member) -> bool:
        """Whether the joint stays within the limit of classes; every variable has one."""
        bound = {v for each in (*self.members, member) for v in leaves(each.query.pattern)}
        return len(bound) <= MOST_LEAVES

    def plus(self, member: _Member) -> _Draft:
        members = [
            each if each.ways else replace(each, ways=ways(each.query, Statistics()))
            for each in (*self.members, member)
        ]
        return _Draft(tuple(members), _prepared(members, None))


def joined(queries: Sequence[Prepared], options: Options, spread: bool) -> tuple[SharedPlan, ...]:
    """Which of the queries run as one. `spread`: on a cluster, queries without a key stay separate,
    so that each gets the partitioning that fits it."""
    if not _free(options, spread):
        return ()
    drafts: list[_Draft] = []
    for place, prepared in enumerate(queries):
        if not _joins(prepared) or (spread and not prepared.plan.key):
            continue
        alone = _named(place, canonical(prepared.query), (), frozenset())
        n, larger = next(_larger(drafts, alone), (None, None))
        if n is not None and larger is not None and _pays(larger, drafts[n], prepared, spread):
            drafts[n] = larger
        else:
            drafts.append(_Draft((alone,), prepared))
    return tuple(_joint(draft, options) for draft in drafts if len(draft.members) > 1)


def _larger(drafts: Sequence[_Draft], alone: _Member) -> Iterator[tuple[int, _Draft]]:
    """The drafts plus this member: those with the most classes in common first; among equals the
    last one, since earlier ones are more likely full."""
    own_classes = classes(alone.parts)
    like = {n: len(own_classes & draft.classes) for n, draft in enumerate(drafts)}
    fitting = [n for n in like if like[n] and _fit(drafts[n], alone.query)]
    for n in sorted(fitting, key=lambda n: (-like[n], -n))[:MOST_TRIES]:
        member = _named(alone.place, alone.query, drafts[n].parts, drafts[n].names)
        if drafts[n].has_room(member):
            yield n, drafts[n].plus(member)


def _free(options: Options, spread: bool) -> bool:
    """Whether the options leave the plan to Cepheid."""
    chosen = (options.engine, options.plan, options.negation, options.propagation)
    if set(chosen) != {"auto"} or options.stats is not None or options.limit is not None:
        return False
    return options.start is None and not (spread and options.partitioning not in ("auto", "key"))


def _joins(prepared: Prepared) -> bool:
    query, plan = prepared.query, prepared.plan
    return (
        query.nothing is None
        and query.answers is None
        and query.schema.start is None
        and not skips(query)
        and not has_automaton(plan)
        and bool(uniform_key(plan)) == bool(plan.key)
        and len(leaves(query.pattern)) <= MOST_LEAVES
    )


def _fit(draft: _Draft, query: BoundQuery) -> bool:
    if len(draft.members) == MOST_MEMBERS:
        return False
    first = draft.members[0].query
    same = first.schema == query.schema and _key(first) == _key(query)
    return same and all(_windows_fit(member.query, query) for member in draft.members)


def _key(query: BoundQuery) -> list[str | None]:
    return [part.uniform for part in query.key]


def _windows_fit(left: BoundQuery, right: BoundQuery) -> bool:
    if left.window == right.window:
        return True
    if left.window is None or right.window is None:
        return False
    if left.window.clock is not Clock.TIME or right.window.clock is not Clock.TIME:
        return False
    return window_is_filter(left if left.window.size < right.window.size else right)


def _named(
    place: int, query: BoundQuery, others: Sequence[NamedForm], taken: frozenset[str]
) -> _Member:
    named = called_alike(query, others, taken)
    return _Member(place, named, parts(named))


def _prepared(members: Sequence[_Member], adaptation: Adaptation | None) -> Prepared:
    return prepare_together([m.query for m in members], [m.ways for m in members], adaptation)


def _pays(larger: _Draft, draft: _Draft, alone: Prepared, spread: bool) -> bool:
    together, apart = _rate(larger.prepared), _rate(draft.prepared) + _rate(alone)
    return together <= apart if spread else together < apart


def _rate(prepared: Prepared) -> float:
    """The cost per tick of time: estimates are per window."""
    window = prepared.plan.window
    return prepared.planned.winner.cost / (1 if window is None else window.size)


def _joint(draft: _Draft, options: Options) -> SharedPlan:
    prepared = _prepared(draft.members, options.adapt)
    owners = tuple(
        Owner(
            tag(n),
            {column(n, output.name): output.name for output in member.query.outputs},
            None if member.query.window == prepared.plan.window else _size(member.query),
        )
        for n, member in enumerate(draft.members)
    )
    return SharedPlan(tuple(member.place for member in draft.members), prepared, owners)


def _size(query: BoundQuery) -> int | None:
    return None if query.window is None else query.window.size
