"""Passes over the events on Spark: what is joined and split, against all ways to do it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.rules.placement.places import (
    EVERY,
    MOST_NODES,
    READ,
    SHUFFLED,
    WORTH,
    Ground,
    Load,
    Piece,
    place,
    time_of,
)

SHIPPED = READ + SHUFFLED
DAY = 24 * 60


def piece(cost: float, *kinds: str, nodes: int = 10) -> Piece:
    return Piece(1, cost, nodes, frozenset(kinds or (EVERY,)))


def load(key: str | None, *costs: float, reach: int = 60) -> Load:
    return Load(key, reach, False, tuple(map(piece, costs)))


# ── split ──


def test_a_key_spreads_the_rows_so_the_rules_stay_together() -> None:
    (one,) = place([load("card", 100, 100)], Ground(cores=4, partitions=4))
    assert one.parts == (((0, 0), (0, 1)),)
    assert one.loads == (SHIPPED + 200,)


def test_slices_of_time_spread_the_rows_too() -> None:
    (one,) = place([load(None, 100, 100)], Ground(4, 4, length=DAY))
    assert (one.lanes, len(one.parts)) == (4, 1)
    # Three slices of four begin with the 60 minutes before them, of 1,440.
    assert one.total == pytest.approx((SHIPPED + 200) * (1 + 3 * 60 / DAY))


def test_where_time_is_too_short_for_slices_heavy_rules_are_split() -> None:
    (one,) = place([load(None, 100, 60, 40)], Ground(2, 2, length=90))
    assert one.lanes == 1
    assert one.parts == (((0, 0),), ((0, 1), (0, 2)))
    assert one.loads == (SHIPPED + 100, SHIPPED + 100)


def test_light_rules_are_not_split_since_rows_would_be_shipped_again() -> None:
    (one,) = place([load(None, 1, 1)], Ground(2, 2, length=90))
    assert one.loads == (SHIPPED + 2,)
    (split,) = place([load(None, 1, 1)], Ground(2, 2, length=90), "split")
    # That would be done hardly sooner, and take the other core, too.
    assert split.loads == (SHIPPED + 1, SHIPPED + 1)


def test_what_reads_the_same_rows_goes_to_the_same_part() -> None:
    pieces = (piece(30, "a"), piece(29, "b"), piece(28, "a"), piece(27, "b"))
    (one,) = place([Load(None, 60, False, pieces)], Ground(2, 2, length=60))
    assert one.parts == (((0, 0), (0, 2)), ((0, 1), (0, 3)))
    assert one.loads == (SHIPPED / 2 + 58, SHIPPED / 2 + 56)


def test_more_than_a_task_can_hold_is_split_even_with_a_key() -> None:
    heavy = Load("card", 60, False, tuple(piece(1, nodes=MOST_NODES // 2) for _ in range(5)))
    (one,) = place([heavy], Ground(2, 8))
    assert len(one.parts) == 3
    assert max(map(len, one.parts)) == 2


# ── join ──


def test_a_key_of_its_own_is_not_worth_a_shuffle_beside_slices() -> None:
    loads = [load("card", 5), load(None, 50)]
    (one,) = place(loads, Ground(2, 2, length=30 * DAY))
    assert (one.groups, one.key) == ((0, 1), None)
    assert one.total == pytest.approx((SHIPPED + 55) * (1 + 60 / (30 * DAY)))


def test_a_key_is_worth_it_where_slices_are_too_few() -> None:
    loads = [load("card", 200), load(None, 50)]
    keyed, other = place(loads, Ground(4, 4, length=60))
    assert (keyed.groups, other.groups) == ((0,), (1,))


def test_long_windows_stay_out_of_short_slices() -> None:
    # Joined, all rows would be in almost two slices, also for the heavy rules without a key.
    loads = [load("card", 5, reach=15 * DAY), load(None, 500, reach=60)]
    assert len(place(loads, Ground(2, 2, length=30 * DAY))) == 2


def test_without_rules_there_is_no_pass() -> None:
    for placement in ("auto", "keys", "one", "split"):
        assert place([], Ground(2, 2), placement) == ()


# ── forced ──

TWO = [load("card", 1, 1), load(None, 500, 500)]


def test_a_pass_for_each_key_can_be_forced() -> None:
    assert [(p.groups, len(p.parts)) for p in place(TWO, Ground(2, 2, DAY), "keys")] == [
        ((0,), 1),
        ((1,), 1),
    ]


def test_one_pass_can_be_forced() -> None:
    (one,) = place(TWO, Ground(2, 2, 60), "one")
    assert (one.groups, one.key, len(one.parts)) == ((0, 1), None, 1)


def test_one_pass_keeps_the_key_that_all_have() -> None:
    (one,) = place(TWO[:1], Ground(2, 2, 60), "one")
    assert one.key == "card"


def test_a_split_can_be_forced() -> None:
    assert [(p.groups, len(p.parts)) for p in place(TWO, Ground(2, 2, DAY), "split")] == [
        ((0,), 2),
        ((1,), 2),
    ]


# ── against all others ──


def exhaustive(loads: list[Load], ground: Ground) -> Iterator[float]:
    """The time of every way to join keys to what has none, and to divide each pass."""
    wide = [n for n, one in enumerate(loads) if one.key is None]
    keyed = [n for n, one in enumerate(loads) if one.key is not None]
    for joins in product((False, True), repeat=len(keyed) if wide else 0):
        joined = [n for n, join in zip(keyed, joins, strict=False) if join]
        passes = [[n] for n in keyed if n not in joined]
        passes += [[*joined, *wide]] if wide else []
        ways = [list(divisions(groups, loads, ground)) for groups in passes]
        for chosen in product(*ways):
            total = sum(sum(parts) for parts, _ in chosen)
            longest = max(max(parts) / lanes for parts, lanes in chosen)
            yield max(total / ground.cores, longest)


def divisions(
    groups: list[int], loads: list[Load], ground: Ground
) -> Iterator[tuple[list[float], int]]:
    """Every way to put the pieces into parts: the loads of these, and the tasks of each."""
    pieces = [p for n in groups for p in loads[n].pieces]
    known = {k for one in loads for p in one.pieces for k in p.kinds if k != EVERY}
    lanes, copies = ground.partitions, 1.0
    if len(groups) > 1 or loads[groups[0]].key is None:
        assert ground.length is not None
        reach = max(loads[n].reach for n in groups)
        lanes = max(1, min(ground.partitions, ground.length // reach))
        copies = 1 + min(1, (lanes - 1) * reach / ground.length)
    for chosen in product(range(ground.cores), repeat=len(pieces)):
        parts = []
        for part in set(chosen):
            own = [p for p, n in zip(pieces, chosen, strict=True) if n == part]
            kinds = {k for p in own for k in p.kinds}
            rows = 1.0 if EVERY in kinds else len(kinds) / max(1, len(known))
            parts.append(copies * (SHIPPED * rows + sum(p.cost for p in own)))
        yield parts, lanes


PIECES = st.builds(
    piece,
    st.integers(1, 120).map(float),
    st.sampled_from([EVERY, "a", "b"]),
)


@st.composite
def grounds(draw: st.DrawFn) -> tuple[list[Load], Ground]:
    keys = draw(st.sampled_from([["card"], [None], ["card", None], ["card", "shop", None]]))
    loads = [
        Load(
            key,
            draw(st.integers(1, 90)),
            False,
            tuple(draw(st.lists(PIECES, min_size=1, max_size=4 if len(keys) < 3 else 2))),
        )
        for key in keys
    ]
    return loads, Ground(
        draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(90, 400))
    )


@given(grounds())
def test_the_greedy_choice_is_within_its_bound(given_: tuple[list[Load], Ground]) -> None:
    """Of a part that ends last, the last piece went where the load was least, so at most to the
    mean of all: the work, which is no more than the best time, and each row shipped once a part.
    The piece itself, with its rows, takes no longer than the best time, either."""
    loads, ground = given_
    best = min(exhaustive(loads, ground))
    found = time_of(place(loads, ground), ground.cores)
    assert best - 1e-9 <= found <= (2 * best + 2 * SHIPPED) / WORTH


@given(st.lists(st.integers(1, 120).map(float), min_size=1, max_size=5), st.integers(1, 400))
def test_one_load_and_two_cores_are_within_a_sixth(costs: list[float], length: int) -> None:
    """Graham's bound for the longest first, 4/3 - 1/3m; what is shipped doesn't depend on it. And
    what brings little is left."""
    ground = Ground(2, 1, length)
    found = time_of(place([load(None, *costs)], ground), 2)
    assert found <= 7 / 6 * min(exhaustive([load(None, *costs)], ground)) / WORTH + 1e-9
