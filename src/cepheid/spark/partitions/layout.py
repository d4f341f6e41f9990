"""How the work is cut into partitions. The matches never depend on it.

    Rows          a match is one event: rows stay where they are
    ByKey         all rows of a key in one partition
    ByPartialKey  some variables are connected by an equality: their rows go by that, all others
                  are copied to every partition
    Slices        of time, each with a copy of the window beside it; a slice owns the matches that
                  end in it
    Single        one partition

AFTER MATCH chooses among the matches of a key, or else of the whole stream, so it needs them
together; LIMIT without PER KEY counts all of them. An automaton without a key isn't partitioned by
an equality of some variables: what it takes first must not depend on which rows are there. Where
`=>` looks at the whole stream although there is a key (its attribute is called differently), rows
must stay together, too.

A hot key would be the work of one partition. If a match depends on nothing outside its window, the
rows of such a key go to slices of time instead (`hot_keys`), each with a copy of the window beside
it, while the others stay by key. No match is lost: it has one key and ends in one slice, which has
all rows of the key that it depends on, those of a window before its end and, if it is known only
later, of a window after it. None is found twice: a slice returns only the matches that end in its
own time, and slices of a key don't overlap. Rows of other keys beside them change nothing, since
matches never cross keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from cepheid.algebra.expressions import Attribute, Call
from cepheid.algebra.query import BoundQuery, Clock, Conjunct, Kind, Role
from cepheid.engine.rows.classes import MOST_CLASSES
from cepheid.errors import PlanError
from cepheid.options import Options
from cepheid.plan.nodes import STREAM, Filter, LeafNode, Node, Plan, has_automaton
from cepheid.plan.reads import leaves
from cepheid.planner.bounds import counts_all, skips, uncut
from cepheid.spark.columns.predicates import Translator

Place = tuple[str, str]
"""A variable and one of its columns."""


@dataclass(frozen=True)
class Rows:
    pass


@dataclass(frozen=True)
class ByKey:
    """The columns of the key, for each class in the order of the masks' bits. With `cut`, a key
    with too many rows may go to slices of time."""

    columns: tuple[tuple[str, ...], ...]
    cut: bool = False

    @property
    def uniform(self) -> bool:
        """Whether a row has the same key in whatever class it is."""
        return len(set(self.columns)) == 1


@dataclass(frozen=True)
class ByPartialKey:
    """The connecting column of each class, in the order of the bits; None: the rows are copied."""

    columns: tuple[str | None, ...]


@dataclass(frozen=True)
class Slices:
    pass


@dataclass(frozen=True)
class Single:
    pass


Layout = Rows | ByKey | ByPartialKey | Slices | Single


def layout_text(layout: Layout, partitions: int, kind: str = "partitions") -> str:
    match layout:
        case Rows():
            return "rows stay where they are: a match is one event"
        case ByKey():
            names = dict.fromkeys(", ".join(c) for c in layout.columns)
            return f"key {' = '.join(names)} ({partitions} {kind})"
        case ByPartialKey():
            names = dict.fromkeys(c for c in layout.columns if c is not None)
            return f"partial key {' = '.join(names)} ({partitions} {kind})"
        case Slices():
            return f"slices of time (at most {partitions})"
        case Single():
            return "single"
        case _:
            assert_never(layout)


def layout_reason(layout: Layout, plan: Plan, query: BoundQuery, options: Options) -> str:
    """Why the work is cut so."""
    if options.partitioning != "auto":
        return "forced"
    match layout:
        case Rows():
            return "events needn't meet"
        case ByKey():
            return "WHERE connects all variables by the key, so matches never cross keys"
        case ByPartialKey():
            return "WHERE connects some variables; the rows of the others are copied"
        case Slices() if _whole_stream(plan):
            return f"{WHOLE_STREAM}; each slice has a copy of the window before it"
        case Slices():
            return "no key connects all variables; each slice has a copy of the window before it"
        case Single() if _whole_stream(plan):
            return f"{WHOLE_STREAM}, and {uncut(query)}"
        case Single():
            return str(uncut(query))
        case _:
            assert_never(layout)


def hot_keys_text(layout: Layout, query: BoundQuery, options: Options) -> str | None:
    """What happens to a key with too many rows."""
    if not isinstance(layout, ByKey):
        return None
    if layout.cut:
        return "cut into slices of time, if a first look finds any"
    reason = "forced" if options.partitioning != "auto" else uncut(query, keyed=True)
    return f"stay whole: {reason}"


def in_events(plan: Plan) -> bool:
    """Whether the window counts events, so that rows must be numbered before the filter."""
    return plan.window is not None and plan.window.clock is Clock.EVENTS


def choose(plan: Plan, query: BoundQuery, options: Options, translator: Translator) -> Layout:
    """The layout that the options ask for; PlanError if the query doesn't allow it."""
    keyed = _by_key(plan, translator)
    match options.partitioning:
        case "auto":
            if _one_event(plan, query):
                return Rows()
            if keyed is not None and not counts_all(query):
                return replace(keyed, cut=uncut(query) is None)
            return Single() if uncut(query) else Slices()
        case "key":
            if counts_all(query):
                raise PlanError(f"partitioning='key' can't partition this query: {uncut(query)}")
            if keyed is None and _whole_stream(plan):
                raise PlanError(f"partitioning='key' can't partition this query: {WHOLE_STREAM}")
            if keyed is None:
                raise PlanError(
                    "partitioning='key' needs a key: equalities in WHERE that connect an attribute "
                    "of every variable, such as [id]"
                )
            return keyed
        case "partial":
            partial = find_partial(plan, query, translator)
            if partial is None:
                raise PlanError(
                    "partitioning='partial' needs an equality in WHERE between two variables that "
                    "every match has, such as a.id = b.id, and a pattern without disjunctions; "
                    "what automata run (such as `->`) and AFTER MATCH need a key, and LIMIT needs "
                    "PER KEY"
                )
            return partial
        case "slices":
            if _one_event(plan, query):
                return Rows()
            reason = uncut(query)
            if reason is not None:
                raise PlanError(f"partitioning='slices' can't cut this query in time: {reason}")
            return Slices()
        case "single":
            return Single()
        case _:
            assert_never(options.partitioning)


def _one_event(plan: Plan, query: BoundQuery) -> bool:
    """Whether each event is a match or not, independent of other events."""
    return not skips(query) and all(_is_event(root) for root in plan.alternatives)


def _is_event(node: Node) -> bool:
    return isinstance(node, LeafNode) or (
        isinstance(node, Filter) and isinstance(node.input, LeafNode)
    )


WHOLE_STREAM = "`=>` and STRICT read the whole stream, because the key has different names"


def _whole_stream(plan: Plan) -> bool:
    """Whether a part of the pattern reads events of all keys, although there is a key."""
    strict = any(leaf.variable == STREAM for leaf in leaves(plan))
    return strict and any(STREAM not in part for part in plan.key)


def _by_key(plan: Plan, translator: Translator) -> ByKey | None:
    classes = leaves(plan)
    if not plan.key or _whole_stream(plan):
        return None
    columns = tuple(tuple(part[leaf.variable] for part in plan.key) for leaf in classes)
    if not all(_hashable(plan, name, translator) for names in columns for name in names):
        return None
    layout = ByKey(columns)
    return layout if layout.uniform or len(classes) <= MOST_CLASSES else None


def _hashable(plan: Plan, column: str, translator: Translator) -> bool:
    """Whether values that are equal for the engine are equal for Spark, too."""
    return translator.column(Attribute("", column, plan.schema.columns[column])) is not None


def find_partial(plan: Plan, query: BoundQuery, translator: Translator) -> ByPartialKey | None:
    """The equality that connects the most variables, if there is one. A match has one value for the
    connected variables and is found in that value's partition alone, since at least two variables
    that every match binds are connected. Rows that a negation or a closure takes only if they equal
    a connected variable go by the same value.

    A match has one value for its members of the class and is found in that value's partition
    alone, since at least two variables that every match binds are in it. Rows that a negation or
    a closure takes only where they equal a member go by the same value.
    """
    classes = leaves(plan)
    if len(plan.alternatives) > 1 or len(classes) > MOST_CLASSES or _whole_stream(plan):
        return None
    if counts_all(query) or (not plan.key and (skips(query) or has_automaton(plan))):
        return None
    if plan.key:
        hashable = {v: c for v, c in plan.key[0].items() if _hashable(plan, c, translator)}
        chosen = hashable if len(hashable) == len(plan.key[0]) else {}
    else:
        groups = [g for g in _connected(query) if all(_hashable(plan, c, translator) for _, c in g)]
        largest = max(groups, key=lambda g: len({v for v, _ in g}), default=set[Place]())
        chosen = _followers(query, largest)
        for variable, column in sorted(largest):
            chosen.setdefault(variable, column)
    if not chosen:
        return None
    return ByPartialKey(tuple(chosen.get(leaf.variable) for leaf in classes))


def _places(conjunct: Conjunct) -> tuple[Place, Place] | None:
    match conjunct.expression:
        case Call("=", (Attribute() as left, Attribute() as right)) if left.type is right.type:
            return (left.variable, left.name), (right.variable, right.name)
        case _:
            return None


def _connected(query: BoundQuery) -> Sequence[set[Place]]:
    """Attributes of single, positive variables that WHERE makes equal."""
    groups: list[set[Place]] = []
    for conjunct in query.where:
        link = _places(conjunct) if conjunct.role is Role.EQUALITY else None
        if link is None or link[0][0] == link[1][0]:
            continue
        touched = [g for g in groups if g & {*link}]
        groups = [g for g in groups if g not in touched] + [set(link).union(*touched)]
    return groups


def _followers(query: BoundQuery, members: set[Place]) -> dict[str, str]:
    """Variables of negations and closures whose events count only if they equal a member."""
    followers: dict[str, str] = {}
    for conjunct in query.where:
        link = _places(conjunct) if conjunct.role in (Role.NEGATION, Role.FILTER) else None
        if link is None or not members.intersection(link):
            continue
        for variable, column in set(link) - members:
            bound = query.variables[variable]
            if bound.negation is not None or bound.kind is not Kind.SINGLE:
                followers.setdefault(variable, column)
    return followers
