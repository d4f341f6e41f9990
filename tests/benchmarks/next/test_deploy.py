"""Work on nodes: nothing is lost, nothing equal occurs twice, and the sums are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import reduce
from random import Random

import pytest

from benchmarks.next.deploy import (
    Deployment,
    Feed,
    Item,
    Policy,
    cheapest,
    deploy,
    empty,
)
from benchmarks.next.items import item_of
from benchmarks.next.operators import Next, Source, Union
from benchmarks.next.rates import cpu, figures
from cepheid.errors import PlanError

pytestmark = pytest.mark.slow

SEEDS = range(30)


def drawn(random: Random, depth: int) -> Item:
    """Of few keys, so that parts repeat; the same key is the same work."""
    if depth == 0 or random.random() < 0.2:
        key = random.choice("abcdef")
        inputs: tuple[Feed | Item, ...] = (Feed(float(ord(key) - 90)),)
        return Item(key, 3.0 * ord(key) - 200, 2.0 + ord(key) % 7, inputs)
    one, other = drawn(random, depth - 1), drawn(random, depth - 1)
    return Item((one.key, other.key), one.rate * other.rate + 1, one.rate + 1, (one, other))


def parts(item: Item) -> Iterator[Item]:
    yield item
    for below in item.inputs:
        if isinstance(below, Item):
            yield from parts(below)


def queries(seed: int) -> tuple[int, list[Item]]:
    random = Random(seed)
    return random.randint(1, 9), [drawn(random, random.randint(1, 3)) for _ in range(12)]


def deployed(seed: int, policy: Policy, reuse: bool) -> tuple[list[Item], Deployment]:
    nodes, items = queries(seed)
    return items, reduce(lambda d, q: deploy(d, q, policy, reuse), items, empty(nodes))


EVERY_WAY = [(policy, reuse) for policy in Policy for reuse in (False, True)]


@pytest.mark.parametrize(("policy", "reuse"), EVERY_WAY)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_operator_is_lost(seed: int, policy: Policy, reuse: bool) -> None:
    items, found = deployed(seed, policy, reuse)
    wanted = Counter(p.key for q in items for p in parts(q))
    there = Counter(p.item.key for p in found.placed)
    assert there == (Counter(set(wanted)) if reuse else wanted)
    assert [found.placed[q].item.key for q in found.queries] == [q.key for q in items]


@pytest.mark.parametrize(("policy", "reuse"), EVERY_WAY)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_input_is_read_from_where_it_is_made(seed: int, policy: Policy, reuse: bool) -> None:
    _, found = deployed(seed, policy, reuse)
    for place, own in enumerate(found.placed):
        below = [i for i in own.item.inputs if isinstance(i, Item)]
        assert [found.placed[s].item.key for s in own.sources] == [i.key for i in below]
        assert all(s < place for s in own.sources)
        through = {own.node}.union(*(found.placed[s].through for s in own.sources))
        assert own.through == through


@pytest.mark.parametrize(("policy", "reuse"), EVERY_WAY)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_load_is_what_a_node_processes_and_receives(
    seed: int, policy: Policy, reuse: bool
) -> None:
    _, found = deployed(seed, policy, reuse)
    crossed = 0.0
    for node, load in enumerate(found.loads):
        total = 0.0
        for own in found.carried(node):
            total += own.item.cost + sum(i.rate for i in own.item.inputs if isinstance(i, Feed))
            crossed += sum(i.rate for i in own.item.inputs if isinstance(i, Feed))
            for source in own.sources:
                other = found.placed[source]
                if other.node != node:
                    total += other.item.rate
                    crossed += other.item.rate
        assert load == pytest.approx(total)
    assert found.received() == pytest.approx(crossed)


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_greedy_takes_the_node_that_has_least_afterwards(seed: int, reuse: bool) -> None:
    """Each placement against all nodes, with loads and what is received counted anew."""
    nodes, items = queries(seed)
    found = reduce(lambda d, q: deploy(d, q, Policy.GREEDY, reuse), items, empty(nodes))
    loads = [0.0] * nodes
    for own in found.placed:
        outside = sum(i.rate for i in own.item.inputs if isinstance(i, Feed))
        after = []
        for node in range(nodes):
            other = [found.placed[s] for s in own.sources if found.placed[s].node != node]
            after.append(loads[node] + own.item.cost + outside + sum(o.item.rate for o in other))
        assert after[own.node] == pytest.approx(min(after))
        loads[own.node] = after[own.node]


def test_greedy_sends_less_and_balances_better_than_round_robin() -> None:
    """Over all cases, not in each: an item may go to a free node that has none of its inputs, and
    what is saved now may be missing later. Then it is little."""
    greedy, robin = (
        [deployed(seed, policy, reuse=False)[1] for seed in SEEDS]
        for policy in (Policy.GREEDY, Policy.ROUND_ROBIN)
    )
    for measure in (Deployment.received, lambda end: max(end.loads)):
        pairs = [(measure(one), measure(other)) for one, other in zip(greedy, robin, strict=True)]
        assert sum(one for one, _ in pairs) < 0.97 * sum(other for _, other in pairs)
        assert all(one < 1.1 * other for one, other in pairs)


@pytest.mark.parametrize("seed", SEEDS)
def test_round_robin_gives_every_node_its_turn(seed: int) -> None:
    _, found = deployed(seed, Policy.ROUND_ROBIN, reuse=False)
    nodes = len(found.loads)
    assert [p.node for p in found.placed] == [n % nodes for n in range(len(found.placed))]


def test_reuse_finds_the_largest_part_first() -> None:
    """(a ; b) ; c is there: of ((a ; b) ; c) ; d only the topmost next is new, and of b ; c, which
    is no part of it, all."""
    a, b, c, d = (Source(n) for n in "abcd")
    rates = {"a": 1.0, "b": 10.0, "c": 10.0, "d": 10.0}
    one = deploy(empty(3), item_of(Next(Next(a, b), c), rates))
    two = deploy(one, item_of(Next(Next(Next(a, b), c), d), rates))
    assert [p.item.key for p in two.placed[len(one.placed) :]] == [Next(Next(Next(a, b), c), d)]
    assert two.placed[-1].sources == (1,)
    three = deploy(two, item_of(Next(b, c), rates))
    assert [p.item.key for p in three.placed[len(two.placed) :]] == [Next(b, c)]
    again = deploy(three, item_of(Next(Next(a, b), c), rates))
    assert (again.loads, again.placed) == (three.loads, three.placed)
    assert again.queries == (1, 2, 3, 1)


def test_parts_are_shared_within_a_query_too() -> None:
    a, b = Source("a"), Source("b")
    query = item_of(Next(Union(a, b), Union(b, a)), {"a": 1.0, "b": 1.0})
    assert len(deploy(empty(1), query).placed) == 2
    assert len(deploy(empty(1), query, reuse=False).placed) == 3


def test_a_deployment_doesnt_change() -> None:
    a, b = Source("a"), Source("b")
    before = empty(2)
    after = deploy(before, item_of(Next(a, b), {"a": 1.0, "b": 1.0}))
    assert before == empty(2)
    assert after != before


@pytest.mark.parametrize(
    ("loads", "inputs", "node"),
    [
        ([5.0, 3.0, 4.0], [], 1),
        ([5.0, 3.0, 4.0], [(0, 1.0)], 1),
        ([5.0, 3.0, 4.0], [(0, 2.5)], 0),
        ([5.0, 3.0, 4.0], [(0, 1.5), (0, 1.5)], 0),
        ([5.0, 3.0, 4.0], [(0, 2.5), (2, 2.0)], 2),
        ([3.0, 3.0], [], 0),
    ],
)
def test_what_isnt_received_counts_for_a_node(
    loads: list[float], inputs: list[tuple[int, float]], node: int
) -> None:
    assert cheapest(loads, inputs) == node


def test_operators_become_items() -> None:
    a, b, c = (Source(n) for n in "abc")
    rates = {"a": 8.0, "b": 2.0, "c": 4.0}
    item = item_of(Next(Union(c, b), a), rates)
    assert item.key == Next(Union(b, c), a)
    assert (item.cost, item.rate) == (cpu(Next(Union(b, c), a), rates), 6.0)
    assert item.inputs[1] == Feed(8.0)
    (below, _) = item.inputs
    assert isinstance(below, Item)
    assert (below.cost, below.rate) == (6.0, figures(Union(b, c), rates).rate)
    assert below.inputs == (Feed(2.0), Feed(4.0))


def test_nothing_to_place_or_nowhere_is_refused() -> None:
    with pytest.raises(PlanError, match="a source alone has no operator to place"):
        item_of(Source("a"), {"a": 1.0})
    with pytest.raises(PlanError, match="give at least 1"):
        empty(0)
