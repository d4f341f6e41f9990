"""By which columns events can be partitioned so that rules find the matches that they read.

A match is read in the bucket where it was found. So all rules of a chain, those that read each
other, need one column of the events: one that is in the key of each, and that a match has from its
own events. Where there is none, all of them need the events of all keys in one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cepheid.algebra.expressions import Attribute
from cepheid.algebra.query import BoundQuery, Kind
from cepheid.rules.load.readers import Reads
from cepheid.rules.run.chains.followers import Follower, Following

Names = frozenset[str]


def chains(reads: Mapping[int, Reads]) -> Iterator[frozenset[int]]:
    """The places of templates that have to do with each other, chain by chain."""
    left = [{place, *(p.place for p in names.values())} for place, names in reads.items()]
    while left:
        chain = left.pop()
        while any(not chain.isdisjoint(other) for other in left):
            for other in [other for other in left if not chain.isdisjoint(other)]:
                chain |= other
                left.remove(other)
        yield frozenset(chain)


def common_keys(
    following: Following, chain: Iterable[int], keys: Mapping[int, Names | None]
) -> Names | None:
    """The columns by which the rules of a chain can be partitioned; None if any column will do.
    `keys` are those of the templates that read events, None for single events."""
    agreed = _Agreement(following, dict(keys))
    found: Names | None = None
    for place in chain:
        own = agreed.keys[place] if place in keys else agreed.of_followers(place)
        if own is not None:
            found = own if found is None else found & own
    return found


class _Agreement:
    def __init__(self, following: Following, keys: dict[int, Names | None]) -> None:
        self._following, self.keys = following, keys

    def of_followers(self, place: int) -> Names | None:
        if place not in self.keys:
            own = [self._key(f) for f in self._following.followers if f.place == place]
            known = [key for key in own if key is not None]
            self.keys[place] = frozenset.intersection(*known) if known else None
        return self.keys[place]

    def _key(self, follower: Follower) -> Names | None:
        query = follower.query.prepared.query
        if query.selection is not None and query.selection.counts_all:
            return frozenset()
        grouped = None
        if query.answers is not None:
            named = [o.expression for o in query.outputs if o.name in query.answers.groups]
            grouped = frozenset[str]().union(*(self._from(follower, e) for e in named))
        if _is_single(query):
            return grouped
        parts = [
            frozenset.intersection(
                *(self._origin(follower, v, column) for v, column in part.columns.items())
            )
            for part in query.key
        ]
        found = frozenset[str]().union(*parts)
        return found if grouped is None else found & grouped

    def _origin(self, follower: Follower, variable: str, column: str) -> Names:
        """The columns of the events that an attribute of a variable's events comes from."""
        types = follower.query.prepared.query.variables[variable].types
        if not types:
            return frozenset()  # matches are no less than events
        return frozenset.intersection(
            *(
                self._of_template(follower.reads[name].place, column)
                if name in follower.reads
                else frozenset({column})
                for name in types
            )
        )

    def _of_template(self, place: int, column: str) -> Names:
        """The columns of the events that a column of a template's matches comes from."""
        source = self._following.sources.get(place)
        if source is not None:
            expression = _returned(source.query, column)
            keys = self.keys[place]
            match expression:
                case Attribute(variable, name) if _one(source.query, variable):
                    return frozenset({name}) if keys is None or name in keys else frozenset()
                case _:
                    return frozenset()
        followers = [f for f in self._following.followers if f.place == place]
        return frozenset.intersection(
            *(self._from(f, _returned(f.query.prepared.query, column)) for f in followers)
        )

    def _from(self, follower: Follower, expression: object) -> Names:
        query = follower.query.prepared.query
        match expression:
            case Attribute(variable, name) if _one(query, variable):
                return self._origin(follower, variable, name)
            case _:
                return frozenset()


def _returned(query: BoundQuery, column: str) -> object:
    return {output.name: output.expression for output in query.outputs}.get(column)


def _one(query: BoundQuery, variable: str) -> bool:
    return query.variables[variable].kind is Kind.SINGLE


def _is_single(query: BoundQuery) -> bool:
    """Whether each match is one event, or one match of others, and depends on no other."""
    alone = [v.kind for v in query.variables.values()] == [Kind.SINGLE]
    return alone and query.window is None and query.selection is None
