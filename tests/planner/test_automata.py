"""Plans of automata, of stacks, and of automata below trees: what goes where, and who runs what."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from cepheid.algebra.query import Role
from cepheid.errors import PlanError
from cepheid.options import EngineChoice, Limit
from cepheid.plan.nodes import STREAM, Automaton, Equivalence, LeafNode, Node, Seq, Stacks, walk
from cepheid.plan.text import node_lines, plan_text
from cepheid.planner import automaton_plan
from cepheid.planner.automata.segments import mixed
from cepheid.planner.choice import Choice
from cepheid.planner.plan import assemble
from cepheid.planner.search import search
from cepheid.statistics import Statistics
from tests.planner.drawing import bind


def automaton(text: str) -> Automaton:
    (root,) = automaton_plan(bind(text)).alternatives
    assert isinstance(root, Automaton)
    return root


def stacks(text: str, statistics: Statistics | None = None) -> Stacks:
    planned = search(bind(text), statistics or Statistics(), engine="nfa")
    (found,) = (node for node in walk(planned.plan.alternatives[0]) if isinstance(node, Stacks))
    return found


def mixed_plan_text(text: str) -> str | None:
    """The left-deep tree over the automata of a pattern's parts."""
    query = bind(text)
    alternative = mixed(query)
    if alternative is None:
        return None
    plan = assemble(query, (alternative,), (Choice("left-deep"),))
    lines = node_lines(plan.alternatives[0], plan.variables)
    return "\n".join(line for line in lines if not re.search(r"│ \S", line))  # without states


# ── one automaton ──


def test_every_class_is_a_leaf_in_the_order_of_the_pattern() -> None:
    root = automaton("PATTERN A a -> !B b -> (C c | D d) -> E e \\ F f WHERE c.x > 1 WITHIN 9")
    assert [leaf.variable for leaf in root.leaves] == ["a", "b", "c", "d", "e", "f"]
    assert [len(leaf.filters) for leaf in root.leaves] == [0, 0, 1, 0, 0, 0]


def test_what_reads_more_than_one_event_stays_with_the_automaton() -> None:
    root = automaton(
        "PATTERN A a -> B+ b -> C c WHERE a.x > 1 AND b.x > 2 AND b.x > a.x AND c.y > a.y "
        "AND b.y > PREV(b.y) AND duration() < 5 HAVING count(b) > 1 WITHIN 9"
    )
    roles = [conjunct.role for conjunct in root.where]
    assert roles == [Role.FILTER, Role.MULTI, Role.RUNNING, Role.MATCH]
    assert len(root.checks) == 1


def test_until_looks_at_events_that_a_filter_refuses() -> None:
    """So the filter of its closure isn't the leaf's; others' are."""
    root = automaton(
        "PATTERN A a -> B+ b UNTIL (b.y > 9) -> C c WHERE a.x > 1 AND b.x > 2 AND c.x > 3"
    )
    assert [len(leaf.filters) for leaf in root.leaves] == [1, 0, 1]
    assert [conjunct.variables for conjunct in root.where] == [("b",)]


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ("PATTERN A a -> B b", False),
        ("PATTERN A a => B b", True),
        ("PATTERN A a -> B+ b STRICT -> C c", True),
        ("PATTERN A a -> !(B b => C c) -> D d", True),
        ("PATTERN A a -> B b \\ (C c => D d)", True),
    ],
)
def test_only_what_is_strict_looks_at_every_event(text: str, strict: bool) -> None:
    plan = automaton_plan(bind(text))
    root = plan.alternatives[0]
    assert isinstance(root, Automaton)
    assert (root.leaves[-1] == LeafNode(STREAM)) is strict
    assert (STREAM in plan.variables) is strict


def test_every_event_has_its_place_among_uniform_keys() -> None:
    plan = automaton_plan(bind("PATTERN A a => B b WHERE [k] AND [m]"))
    root = plan.alternatives[0]
    assert isinstance(root, Automaton)
    names = [[(a.variable, a.name) for a in part if a is not None] for part in root.key]
    assert names == [[("a", c), ("b", c), (STREAM, c)] for c in ("k", "m")]
    assert [dict(part) for part in plan.key] == [
        {"a": column, "b": column, STREAM: column} for column in ("k", "m")
    ]


def test_if_a_column_of_the_key_differs_strict_looks_at_the_whole_stream() -> None:
    plan = automaton_plan(bind("PATTERN A a => B b WHERE [k] AND a.x = b.y"))
    root = plan.alternatives[0]
    assert isinstance(root, Automaton)
    assert all(part[-1] is None for part in root.key)
    assert all(STREAM not in part for part in plan.key)


# ── stacks ──


def test_a_chain_is_one_operator_and_the_rest_hangs_above() -> None:
    planned = search(
        bind(
            "PATTERN A a ; !N n ; B b ; G+ g ; C c WHERE a.x < c.x AND n.x > a.x AND g.x > b.x "
            "HAVING count(g) > 1 WITHIN 10"
        ),
        Statistics(),
        engine="nfa",
    )
    assert planned.winner.name == "stacks"
    assert plan_text(planned.plan) == dedent("""\
        window: 10 units
        FILTER  count(g) > 1
        └── NEG [a, b]  n.x > a.x
            ├── KSEQ g+ [b, c]  g.x > b.x
            │   ├── STACKS  a.x < c.x
            │   │   ├── A a
            │   │   ├── B b
            │   │   └── C c
            │   └── G g
            └── !N n""")


def test_alternatives_have_stacks_of_their_own() -> None:
    planned = search(bind("PATTERN (A a | B b) ; C c WITHIN 9"), Statistics(), engine="nfa")
    assert [type(root) for root in planned.plan.alternatives] == [Stacks, Stacks]


def test_equalities_that_connect_all_classes_partition_the_stacks() -> None:
    """Beside the key; those that follow aren't tested, those that don't are."""
    found = stacks(
        "PATTERN A a ; !N n ; B b ; C c WHERE a.m = b.k AND b.k = c.m AND a.y = b.x AND a.x = c.x "
        "WITHIN 9"
    )
    assert [[f"{a.variable}.{a.name}" for a in part] for part in found.equivalences] == [
        ["a.m", "b.k", "c.m"]
    ]
    assert len(found.predicates) == 2
    assert found.strategy is Equivalence.PARTITION


def test_an_attribute_that_agrees_twice_is_tested_once_more() -> None:
    found = stacks("PATTERN A a ; B b ; !N n WHERE a.k = b.k AND a.k = b.m WITHIN 9")
    assert [[a.name for a in part] for part in found.equivalences] == [["k", "k"]]
    assert len(found.predicates) == 1


def test_the_attribute_with_most_values_partitions() -> None:
    distinct = {f"{v}.{c}": n for v in "ab" for c, n in (("k", 5), ("m", 5000))}
    text = "PATTERN A a ; B b WHERE [k] AND [m] WITHIN 9"
    found = stacks(text, Statistics(distinct=distinct))
    assert [part[0].name for part in found.equivalences] == ["m", "k"]


def test_without_a_chain_automata_run_what_is_forced_on_them() -> None:
    for text in ("PATTERN A a & B b WITHIN 9", "PATTERN A{3} a WITHIN 9", "PATTERN A a"):
        planned = search(bind(text), Statistics(), engine="nfa")
        assert isinstance(planned.plan.alternatives[0], Automaton), text


# ── automata below trees ──


def test_an_arrow_is_evaluated_by_itself() -> None:
    text = "PATTERN A a ; B b -> C c ; D d WHERE a.m = d.m AND b.x > a.x AND c.y < d.y WITHIN 10"
    expected = """\
        SEQ  hash(a.m = d.m), c.y < d.y
        ├── SEQ  b.x > a.x
        │   ├── A a
        │   └── AUTOMATON  B b -> C c
        │       ├── B b
        │       └── C c
        └── D d"""
    assert mixed_plan_text(text) == dedent(expected)
    assert mixed_plan_text(text.replace("B b -> C c", "(B b -> C c)")) == dedent(expected)


def test_negations_and_closures_between_parts_belong_to_the_tree() -> None:
    text = (
        "PATTERN A a -> B b ; !N n ; C c ; G+ g ; D d -> E e WHERE n.x > b.x AND g.x > c.x "
        "AND d.x > c.x HAVING count(g) > 1 WITHIN 10"
    )
    assert mixed_plan_text(text) == dedent("""\
        FILTER  count(g) > 1
        └── KSEQ g+ [c, d e]  g.x > c.x
            ├── SEQ  d.x > c.x
            │   ├── SEQ
            │   │   ├── NSEQ  n.x > b.x
            │   │   │   ├── AUTOMATON  A a -> B b
            │   │   │   │   ├── A a
            │   │   │   │   └── B b
            │   │   │   └── !N n
            │   │   └── C c
            │   └── AUTOMATON  D d -> E e
            │       ├── D d
            │       └── E e
            └── G g""")


def test_a_closure_that_chooses_takes_its_neighbors_along() -> None:
    assert mixed_plan_text("PATTERN A a ; B b ; C+ c SUBSETS ; D d ; E e WITHIN 10") == dedent("""\
        SEQ
        ├── SEQ
        │   ├── A a
        │   └── AUTOMATON  B b ; C+ c SUBSETS ; D d
        │       ├── B b
        │       ├── C c
        │       └── D d
        └── E e""")


def test_members_of_a_conjunction_can_be_parts() -> None:
    assert mixed_plan_text("PATTERN A a & (B b => C c) WITHIN 10") == dedent("""\
        CONJ
        ├── A a
        └── AUTOMATON  B b => C c
            ├── B b
            ├── C c
            └── every event""")


def test_what_connects_a_part_is_its_own_key() -> None:
    query = bind(
        "PATTERN A a ; B b -> !N n -> C c WHERE b.m = c.k AND b.m = n.x AND b.m = n.k WITHIN 10"
    )
    alternative = mixed(query)
    assert alternative is not None
    ((_, node),) = alternative.segments
    assert [[a and a.name for a in part] for part in node.key] == [["m", "k", "k"]]
    assert [conjunct.variables for conjunct in node.where] == [("b", "n")]


def test_a_strict_part_has_the_key_of_the_query_alone() -> None:
    query = bind("PATTERN A a ; B b => C c WHERE [k] AND b.m = c.m WITHIN 10")
    alternative = mixed(query)
    assert alternative is not None
    ((_, node),) = alternative.segments
    assert [[a and a.name for a in part] for part in node.key] == [["k", "k", "k"]]
    assert [conjunct.variables for conjunct in node.where] == [("b", "c")]


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A a ; B b -> C c WHERE c.x > a.x WITHIN 9",  # a decides which c is first
        "PATTERN A a ; B b -> C c -> D d WHERE c.x > a.x WITHIN 9",
        "PATTERN A a -> B b -> C c",  # there is nothing else
        "PATTERN A a ; B b -> C+ c ; D d WITHIN 9",  # d says where the group ends
        "PATTERN A a ; B b -> C+ c -> D d ; E e WHERE sum(c.x) > e.x WITHIN 9",
        "PATTERN A a ; B b -> !N n -> C c WHERE n.x > a.x WITHIN 9",
        "PATTERN A a ; B b -> C c => !N n ; D d WITHIN 9",  # right after c, whatever is bound
        "PATTERN A a ; (B b -> C c) @ 3 ; D d WITHIN 9",  # another end than c's
        "PATTERN A a ; (B b -> C c) \\ N n ; D d WITHIN 9",
        "PATTERN A a ; (B b -> C c | D d) ; E e WITHIN 9",
        "PATTERN A a ; (B b -> (C c -> D d)) ; E e WITHIN 9",
        "PATTERN A a ; (!N n -> B b -> C c) ; D d WITHIN 9",  # the gap begins at a
        "PATTERN A a & (A b -> C c) WITHIN 9",  # a could be b
        "PATTERN A a & (B b -> !A n -> C c) WITHIN 9",  # a is not a forbidden one
        "PATTERN A a ; !(B b -> C c) ; D d WITHIN 9",
    ],
)
def test_what_might_choose_otherwise_is_not_parted(text: str) -> None:
    assert mixed(bind(text)) is None
    planned = search(bind(text), Statistics())
    assert [type(root) for root in planned.plan.alternatives] == [Automaton]


# ── who runs what ──


@pytest.mark.parametrize(
    ("text", "engine", "name"),
    [
        ("PATTERN A a -> B b", "auto", "automaton"),
        ("PATTERN A a -> B b", "nfa", "automaton"),
        ("PATTERN A a ; B b -> C c ; D d WITHIN 9", "nfa", "automaton"),
        ("PATTERN A a ; B b WITHIN 9", "nfa", "stacks"),
        ("PATTERN A a ; B b WITHIN 9", "tree", "left-deep"),
    ],
)
def test_engines(text: str, engine: EngineChoice, name: str) -> None:
    assert search(bind(text), Statistics(), engine=engine).winner.name == name


def test_what_only_automata_run_is_not_called_forced() -> None:
    assert not search(bind("PATTERN A a -> B b"), Statistics(), engine="nfa").forced
    assert search(bind("PATTERN A a ; B b WITHIN 9"), Statistics(), engine="nfa").forced


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        ("A a -> B b", "the next sequence `->`"),
        ("A a => B b", "the strict sequence `=>`"),
        ("A a \\ B b", "the exception"),
        ("A a @ 3", "the delay `@`"),
        ("A a ; B+ b UNTIL (b.x > 1) ; C c", "UNTIL"),
        ("A a ; B+ b STRICT ; C c", "the closure mode STRICT"),
        ("A a ; B+ b SUBSETS ; C c", "the closure mode SUBSETS"),
        ("A a ; (B b ; C c)+ ; D d", "a closure over a group"),
        ("A a ; !(B b ; C+ c ; D d) ; E e", "a closure inside a negation"),
    ],
)
@pytest.mark.parametrize("forced", [{"engine": "tree"}, {"plan": "left-deep"}])
def test_a_tree_that_cannot_be_says_why(
    pattern: str, construct: str, forced: dict[str, EngineChoice]
) -> None:
    with pytest.raises(PlanError) as caught:
        search(bind(f"PATTERN {pattern} WITHIN 9"), Statistics(), **forced)
    assert str(caught.value).startswith(construct)
    assert "needs an automaton" in str(caught.value)


def test_a_tree_is_not_an_automaton() -> None:
    with pytest.raises(PlanError, match="is a tree of joins, but engine='nfa'"):
        search(bind("PATTERN A a ; B b WITHIN 9"), Statistics(), engine="nfa", plan="left-deep")


@pytest.mark.parametrize("pattern", ["A a -> B b", "A a ; B b", "A a ; B b -> C c ; D d"])
def test_the_limit_is_in_every_plan(pattern: str) -> None:
    limit = Limit(per_key=5)
    planned = search(bind(f"PATTERN {pattern} WITHIN 9"), Statistics(), limit=limit)
    assert planned.plan.limit == limit


# ── cost ──


def cost_of(
    node: type[Node], text: str, rates: dict[str, float], **more: dict[str, float]
) -> float:
    planned = search(bind(text), Statistics(rates, **more), engine="nfa")
    (found,) = (e for n, e in planned.estimates.items() if isinstance(n, node))
    return found.cost


def test_stacks_cost_more_with_more_events_and_less_with_more_values() -> None:
    text = "PATTERN A a ; B b ; C c WHERE [k] WITHIN 10"
    rates = {"a": 10.0, "b": 10.0, "c": 10.0}

    def values(n: int) -> dict[str, float]:
        return {f"{v}.k": n for v in "abc"}

    few = cost_of(Stacks, text, rates, distinct=values(10))
    many = cost_of(Stacks, text, rates, distinct=values(1000))
    more = cost_of(Stacks, text, {**rates, "b": 100.0}, distinct=values(10))
    assert many < few < more


def test_arrows_leave_less_to_look_at() -> None:
    rates = {"a": 10.0, "b": 10.0, "c": 10.0}
    costs = [
        cost_of(Automaton, f"PATTERN A+ a RUNS {o} B b {o} C c WITHIN 10", rates)
        for o in ("=>", "->", ";")
    ]
    assert costs == sorted(costs) and len(set(costs)) == 3


def test_a_part_that_chooses_little_is_worth_an_automaton_of_its_own() -> None:
    """Alone, the automaton would try every pair of a and d, with no hash to find them by."""
    text = "PATTERN A a ; B b -> C c ; D d WHERE a.m = d.m AND b.m = c.m WITHIN 10"
    planned = search(bind(text), Statistics())
    assert planned.winner.name.startswith("automata in trees")
    root = planned.plan.alternatives[0]
    assert isinstance(root, Seq)
    assert "automaton" in [loser.name for loser in planned.losers]
