"""Samples are values that merge in any order; what they say follows from their counts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.errors import DataError
from cepheid.statistics import Statistics
from cepheid.statistics.samples import DRAWN, HASHES, MINIMA, Sample, Tally, Values, Windowed

NAMES = st.sampled_from(["a", "b", "c"])
# Whole numbers, so that sums don't depend on their order.
COUNTS = st.integers(0, 1000)
TALLIES = st.tuples(COUNTS, COUNTS).map(lambda p: Tally(max(p), min(p)))
HASH = st.integers(0, HASHES - 1)
VALUES = st.builds(
    Values,
    TALLIES,
    TALLIES,
    st.sets(HASH, max_size=6).map(lambda s: tuple(sorted(s))),
    st.lists(st.tuples(HASH, HASH, st.text(max_size=3)), max_size=6).map(
        lambda drawn: tuple(sorted(drawn))
    ),
)
INTERVALS = st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 20)), max_size=4).map(
    lambda parts: Sample(()).merge(Sample(tuple((b, b + n) for b, n in parts))).observed
)
SAMPLES = st.builds(
    Sample,
    INTERVALS,
    COUNTS,
    st.dictionaries(NAMES, COUNTS),
    st.dictionaries(NAMES, TALLIES),
    st.dictionaries(NAMES, TALLIES),
    st.dictionaries(NAMES, VALUES),
)


class TestMerging:
    @given(SAMPLES, SAMPLES)
    def test_is_commutative(self, a: Sample, b: Sample) -> None:
        assert a.merge(b) == b.merge(a)

    @given(SAMPLES, SAMPLES, SAMPLES)
    def test_is_associative(self, a: Sample, b: Sample, c: Sample) -> None:
        assert a.merge(b).merge(c) == a.merge(b.merge(c))

    @given(SAMPLES)
    def test_with_nothing_changes_nothing(self, a: Sample) -> None:
        assert a.merge(Sample()) == a

    def test_is_associative_where_sketches_are_full(self) -> None:
        parts = [
            Sample(values={"a.x": Values(minima=tuple(m), drawn=tuple((h, h, "") for h in d))})
            for m, d in (
                (range(0, 3 * MINIMA, 3), range(0, 2 * DRAWN, 2)),
                (range(1, 3 * MINIMA, 3), range(1, 2 * DRAWN, 2)),
                (range(2, 3 * MINIMA, 3), range(DRAWN)),
            )
        ]
        a, b, c = parts
        left, right = a.merge(b).merge(c), a.merge(b.merge(c))
        assert left == right
        assert left.values["a.x"].minima == tuple(range(MINIMA))
        assert len(left.values["a.x"].drawn) == DRAWN

    def test_partitions_saw_the_same_time(self) -> None:
        """Ten events in ten ticks, in two partitions."""
        one, other = Sample(((0, 10),), 6, {"a": 6}), Sample(((0, 10),), 4, {"a": 4})
        assert one.merge(other).statistics().rates == {"a": 1.0}

    def test_stretches_saw_different_times(self) -> None:
        """Ten events in ten ticks, then four in another ten; nobody looked in between."""
        one, other = Sample(((0, 10),), 10, {"a": 10}), Sample(((90, 100),), 4, {"a": 4})
        assert one.merge(other).statistics().rates == {"a": 0.7}

    def test_intervals_that_touch_are_one(self) -> None:
        merged = Sample(((0, 5), (9, 12))).merge(Sample(((5, 9), (20, 21))))
        assert merged.observed == ((0, 12), (20, 21))


class TestJson:
    @given(SAMPLES)
    def test_round_trip(self, sample: Sample) -> None:
        assert Sample.from_json(sample.to_json()) == sample

    @pytest.mark.parametrize(
        "text", ["", "[]", "{}", '{"observed": 5}', Sample().to_json().replace("{}", "[1]")]
    )
    def test_something_else(self, text: str) -> None:
        with pytest.raises(DataError, match="not a sample"):
            Sample.from_json(text)

    def test_statistics(self) -> None:
        known = Statistics({"a": 1.5}, {"a.x < b.x": 0.25}, {"a.k": 12.0}, {"a.k": {"root": 0.5}})
        assert Statistics.from_json(known.to_json()) == known
        # Files of before there were heavy values.
        assert Statistics.from_json('{"rates": {"a": 1.0}}') == Statistics({"a": 1.0})

    @pytest.mark.parametrize("heavy", ['{"a.k": 5}', '{"a.k": {"x": 1.5}}', "5"])
    def test_wrong_heavy_values(self, heavy: str) -> None:
        with pytest.raises(DataError):
            Statistics.from_json('{"heavy": ' + heavy + "}")


class TestStatistics:
    def test_rates_are_per_second_or_per_row(self) -> None:
        sample = Sample(((0, 4_000_000),), 40, {"a": 10, "b": 0})
        assert sample.statistics(1_000_000).rates == {"a": 2.5, "b": 0.0}
        assert sample.statistics(None).rates == {"a": 0.25, "b": 0.0}

    def test_nothing_seen_is_nothing_known(self) -> None:
        assert Sample().statistics() == Statistics()
        assert Sample(events={"a": 0}, shares={"a.x > 1": Tally()}).statistics() == Statistics()

    def test_never_is_less_than_could_be_seen(self) -> None:
        shares = {"never": Tally(100, 0), "once": Tally(100, 1), "always": Tally(100, 100)}
        found = Sample(shares=shares).statistics().selectivities
        assert found == {"never": 0.005, "once": 0.01, "always": 1.0}

    def test_a_rare_equality_is_left_to_the_number_of_values(self) -> None:
        rare, common = Tally(1000, 1), Tally(1000, 100)
        found = Sample(equalities={"a.x = b.x": rare, "a.y = b.y": common}).statistics()
        assert found.selectivities == {"a.y = b.y": 0.1}


def drawn(counts: dict[str, int]) -> Values:
    """A column that was drawn whole."""
    events = [(name, n) for n, name in enumerate(counts) for _ in range(counts[name])]
    return Values(
        minima=tuple(range(len(counts))),
        drawn=tuple((rank, hash_, text) for rank, (text, hash_) in enumerate(events)),
    )


class TestDistinct:
    def test_equally_frequent_values(self) -> None:
        """Ten values, forty events each: a pair agrees with probability 39 / 399."""
        assert drawn({str(n): 40 for n in range(10)}).distinct == pytest.approx(399 / 39)

    def test_skew_makes_it_smaller(self) -> None:
        """One value has half of the events: pairs agree about a quarter of the time, however many
        others there are."""
        skewed = drawn({"hot": 200, **{str(n): 1 for n in range(200)}})
        assert skewed.distinct == pytest.approx(4, rel=0.02)
        assert skewed.heavy() == {"hot": 0.5}

    def test_many_values_are_counted(self) -> None:
        """No two drawn events agree; of 100,000 equally spaced hashes the 256th says how many
        there are."""
        step = HASHES // 100_000
        values = Values(minima=tuple(n * step for n in range(1, MINIMA + 1)))
        assert values.distinct == pytest.approx(100_000, rel=0.01)

    def test_neighbors_in_time_count_most(self) -> None:
        """There are two hundred users, but the events of one come together."""
        known = drawn({str(n): 1 for n in range(200)})
        assert known.distinct == 200
        assert known.plus(Values(near=Tally(100, 50))).distinct == 2
        assert known.plus(Values(near=Tally(100, 1))).distinct == 200

    def test_pairs_alone_give_a_bound(self) -> None:
        assert Values(apart=Tally(2000, 100)).distinct == 20
        assert Values(apart=Tally(2000, 0)).distinct == 4000
        assert Values().distinct is None

    def test_one_value(self) -> None:
        assert drawn({"only": 30}).distinct == 1
        assert drawn({"only": 1}).distinct == 1

    def test_heavy_values_are_the_heaviest_few(self) -> None:
        many = drawn({f"v{n}": 60 - n for n in range(7)})
        assert list(many.heavy(3)) == ["v0", "v1", "v2"]
        assert many.heavy(1) == {"v0": 60 / len(many.drawn)}
        assert drawn({str(n): 2 for n in range(200)}).heavy() == {}


def test_windowed_averages_forget() -> None:
    """The rate was 2, then 3; two samples are remembered."""
    windowed = Windowed(2)
    assert windowed.statistics() == Statistics()
    for n, count in enumerate((20, 30, 30)):
        windowed.add(Sample(((10 * n, 10 * n + 10),), 0, {"a": count}, {"p": Tally(10, n)}))
        assert len(windowed) == min(2, n + 1)
        rate = {0: 2.0, 1: 2.5, 2: 3.0}[n]
        assert windowed.statistics().rates == {"a": rate}
    assert windowed.statistics().selectivities == {"p": 0.15}


@pytest.mark.parametrize(
    ("events", "tally", "kept"),
    [
        (110, Tally(64, 30), 3),  # as before, give or take
        (300, Tally(64, 30), 1),  # three times as many events
        (0, Tally(64, 30), 1),  # none any more
        (110, Tally(64, 2), 1),  # a condition that hardly holds any more
        (110, Tally(4, 0), 3),  # too few to say
    ],
)
def test_what_was_before_a_change_is_forgotten(events: int, tally: Tally, kept: int) -> None:
    windowed = Windowed(5)
    for n in range(2):
        windowed.add(Sample(((100 * n, 100 * n + 100),), 0, {"a": 100}, {"p": Tally(64, 32)}))
    windowed.add(Sample(((200, 300),), 0, {"a": events}, {"p": tally}))
    assert len(windowed) == kept


def test_json_is_an_object() -> None:
    assert set(json.loads(Sample().to_json())) == {
        "observed",
        "rows",
        "events",
        "shares",
        "equalities",
        "values",
    }
