"""Plans with figures by hand: of every node, inputs first, what was estimated and what happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import cepheid as cep
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.schemas import assumed
from cepheid.explain import Explanation
from cepheid.options import EngineChoice, Options
from cepheid.plan.nodes import Node, Plan, walk
from cepheid.plan.profile import NodeProfile, Profile, Replan
from cepheid.planner import make_plan
from cepheid.planner.choice import Choice
from cepheid.planner.planned import Candidate, Estimate, Planned
from cepheid.planner.search import search
from cepheid.rewrites import Applied
from cepheid.statistics import Statistics


def bound(query: str, time: str = "ts") -> BoundQuery:
    parsed = cep.Query(query)
    options = Options(time=time, type="type")
    return parsed.bind(assumed(parsed.syntax, options), options)


def plan_of(
    query: str,
    figures: Sequence[tuple[float, float]] = (),
    *,
    shape: str = "left-deep",
    losers: Sequence[tuple[str, float]] = (),
    statistics: Statistics | None = None,
    forced: bool = False,
    push: bool = True,
    plan: Plan | None = None,
) -> Planned:
    """The plan of a query, by default a tree. `figures` are rows and nanoseconds of each distinct
    node, inputs first; without them every node has 10 rows for 100 ns."""
    plan = plan or make_plan(bound(query), shape, push)
    nodes = distinct(plan.alternatives)
    pairs = figures or [(10.0, 100.0)] * len(nodes)
    estimates = {
        node: Estimate(rows, 2 * rows, cost)
        for node, (rows, cost) in zip(nodes, pairs, strict=True)
    }
    winner = Candidate(shape, (Choice(shape),), sum(cost for _, cost in pairs))
    others = tuple(Candidate(name, (Choice(name),), cost) for name, cost in losers)
    return Planned(plan, winner, estimates, others, statistics or Statistics(), forced)


def distinct(roots: Sequence[Node]) -> list[Node]:
    return list(dict.fromkeys(node for root in roots for node in walk(root)))


def profile_of(planned: Planned, figures: Sequence[tuple[int, float, int]], **run: int) -> Profile:
    """Rows, seconds and peak of each distinct node, inputs first; 1 second in all."""
    nodes = distinct(planned.plan.alternatives)
    actual = {node: NodeProfile(*f) for node, f in zip(nodes, figures, strict=True)}
    return Profile(seconds=1.0, nodes=actual, **run)


def explanation_of(query: str, shape: str = "left-deep", push: bool = True) -> Explanation:
    return Explanation(query, plan_of(query, shape=shape, push=push))


def searched(query: str, engine: EngineChoice = "auto") -> Explanation:
    """With the plan and the estimates that the search finds."""
    return Explanation(query, search(bound(query), Statistics(), engine=engine))


def sequence(classes: int) -> str:
    return f"PATTERN {' ; '.join(f'T{n} t{n}' for n in range(classes))} WITHIN 10"


def balanced(low: int, high: int) -> str:
    """A bushy tree over t{low} .. t{high - 1}."""
    if high - low == 1:
        return f"t{low}"
    middle = (low + high) // 2
    return f"({balanced(low, middle)} {balanced(middle, high)})"


DRAWN = {
    "one class": explanation_of("PATTERN A{2} a WITHIN 10"),
    "query 6": explanation_of(
        "PATTERN IBM; Sun; Oracle; Google WHERE Oracle.price > Sun.price AND "
        "Oracle.price > Google.price WITHIN 100 units",
        "(IBM ((Sun Oracle) Google))",
    ),
    "negation pushed": explanation_of("PATTERN A a ; !B b ; C c WHERE [id] WITHIN 3 hours"),
    "negation on top": explanation_of(
        "PATTERN A a ; !(B b ; D d) ; C c WHERE b.x + a.x < c.x WITHIN 10", push=False
    ),
    "closure": explanation_of(
        "PATTERN A a ; B+ b ; C c WHERE b.x > PREV(b.x) AND sum(b.x) > 9 AND b.y > 0 AND "
        "count(b) > 2 AND a.id = b.id WITHIN 10 HAVING duration() < 5"
    ),
    "conjunction": explanation_of("PATTERN A a & B b & C c WHERE a.x = b.x WITHIN 10"),
    "disjunction": explanation_of(
        "PATTERN (A a | B b) ; C c ; D d WHERE c.x < d.x WITHIN 10", "right-deep"
    ),
    "many alternatives": explanation_of(
        f"PATTERN ({' | '.join(f'T{n} t{n}' for n in range(30))}) ; Z z WITHIN 10"
    ),
    "12 classes left-deep": explanation_of(sequence(12)),
    "12 classes right-deep": explanation_of(sequence(12), "right-deep"),
    "12 classes bushy": explanation_of(sequence(12), balanced(0, 12)),
    "40 classes left-deep": explanation_of(sequence(40)),
    "40 classes right-deep": explanation_of(sequence(40), "right-deep"),
    "40 classes bushy": explanation_of(sequence(40), balanced(0, 40)),
    "stacks": searched("PATTERN A a ; B b ; C c WHERE [id] AND a.x < c.x WITHIN 10", "nfa"),
    "automaton": searched(
        "PATTERN A a -> B+ b -> C c WHERE b.x > PREV(b.x) AND c.y > a.y AND a.x > 3 AND [k] "
        "HAVING count(b) > 2 WITHIN 10"
    ),
    "automaton below a tree": searched("PATTERN A a ; B b -> C c ; D d WITHIN 10"),
    "automaton of many states": searched(
        f"PATTERN {' => '.join(f'Type{n}+ t{n} => Longer{n} l{n}' for n in range(8))} WITHIN 9"
    ),
    "automaton with long names": searched(
        f"PATTERN {'A' * 60} {'a' * 60} -> {'B' * 60} {'b' * 60} WITHIN 10"
    ),
    "long names": explanation_of(
        f"PATTERN {'A' * 60} {'a' * 60} ; B b WHERE {'a' * 60}.{'x' * 60} < b.y WITHIN 10"
    ),
}


def documented() -> Explanation:
    """What `docs/explain.md` shows: query 6 of the ZStream paper, where IBM is rare."""
    query = (
        "PATTERN IBM ; Sun ; Oracle ; Google\n"
        "WHERE Oracle.price > Sun.price AND Oracle.price > Google.price\n"
        "WITHIN 100 units"
    )
    planned = plan_of(
        query,
        # IBM, Sun, (IBM Sun), Oracle, ((IBM Sun) Oracle), Google, all
        [(0.3, 2), (33, 250), (5, 130), (33, 250), (28, 1_020), (33, 250), (155, 4_800)],
        losers=[("(IBM ((Sun Oracle) Google))", 52_000), ("right-deep", 190_000)],
        statistics=Statistics(
            {"IBM": 0.003, "Sun": 0.33, "Oracle": 0.33, "Google": 0.33},
            {"Oracle.price > Sun.price": 0.5, "Oracle.price > Google.price": 0.5},
        ),
    )
    profile = profile_of(
        planned,
        [
            (1_000, 0, 3),
            (99_800, 0, 52),
            (16_400, 0.031, 31),
            (99_400, 0, 55),
            (88_100, 0.190, 170),
            (99_800, 0, 51),
            (497_000, 0.610, 0),
        ],
        events=300_000,
        matches=497_000,
        rounds=74,
        idle=2,
    )
    replan = Replan(
        1,
        4_096,
        "right-deep",
        "left-deep",
        "the rate of IBM fell from 0.25 to 0.003",
        36.0,
        31.0,
    )
    applied = Applied("redundancy", "Sun.price < Oracle.price", "TRUE")
    return Explanation(
        query,
        planned,
        rewrites=(applied,),
        distribution=(
            ("partitioning", "slices of time, since no key connects all variables"),
            ("columns", "ts, name, price"),
        ),
        profile=replace(profile, replans=(replan,), sampling=0.011),
    )
