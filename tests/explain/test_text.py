"""Explanations as text: figures chosen by hand, every line of the text as it must be."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

from cepheid.explain import Explanation
from cepheid.plan.nodes import Equivalence, LeafNode, Stacks
from cepheid.plan.profile import NodeProfile, Replan
from cepheid.planner import automaton_plan
from cepheid.planner.choice import Choice
from cepheid.planner.planned import Candidate
from cepheid.rewrites import Applied
from cepheid.statistics import Statistics
from tests.explain.cases import bound, plan_of, profile_of, searched

QUERY = "PATTERN A a ; B b ; C c\nWHERE b.x < c.x\nWITHIN 10 units"
# a, b, c, (b c), (a (b c)): 4 µs in all, half of it at the top
FIGURES = [(10, 100), (20, 200), (1_500, 300), (12_500, 1_400), (2_000_000, 2_000)]


def test_a_plan_beside_its_estimates() -> None:
    planned = plan_of(
        QUERY,
        FIGURES,
        shape="right-deep",
        losers=[("left-deep", 12_800), ("lazy", 4_000)],
        statistics=Statistics({"a": 1, "b": 2.5}, {"b.x < c.x": 0.125}, {"a.x": 1_200}),
    )
    explanation = Explanation(
        QUERY,
        planned,
        rewrites=(Applied("fold-constants", "b.x < c.x + 0", "b.x < c.x"),),
        warnings=("a and b are never simultaneous",),
        distribution=(("partitioning", "slices of time"), ("columns", "ts, type, x")),
    )
    assert str(explanation) == dedent("""\
        PATTERN A a ; B b ; C c
        WHERE b.x < c.x
        WITHIN 10 units

        warnings
          a and b are never simultaneous

        rewrites
          fold-constants: b.x < c.x + 0 → b.x < c.x

        plan: right-deep, the cheapest; estimated cost 4.0 µs per window
        window: 10 units
        propagation: lazy, only in rounds in which a match can end
                            ──── per window ────
                             rows    cost  share
        SEQ                 2.0 M  2.0 µs   50 %
        ├── A a                10  100 ns    2 %
        └── SEQ  b.x < c.x   12 k  1.4 µs   35 %
            ├── B b            20  200 ns    5 %
            └── C c         1.5 k  300 ns    8 %

        other plans
          ×1.0  lazy
          ×3.2  left-deep

        statistics
          rates          a: 1, b: 2.5
          selectivities  b.x < c.x: 0.12
          distinct       a.x: 1.2 k
          assumed        the rate of c

        on Spark
          partitioning  slices of time
          columns       ts, type, x""")


def test_a_run_beside_the_estimates() -> None:
    planned = plan_of(QUERY, FIGURES, shape="right-deep")
    profile = profile_of(
        planned,
        [(90, 0, 9), (80, 0.001, 8), (70, 0, 7), (123_456, 0.25, 1_000), (1_234, 0.5, 0)],
        events=1_000_000,
        rejected=3,
        matches=1_234,
        rounds=250,
        idle=40,
        partitions=4,
    )
    replans = (
        Replan(12, 1_700, "left-deep", "right-deep", "the rate of a rose from 1 to 9", 3.25, 2.75),
        Replan(20, 2_900, "right-deep", "(a b) c", "b.x < c.x fell to 0.1", 1.1, None, False),
        Replan(31, 3_100, "right-deep", "(a b) c", "b.x < c.x fell to 0.01", 8.0, None),
    )
    former = {LeafNode("former"): NodeProfile(5, 0.125, 5)}
    profile = replace(profile, replans=replans, sampling=0.01, nodes={**profile.nodes, **former})
    assert str(Explanation(QUERY, planned, profile=profile)) == dedent("""\
        PATTERN A a ; B b ; C c
        WHERE b.x < c.x
        WITHIN 10 units

        plan: right-deep, the only one; estimated cost 4.0 µs per window
        window: 10 units
        propagation: lazy, only in rounds in which a match can end
                            ──── per window ────  ─────── in this run ───────
                             rows    cost  share   rows    time  share   peak
        SEQ                 2.0 M  2.0 µs   50 %  1,234  500 ms   50 %      0
        ├── A a                10  100 ns    2 %     90       –      –      9
        └── SEQ  b.x < c.x   12 k  1.4 µs   35 %  123 k  250 ms   25 %  1,000
            ├── B b            20  200 ns    5 %     80  1.0 ms   <1 %      8
            └── C c         1.5 k  300 ns    8 %     70       –      –      7

        statistics
          assumed  everything: there are no statistics, so defaults are used

        run
          events       1.0 M, 3 rejected
          matches      1,234
          rounds       250, 40 of them idle
          engine time  1.0 s
          statistics   10 ms, 1 % of it
          partitions   4
          other plans  125 ms in 1 operator that this plan lacks

        replans
          round 12, at 1,700: left-deep → right-deep: predicted gain ×3.2, observed ×2.8; \
the rate of a rose from 1 to 9
          round 20, at 2,900: right-deep stays; (a b) c: predicted gain ×1.1; b.x < c.x fell to 0.1
          round 31, at 3,100: right-deep → (a b) c: predicted gain ×8.0, observed not yet known; \
b.x < c.x fell to 0.01""")


def test_a_forced_plan_says_what_it_costs() -> None:
    planned = plan_of(QUERY, FIGURES, losers=[("bushy", 1_000), ("right-deep", 400)], forced=True)
    text = str(Explanation(QUERY, planned))
    assert (
        "plan: left-deep, forced, ×10 the cost of right-deep; estimated cost 4.0 µs per window\n"
    ) in text
    assert "other plans\n  ×0.10  right-deep\n  ×0.25  bushy\n" in text


def test_a_forced_plan_that_is_the_best_anyway() -> None:
    planned = plan_of(QUERY, FIGURES, losers=[("right-deep", 8_000)], forced=True)
    text = str(Explanation(QUERY, planned))
    assert "plan: left-deep, forced; estimated cost 4.0 µs per window\n" in text


def test_alternatives_stand_under_disj_and_what_they_share_is_marked() -> None:
    query = "PATTERN (A a | B b) ; C c ; D d WHERE c.x < d.x WITHIN 10"
    # a, c, d, (c d), (a (c d)), b, (b (c d)); the shared ones count once: 1 µs in all
    figures = [(1, 100), (2, 100), (3, 100), (4, 400), (5, 100), (6, 100), (7, 100)]
    text = str(Explanation(query, plan_of(query, figures, shape="right-deep")))
    assert (
        dedent("""\
        estimated cost 1.0 µs per window
        window: 10 units
        propagation: lazy, only in rounds in which a match can end
                                              ──── per window ───
                                              rows    cost  share
        DISJ
        ├── SEQ                                  5  100 ns   10 %
        │   ├── A a                              1  100 ns   10 %
        │   └── SEQ (shared by 2)  c.x < d.x     4  400 ns   40 %
        │       ├── C c                          2  100 ns   10 %
        │       └── D d                          3  100 ns   10 %
        └── SEQ                                  7  100 ns   10 %
            ├── B b                              6  100 ns   10 %
            └── SEQ (shared by 2)  c.x < d.x     4  400 ns   40 %
                ├── C c                          2  100 ns   10 %
                └── D d                          3  100 ns   10 %
        """)
        in text
    )


def test_many_conditions_take_several_lines() -> None:
    conditions = [f"a.first_attribute < b.attribute_{n}" for n in range(3)]
    query = f"PATTERN A a ; B b WHERE {' AND '.join(conditions)} WITHIN 10"
    text = str(Explanation(query, plan_of(query)))
    assert (
        dedent("""\
        SEQ  a.first_attribute < b.attribute_0,    10  100 ns   33 %
        │    a.first_attribute < b.attribute_1,
        │    a.first_attribute < b.attribute_2
        ├── A a                                    10  100 ns   33 %
        """)
        in text
    )


def test_a_long_rewrite_takes_several_lines() -> None:
    rule = Applied("factor", "PATTERN A a | B b\nWITHIN 10", "PATTERN B b | A a\nWITHIN 10")
    text = str(Explanation(QUERY, plan_of(QUERY), rewrites=(rule,)))
    assert (
        dedent("""\
        rewrites
          factor:
              PATTERN A a | B b
              WITHIN 10
            → PATTERN B b | A a
              WITHIN 10
        """)
        in text
    )


def test_how_results_move() -> None:
    planned = plan_of(QUERY, FIGURES)
    pulled = Candidate("left-deep", (Choice("left-deep", propagation="pull"),), 4_000)
    text = str(Explanation(QUERY, replace(planned, winner=pulled)))
    assert "propagation: pull, left inputs only as needed\n" in text


def test_times_are_times_on_a_clock_of_timestamps() -> None:
    query = "PATTERN A a ; B b WITHIN 10 seconds"
    planned = plan_of(query)
    replan = Replan(1, 1_700_000_000_250_000, "left-deep", "right-deep", "why", 2.0)
    profile = replace(profile_of(planned, [(0, 0, 0)] * 3), replans=(replan,))
    text = str(Explanation(query, planned, profile=profile))
    assert "round 1, at 2023-11-14 22:13:20.250: " in text


def test_estimates_without_bounds_can_be_read() -> None:
    inf, nan = float("inf"), float("nan")
    planned = plan_of(QUERY, [(inf, inf), (nan, nan), (0, 0), (0, 0), (0, 0)])
    text = str(Explanation(QUERY, planned))
    assert "∞" in text and "?" in text and "nan" not in text


def test_an_automaton_shows_its_states_and_edges() -> None:
    query = (
        "PATTERN A a -> B+ b PREFIXES -> !N n => C c ; D d\n"
        "WHERE b.x > PREV(b.x) AND n.x > a.x AND c.y > a.y AND a.x > 3\n"
        "HAVING count(b) > 2\n"
        "WITHIN 10 units"
    )
    planned = plan_of(query, shape="automaton", plan=automaton_plan(bound(query)))
    planned = replace(planned, winner=replace(planned.winner, choices=()))
    assert str(Explanation(query, planned)) == (
        f"{query}\n\n"
        + dedent("""\
        plan: automaton, the only one; estimated cost 700 ns per window
        window: 10 units
                                                              ──── per window ───
                                                              rows    cost  share
        AUTOMATON  A a -> B+ b PREFIXES -> !N n => C c ; D d    10  100 ns   14 %
        │ start: forward any A a
        │ a: filter others; forward the first B b
        │ b: rebind every B b or stop at any, b.x > PREV(b.x); forward the
        │   next event if C c, c.y > a.y, no N n between with n.x > a.x
        │ c: filter all; forward any D d
        │ d: match if HAVING count(b) > 2
        ├── A a  a.x > 3                                        10  100 ns   14 %
        ├── B b                                                 10  100 ns   14 %
        ├── !N n                                                10  100 ns   14 %
        ├── C c                                                 10  100 ns   14 %
        ├── D d                                                 10  100 ns   14 %
        └── every event                                         10  100 ns   14 %

        statistics
          assumed  everything: there are no statistics, so defaults are used""")
    )


@pytest.mark.parametrize("strategy", Equivalence)
def test_stacks_show_what_they_are_parted_by(strategy: Equivalence) -> None:
    query = "PATTERN A a ; B b WHERE [id] AND a.u = b.v AND a.x < b.x\nWITHIN 10 units"
    planned = searched(query, "nfa").planned
    (stacks,) = planned.plan.alternatives
    assert isinstance(stacks, Stacks)
    plan = replace(planned.plan, alternatives=(replace(stacks, strategy=strategy),))
    lines = str(Explanation(query, plan_of(query, shape="stacks", plan=plan))).splitlines()
    tree = [line.partition("    ")[0] for line in lines if line.startswith(("STACKS", "├", "└"))]
    assert tree == [f"STACKS [id] [a.u = b.v] {strategy.value}  a.x < b.x", "├── A a", "└── B b"]
