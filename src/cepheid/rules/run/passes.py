"""Which passes over a stream's events rules need, and which of them each belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cepheid.algebra.query import BoundQuery, Clock, Kind
from cepheid.errors import CepheidError, PlanError, UnsupportedError
from cepheid.options import Options
from cepheid.planner.bounds import counts_all
from cepheid.rules.compile.compiled_rules import Columns
from cepheid.rules.load.lifted import lifted
from cepheid.rules.template import Template


@dataclass(frozen=True)
class Needs:
    """What a template needs of a pass: one of these columns as its key, or events of all keys, or
    only single events, whatever the key is."""

    keys: frozenset[str]
    single: bool

    def fits(self, key: str | None) -> bool:
        return key is None or self.single or key in self.keys


def needs(
    templates: Sequence[Template], columns: Columns, options: Options
) -> list[Needs | CepheidError]:
    """What each template needs, or why it can't run on a stream with these columns. Written rules
    that are alike need the same."""
    found: list[Needs | CepheidError | None] = [None] * len(templates)
    for one in lifted(templates):
        own = _needs(one.template, columns, options)
        if isinstance(own, Needs):
            for place in one.places:
                found[place] = own
    return [
        own or _needs(template, columns, options)
        for own, template in zip(found, templates, strict=True)
    ]


def _needs(template: Template, columns: Columns, options: Options) -> Needs | CepheidError:
    try:
        return _checked(template, columns, options)
    except CepheidError as error:
        return error


def _checked(template: Template, columns: Columns, options: Options) -> Needs:
    query = _example(template, columns, options)
    template.query.require_bounds(query, options)
    keys = frozenset(part.uniform for part in query.key if part.uniform is not None)
    if counts_all(query):
        keys = frozenset()  # one pass must have all events
    if query.window is not None and query.window.clock is Clock.EVENTS and query.key:
        raise UnsupportedError(
            f"`{template.name}` counts the events of each key, which rules over a stream can't: "
            "give it a window of time, or run it alone with cepheid.match"
        )
    return Needs(keys, is_single(query))


def is_single(query: BoundQuery) -> bool:
    """Whether every match is one event, whatever others there are."""
    alone = [v.kind for v in query.variables.values()] == [Kind.SINGLE]
    return alone and query.window is None and query.selection is None


def _example(template: Template, columns: Columns, options: Options) -> BoundQuery:
    params = {**options.params, **(template.values(0) if len(template) else {})}
    return template.query.bind(columns, replace(options, params=params))


def passes(
    templates: Sequence[Template], columns: Columns, options: Options
) -> tuple[str | None, ...]:
    """The keys of the passes that these rules need: the column that keeps apart most rules, then
    that of most others; None for those without any."""
    left: list[tuple[Needs, int]] = []
    for template, own in zip(templates, needs(templates, columns, options), strict=True):
        if isinstance(own, CepheidError):
            raise own
        left.append((own, len(template)))
    chosen: list[str | None] = []
    while left:
        counts: Counter[str] = Counter()
        for own, rules in left:
            counts.update(dict.fromkeys(own.keys, rules))
        key = max(sorted(counts), key=lambda name: counts[name], default=None)
        waiting = [own for own, _ in left if not own.single]
        if key is None and not waiting:
            return tuple(chosen) or (options.time,)  # any column spreads single events
        chosen.append(key)
        left = [(own, rules) for own, rules in left if not own.fits(key)]
    return tuple(chosen)


def own_pass(
    template: Template, keys: Sequence[str | None], needs: Needs | CepheidError
) -> str | None:
    """The first pass that serves the template's rules; an error if none does."""
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
