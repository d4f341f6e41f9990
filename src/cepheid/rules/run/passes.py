"""Which passes over a stream's events the rules need, and the pass of each rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cepheid.algebra.answer_shape import Answers
from cepheid.algebra.expressions import Attribute
from cepheid.algebra.query import BoundQuery, Clock, Kind
from cepheid.errors import CepheidError, PlanError, UnsupportedError
from cepheid.options import Options
from cepheid.planner.bounds import counts_all
from cepheid.rules.compile.rule_queries import Columns
from cepheid.rules.load.lifted import lifted
from cepheid.rules.load.readers import Reads, in_order, reading
from cepheid.rules.run.chains.agreeing import chains, common_keys
from cepheid.rules.run.chains.followers import following
from cepheid.rules.template import Template
from cepheid.sessions.session_events import EventColumns


@dataclass(frozen=True)
class Needs:
    """What a template needs of a pass: one of these key columns, or events of all keys, or only
    single events with any key."""

    keys: frozenset[str]
    single: bool

    def fits(self, key: str | None) -> bool:
        return key is None or self.single or key in self.keys


def with_rules(templates: Iterable[Template]) -> tuple[Template, ...]:
    """Those that have rules: nothing is known of the parameters of an empty table."""
    return tuple(template for template in templates if len(template))


def needs(
    templates: Sequence[Template], columns: Columns, options: Options, throttled: bool = False
) -> list[Needs | CepheidError]:
    """What each template needs, or why it can't run on a stream with these columns. If alerts are
    `throttled`, those of a key must be in one bucket, also where a match is one event."""
    reads = reading(templates, None, False)
    first = [n for n in range(len(templates)) if n not in reads]
    of_first = _of_events([templates[n] for n in first], columns, options)
    found = dict(zip(first, of_first, strict=True))
    if reads:
        found |= _of_chains(templates, reads, found, columns, options)
    every = (found[n] for n in range(len(templates)))
    return [replace(n, single=False) if throttled and isinstance(n, Needs) else n for n in every]


def _of_chains(
    templates: Sequence[Template],
    reads: Mapping[int, Reads],
    found: Mapping[int, Needs | CepheidError],
    columns: Columns,
    options: Options,
) -> Iterator[tuple[int, Needs | CepheidError]]:
    """What rules that read each other need: all of a chain the same."""
    right: dict[int, Reads] = {}
    for place in in_order(templates, reads):  # one that is wrong concerns those that read it
        chain = _read_by(place, reads)
        own = {n: names for n, names in reads.items() if n in chain}
        try:
            _of_chain(tuple(templates), own, chain, found, columns, options)
        except CepheidError as error:
            yield place, error
        else:
            right[place] = reads[place]
    for chain in chains(right):
        own = {place: names for place, names in right.items() if place in chain}
        need = _of_chain(tuple(templates), own, chain, found, columns, options)
        yield from ((place, need) for place in chain)


def _read_by(place: int, reads: Mapping[int, Reads]) -> frozenset[int]:
    """A template and all that it reads, also by others."""
    below = (p.place for p in reads.get(place, {}).values())
    return frozenset({place}).union(*(_read_by(other, reads) for other in below))


def _of_chain(
    templates: tuple[Template, ...],
    reads: Mapping[int, Reads],
    chain: Collection[int],
    found: Mapping[int, Needs | CepheidError],
    columns: Columns,
    options: Options,
) -> Needs:
    keys: dict[int, frozenset[str] | None] = {}
    for place in sorted(chain):
        own = found.get(place)
        if isinstance(own, CepheidError):
            raise own
        if own is not None:
            keys[place] = None if own.single else own.keys
    given = EventColumns.of(columns, options)
    queries = following(templates, reads, columns, given, options)
    for follower in queries.followers:
        _require_time(follower.name, follower.query.prepared.query)
    common = common_keys(queries, chain, keys)
    return Needs(frozenset() if common is None else common, single=common is None)


def _of_events(
    templates: Sequence[Template], columns: Columns, options: Options
) -> list[Needs | CepheidError]:
    """What templates that read events need. Written rules of one frame need the same."""
    needs_by_place: list[Needs | CepheidError | None] = [None] * len(templates)
    for shared in lifted(templates):
        need = _needs(shared.template, columns, options)
        if isinstance(need, Needs):
            for place in shared.places:
                needs_by_place[place] = need
    return [
        need or _needs(template, columns, options)
        for need, template in zip(needs_by_place, templates, strict=True)
    ]


def _needs(template: Template, columns: Columns, options: Options) -> Needs | CepheidError:
    try:
        return _checked(template, columns, options)
    except CepheidError as error:
        return error


def _checked(template: Template, columns: Columns, options: Options) -> Needs:
    query = _example(template, columns, options)
    template.query.require_bounds(query, options)
    _require_time(template.name, query)
    return needs_of(query)


def _require_time(name: str, query: BoundQuery) -> None:
    if query.window is not None and query.window.clock is Clock.EVENTS and query.key:
        raise UnsupportedError(
            f"`{name}` counts the events of each key, which rules over a stream can't: "
            "give it a window of time, or run it alone with cepheid.match"
        )


def needs_of(query: BoundQuery) -> Needs:
    """What a query needs of a pass. Groups of answers must be whole in a bucket, so that events may
    be partitioned only by what they are grouped by."""
    keys = frozenset(part.uniform for part in query.key if part.uniform is not None)
    single = is_single(query)
    if query.answers is not None:
        groups = _group_columns(query, query.answers)
        return Needs(groups if single else keys & groups, single=False)
    if counts_all(query):
        keys = frozenset()  # one pass must have all events
    return Needs(keys, single)


def _group_columns(query: BoundQuery, answers: Answers) -> frozenset[str]:
    """The columns of events by which matches are grouped."""
    expressions = (o.expression for o in query.outputs if o.name in answers.groups)
    return frozenset(e.name for e in expressions if isinstance(e, Attribute))


def is_single(query: BoundQuery) -> bool:
    """Whether every match is one event and depends on no other."""
    alone = [v.kind for v in query.variables.values()] == [Kind.SINGLE]
    return alone and query.window is None and query.selection is None


def _example(template: Template, columns: Columns, options: Options) -> BoundQuery:
    params = {**options.params, **(template.values(0) if len(template) else {})}
    return template.query.bind(columns, replace(options, params=params))


def passes(
    templates: Sequence[Template], columns: Columns, options: Options, throttled: bool = False
) -> tuple[str | None, ...]:
    """The keys of the passes that these rules need: the column that partitions most rules, then
    that of most of the rest; None for rules without a key."""
    left: list[tuple[Needs, int]] = []
    needed = needs(templates, columns, options, throttled)
    for template, need in zip(templates, needed, strict=True):
        if isinstance(need, CepheidError):
            raise need
        left.append((need, len(template)))
    chosen: list[str | None] = []
    while left:
        counts: Counter[str] = Counter()
        for need, rules in left:
            counts.update(dict.fromkeys(need.keys, rules))
        key = max(sorted(counts), key=lambda name: counts[name], default=None)
        waiting = [need for need, _ in left if not need.single]
        if key is None and not waiting:
            return tuple(chosen) or (options.time,)  # any column spreads single events
        chosen.append(key)
        left = [(need, rules) for need, rules in left if not need.fits(key)]
    return tuple(chosen)


def pass_of(
    template: Template, keys: Sequence[str | None], needs: Needs | CepheidError
) -> str | None:
    """The key of the first pass that can run the template's rules; an error if none can."""
    if isinstance(needs, CepheidError):
        raise needs
    for key in keys:
        if needs.fits(key):
            return key
    named = ", ".join(f"`{key}`" for key in keys)
    raise PlanError(
        f"`{template.name}` has none of the keys that this stream is partitioned by ({named}): "
        "connect its variables by one of them, or start the stream with a new checkpoint"
    )
