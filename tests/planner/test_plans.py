"""Plans as text: what hangs on which node, for each shape."""

from __future__ import annotations

from textwrap import dedent

import pytest

import cepheid as cep
from cepheid.errors import PlanError
from cepheid.plan.text import plan_text

PLANS = {
    "left-deep": (
        "PATTERN A a ; B b ; C c WHERE a.x > 1 AND b.x < c.x WITHIN 10",
        {},
        """\
        window: 10 units
        SEQ  b.x < c.x
        ├── SEQ
        │   ├── A a  a.x > 1
        │   └── B b
        └── C c""",
    ),
    "right-deep evaluates the predicate first": (
        "PATTERN A a ; B b ; C c WHERE b.x < c.x WITHIN 10 seconds",
        {"plan": "right-deep"},
        """\
        window: 10 seconds
        SEQ
        ├── A a
        └── SEQ  b.x < c.x
            ├── B b
            └── C c""",
    ),
    "bushy": (
        "PATTERN IBM ; Sun ; Oracle ; Google WHERE Oracle.p > Sun.p WITHIN 100 units",
        {"plan": "((IBM Sun) (Oracle Google))"},
        """\
        window: 100 units
        SEQ  Oracle.p > Sun.p
        ├── SEQ
        │   ├── IBM
        │   └── Sun
        └── SEQ
            ├── Oracle
            └── Google""",
    ),
    "a key is a hash join everywhere": (
        "PATTERN A a ; B b ; C c WHERE [user] WITHIN 2 hours",
        {},
        """\
        key: user
        window: 2 hours
        SEQ  hash(a.user = c.user)
        ├── SEQ  hash(a.user = b.user)
        │   ├── A a
        │   └── B b
        └── C c""",
    ),
    "negation without predicates goes down on the right": (
        "PATTERN A a ; !B b ; C c WITHIN 10",
        {},
        """\
        window: 10 units
        SEQ
        ├── A a
        └── NSEQ
            ├── !B b
            └── C c""",
    ),
    "negation that reads the left goes down there": (
        "PATTERN A a ; !B b ; C c WHERE b.x > a.x WITHIN 10",
        {},
        """\
        window: 10 units
        SEQ
        ├── NSEQ  b.x > a.x
        │   ├── A a
        │   └── !B b
        └── C c""",
    ),
    "negation that reads both stays above": (
        "PATTERN A a ; !B b ; C c WHERE b.x > a.x AND b.y < c.y WITHIN 10",
        {},
        """\
        window: 10 units
        NEG [a, c]  b.x > a.x, b.y < c.y
        ├── SEQ
        │   ├── A a
        │   └── C c
        └── !B b""",
    ),
    "negation on top by choice": (
        "PATTERN A a ; !B b ; C c ; D d WITHIN 10",
        {"negation": "top"},
        """\
        window: 10 units
        NEG [a, c]
        ├── SEQ
        │   ├── SEQ
        │   │   ├── A a
        │   │   └── C c
        │   └── D d
        └── !B b""",
    ),
    "closure as soon as its neighbors are there": (
        "PATTERN A a ; B+ b ; C c ; D d WHERE b.x > a.x AND sum(b.x) > 3 WITHIN 10",
        {},
        """\
        window: 10 units
        SEQ
        ├── KSEQ b+ [a, c]  b.x > a.x, sum(b.x) > 3
        │   ├── SEQ
        │   │   ├── A a
        │   │   └── C c
        │   └── B b
        └── D d""",
    ),
    "edges of the window on top": (
        "PATTERN B* b ; A a ; C c ; !D d WITHIN 5 EVENTS",
        {},
        """\
        window: 5 events
        NEG [c, …]
        ├── KSEQ b* […, a]
        │   ├── SEQ
        │   │   ├── A a
        │   │   └── C c
        │   └── B b
        └── !D d""",
    ),
    "disjunction is never materialized": (
        "PATTERN (A a | B b) ; C c WHERE a.x = c.x WITHIN 10",
        {},
        """\
        window: 10 units
        DISJ
        ├── SEQ  hash(a.x = c.x)
        │   ├── A a
        │   └── C c
        └── SEQ
            ├── B b
            └── C c""",
    ),
    "a run alone": (
        "PATTERN Fail{3} f WHERE [user] WITHIN 1 minute",
        {},
        """\
        key: user
        window: 1 minute
        KSEQ f{3}  hash(user)
        └── Fail f""",
    ),
    "having is checked last": (
        "PATTERN A a ; B? b ; C c HAVING b.x > 1 WITHIN 10",
        {},
        """\
        window: 10 units
        FILTER  first(b.x) > 1
        └── KSEQ b? [a, c]
            ├── SEQ
            │   ├── A a
            │   └── C c
            └── B b""",
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_plan(name: str) -> None:
    query, options, expected = PLANS[name]
    chosen = {"plan": "left-deep", "negation": "push", "propagation": "lazy", **options}
    as_written = tuple(rule.name for rule in cep.REWRITES)
    planned = cep.Query(query).explain(**chosen, without=as_written).planned
    assert plan_text(planned.plan) == dedent(expected)
    assert planned.forced


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("((a b) d)", "names `d`, which the pattern doesn't"),
        ("(a b)", "leaves out `c`"),
        ("((a c) b)", "in a sequence only neighbors can be joined: (a c) and (b)"),
        ("((a b) c", "lacks a closing parenthesis"),
        ("(a b) c)", "closes a parenthesis that it never opened"),
        ("((a b) (c a))", "names `a` twice"),
        ("bushy", "names `bushy`, which the pattern doesn't"),
    ],
)
def test_a_shape_that_does_not_fit(plan: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        cep.Query("PATTERN A a ; B b ; C c WITHIN 9").explain(plan=plan)
    assert message in str(caught.value)


def test_members_of_a_conjunction_stay_whole() -> None:
    query = cep.Query("PATTERN (A a ; B b) & C c WITHIN 9")
    with pytest.raises(PlanError, match="not made of whole members"):
        query.explain(plan="((a c) b)")
    assert "CONJ" in str(query.explain(plan="(c (a b))"))


def test_what_has_too_many_alternatives_for_trees_is_one_automaton() -> None:
    branches = " ; ".join(f"(A a{n} | B b{n} | C c{n})" for n in range(6))
    query = cep.Query(f"PATTERN {branches} WITHIN 9")
    assert query.explain().planned.winner.name == "automaton"
    with pytest.raises(PlanError, match="729 alternatives, and trees are made for at most 128"):
        query.explain(engine="tree")


def test_a_tree_is_over_variables_as_they_were_written() -> None:
    """Also over those of a branch that can't match, which is dropped, and of common prefixes."""
    query = cep.Query(
        "PATTERN A a ; ((B b ; C c) | (B d ; D e)) WHERE c.x > 5 AND c.x < 3 WITHIN 9"
    )
    drawn = plan_text(query.explain(plan="((a (b c)) (d e))").planned.plan)
    assert "D e" in drawn and "C c" not in drawn
    factored = cep.Query("PATTERN (A a ; B b) | (A c ; D d) WITHIN 9")
    assert "A c" not in plan_text(factored.explain().planned.plan)
    assert "A c" in plan_text(factored.explain(plan="((a b) (c d))").planned.plan)


def test_statistics_of_the_rewritten_query_are_known() -> None:
    query = cep.Query("PATTERN A a ; B b WHERE a.id = b.id AND a.id = 7 WITHIN 9")
    known = cep.Statistics({"a": 1.0, "b": 2.0}, {"b.id = 7": 0.5})
    assert query.explain(stats=known).planned.statistics == known
    with pytest.raises(PlanError, match="did you mean"):
        query.explain(stats=cep.Statistics({}, {"b.id = 8": 0.5}))
