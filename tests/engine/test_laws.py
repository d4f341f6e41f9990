"""Laws of the language that relate queries to each other, for the engine and for the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid.algebra import bind
from cepheid.algebra.types import Schema, Type
from cepheid.language import parse
from tests.engine import harness
from tests.examples import examples
from tests.oracle import Event, Match
from tests.oracle import matches as oracle

SCHEMA = Schema(
    {"ts": Type.INTEGER, "type": Type.STRING, "x": Type.INTEGER, "id": Type.INTEGER},
    time="ts",
    type="type",
)
VALUE = st.one_of(st.none(), st.integers(0, 2))
ROW = st.tuples(st.sampled_from("ABCD"), st.integers(0, 2), VALUE, st.integers(1, 2))
CUTS = st.lists(st.sampled_from((1, 2, 3, 5, 100)), min_size=1, max_size=2)

Runner = Callable[[str], list[Match]]
Found = Counter[tuple[Any, ...]]


@st.composite
def streams(draw: st.DrawFn) -> tuple[Event, ...]:
    time = 0
    events = []
    least = draw(st.sampled_from((8, 0, 12)))
    for n, (kind, step, x, key) in enumerate(draw(st.lists(ROW, min_size=least, max_size=13))):
        time += step
        events.append(Event(n, time, {"type": kind, "ts": time, "x": x, "id": key}))
    return tuple(events)


def by_oracle(events: Sequence[Event], cuts: Sequence[int]) -> Runner:
    return lambda text: oracle(bind(parse(text), SCHEMA), events)


def by_engine(events: Sequence[Event], cuts: Sequence[int]) -> Runner:
    setup = harness.Setup(engine="automaton", cuts=tuple(cuts), round_size=cuts[0])
    return lambda text: harness.run(bind(parse(text), SCHEMA), events, setup)


both = pytest.mark.parametrize("runner", [by_oracle, by_engine], ids=["oracle", "engine"])


def found(matches: Sequence[Match]) -> Found:
    return Counter(
        (tuple(sorted((v, b) for v, b in m.bindings.items() if b is not None)), m.start, m.end)
        for m in matches
    )


def law(test: Callable[[Runner], None]) -> Any:
    """Holds for the engine and the oracle, on random streams."""

    @both
    @settings(max_examples=examples("laws"))
    @given(events=streams(), cuts=CUTS)
    def run(runner: Any, events: tuple[Event, ...], cuts: list[int]) -> None:
        test(runner(events, cuts))

    run.__name__ = run.__qualname__ = test.__name__
    run.__doc__ = test.__doc__
    return run


# ── next ─────────────────────────────────────────────────────────────────────

NESTED = (
    "A a -> B b -> C c -> A d",
    "A a -> B b -> (C c -> A d)",
    "A a -> (B b -> C c) -> A d",
    "A a -> (B b -> C c -> A d)",
    "A a -> (B b -> (C c -> A d))",
)


@law
def test_next_is_associative_without_predicates(run: Runner) -> None:
    flat = found(run(f"PATTERN {NESTED[0]}"))
    assert all(found(run(f"PATTERN {nested}")) == flat for nested in NESTED[1:])


@law
def test_next_is_associative_over_one_type(run: Runner) -> None:
    flat = found(run("PATTERN A a -> A b -> A c"))
    assert found(run("PATTERN A a -> (A b -> A c)")) == flat


@law
def test_next_is_associative_inside_a_key(run: Runner) -> None:
    flat = found(run("PATTERN A a -> B b -> C c WHERE [id]"))
    assert found(run("PATTERN A a -> (B b -> C c) WHERE [id]")) == flat


@law
def test_strict_is_next_is_any(run: Runner) -> None:
    rest = "WHERE a.x <= b.x WITHIN 5"
    strict, first, every = (
        found(run(f"PATTERN A a {operator} B b {rest}")) for operator in ("=>", "->", ";")
    )
    assert strict <= first <= every


@law
def test_using_says_what_a_sequence_means(run: Runner) -> None:
    for name, operator in (("SKIP TILL NEXT MATCH", "->"), ("STRICT CONTIGUITY", "=>")):
        plain = found(run(f"PATTERN A a ; B b ; C c WITHIN 8 USING {name}"))
        written = f"PATTERN A a {operator} B b {operator} C c WITHIN 8"
        assert plain == found(run(written))


@law
def test_next_to_either_is_the_first_of_them(run: Runner) -> None:
    """Each match of the disjunction is the first of its own branch, too."""
    either = found(run("PATTERN A a -> (B b | C c) WITHIN 8"))
    branches = found(run("PATTERN A a -> B b WITHIN 8")) + found(run("PATTERN A a -> C c WITHIN 8"))
    assert either <= branches
    starts = {binding[0] for binding, _, _ in branches}
    assert {binding[0] for binding, _, _ in either} == starts


# ── closures ─────────────────────────────────────────────────────────────────


@law
def test_maximal_groups_are_prefixes_are_runs_are_subsets(run: Runner) -> None:
    maximal, prefixes, runs, subsets = (
        found(run(f"PATTERN A a ; B+ b {mode} ; C c WITHIN 8"))
        for mode in ("", "PREFIXES", "RUNS", "SUBSETS")
    )
    assert maximal <= prefixes <= runs <= subsets


@law
def test_a_run_of_n_is_a_run(run: Runner) -> None:
    pairs = found(run("PATTERN A a ; B{2} b ; C c WITHIN 8"))
    assert pairs == found(run("PATTERN A a ; B{2,2} b RUNS ; C c WITHIN 8"))


@law
def test_one_of_a_group_is_the_event(run: Runner) -> None:
    single = found(run("PATTERN A a -> B b ; C c WITHIN 8"))
    grouped = Counter(
        {
            (tuple((v, x[0] if v == "b" else x) for v, x in bindings), start, end): count
            for (bindings, start, end), count in found(
                run("PATTERN A a -> B{1} b ; C c WITHIN 8")
            ).items()
        }
    )
    assert grouped == single


@law
def test_everything_between_strict_neighbors_is_the_group(run: Runner) -> None:
    """`=>` on both sides leaves no position between them without an element."""
    strict = found(run("PATTERN A a => B+ b => C c WITHIN 8"))
    assert strict <= found(run("PATTERN A a ; B+ b STRICT ; C c WITHIN 8"))


# ── negation, exception, delay ───────────────────────────────────────────────


@law
def test_an_exception_also_looks_at_the_ends(run: Runner) -> None:
    inclusive = found(run("PATTERN (A a ; B b) \\ C c WITHIN 8"))
    between = found(run("PATTERN A a ; !C c ; B b WITHIN 8"))
    assert inclusive <= between <= found(run("PATTERN A a ; B b WITHIN 8"))


@law
def test_a_negation_never_makes_next_look_further(run: Runner) -> None:
    checked = found(run("PATTERN A a ; !C c -> B b WITHIN 8"))
    assert checked <= found(run("PATTERN A a -> B b WITHIN 8"))


@law
def test_a_delay_moves_the_end(run: Runner) -> None:
    plain = found(run("PATTERN A a -> B b WITHIN 8"))
    moved = Counter({(b, start, end + 3): n for (b, start, end), n in plain.items()})
    assert found(run("PATTERN (A a -> B b) @ 3 WITHIN 11")) == moved
    assert found(run("PATTERN (A a -> B b) @ 0 WITHIN 8")) == plain


# ── HAVING and AFTER MATCH ───────────────────────────────────────────────────


@law
def test_having_only_removes(run: Runner) -> None:
    kept = found(run("PATTERN A a -> B b HAVING a.x < b.x WITHIN 8"))
    assert kept <= found(run("PATTERN A a -> B b WITHIN 8"))


@law
def test_having_is_where_without_choices(run: Runner) -> None:
    where = found(run("PATTERN A a ; B b ; C c WHERE a.x < b.x AND b.x <> c.x WITHIN 8"))
    having = "PATTERN A a ; B b ; C c HAVING a.x < b.x AND b.x <> c.x WITHIN 8"
    assert where == found(run(having))


ALL = "PATTERN A a ; B+ b PREFIXES -> C c WITHIN 8"


@law
def test_no_skip_keeps_all(run: Runner) -> None:
    assert found(run(f"{ALL} AFTER MATCH NO SKIP")) == found(run(ALL))


@law
def test_to_next_event_keeps_one_for_each_first_event(run: Runner) -> None:
    every = run(ALL)
    kept = run(f"{ALL} AFTER MATCH SKIP TO NEXT EVENT")
    assert found(kept) <= found(every)
    starts = [m.bindings["a"] for m in kept]
    assert len(starts) == len(set(starts))
    assert set(starts) == {m.bindings["a"] for m in every}


@law
def test_past_last_event_keeps_matches_apart(run: Runner) -> None:
    every = run(ALL)
    kept = run(f"{ALL} AFTER MATCH SKIP PAST LAST EVENT")
    assert found(kept) <= found(every)
    assert all(b.start > a.end for a, b in pairwise(kept))
    # What was dropped overlaps one that was kept.
    assert all(any(m.start <= k.end and k.start <= m.end for k in kept) for m in every)


@law
def test_the_first_match_is_always_kept(run: Runner) -> None:
    every = run(ALL)
    for skip in ("TO FIRST b", "TO LAST b", "PAST LAST EVENT", "TO NEXT EVENT"):
        kept = run(f"{ALL} AFTER MATCH SKIP {skip}")
        assert found(kept) <= found(every)
        assert bool(kept) == bool(every)
        if every:
            assert min(m.end for m in kept) == min(m.end for m in every)


@law
def test_skipping_goes_key_by_key(run: Runner) -> None:
    """A key's matches are those of the query about that key alone."""
    pattern = "PATTERN A a -> B b"
    skip = "WITHIN 8 AFTER MATCH SKIP PAST LAST EVENT"
    keyed = found(run(f"{pattern} WHERE [id] {skip}"))
    apart = [found(run(f"{pattern} WHERE [id] AND a.id = {key} {skip}")) for key in (1, 2)]
    assert keyed == apart[0] + apart[1]
