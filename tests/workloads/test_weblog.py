from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta

import pyarrow.compute as pc
import pytest

from cepheid.errors import DataError
from cepheid.workloads import weblog


def test_table_4_holds_exactly() -> None:
    log = weblog.generate(1_500_000, 1)
    categories = Counter(log["category"].to_pylist())
    assert categories == {
        "publication": 6775,
        "project": 11610,
        "courses": 16083,
        "other": 1_500_000 - 6775 - 11610 - 16083,
    }
    times = log["time"]
    assert times[0].as_py() >= datetime(2009, 2, 22, tzinfo=UTC)
    assert times[-1].as_py() < datetime(2009, 3, 22, tzinfo=UTC)
    assert times[-1].as_py() - times[0].as_py() > timedelta(days=27, hours=23)


def test_counts_scale() -> None:
    """A tenth of the records, rounded to the nearest: 677.5, 1161.0, 1608.3."""
    categories = Counter(weblog.generate(150_000, 1)["category"].to_pylist())
    assert (categories["publication"], categories["project"], categories["courses"]) == (
        678,
        1161,
        1608,
    )


def test_url_tells_the_category() -> None:
    log = weblog.generate(150_000, 2)
    folders = {"publication": "/publications/", "project": "/projects/", "courses": "/courses/"}
    for url, category in zip(log["url"].to_pylist(), log["category"].to_pylist(), strict=True):
        assert url.startswith(folders.get(category, "/pages/"))


def test_same_visitor_matches_exist() -> None:
    """Publication ; project ; courses of one address within 10 hours, by brute force."""
    log = weblog.generate(1_500_000, 1)
    wanted = log.filter(pc.not_equal(log["category"], "other"))
    visits = defaultdict(list)
    for row in wanted.to_pylist():
        visits[row["ip"]].append((row["time"], row["category"]))
    matches = 0
    for events in visits.values():
        for i, (start, category) in enumerate(events):
            if category != "publication":
                continue
            projects = 0
            for at, later in events[i + 1 :]:
                if at - start >= timedelta(hours=10):
                    break
                projects += later == "project"
                matches += projects if later == "courses" else 0
    assert 1000 < matches < 10_000_000


def test_skew() -> None:
    even = Counter(weblog.generate(100_000, 3, visitors=100, skew=0.0)["ip"].to_pylist())
    skewed = Counter(weblog.generate(100_000, 3, visitors=100, skew=1.0)["ip"].to_pylist())
    assert len(even) == len(skewed) == 100
    assert max(even.values()) < 1200
    # The first of 100 has 1/H(100) = 1/5.187 of the visits.
    assert skewed.most_common(1)[0][1] == pytest.approx(100_000 / 5.187, rel=0.03)


@pytest.mark.parametrize("bad", [{"visitors": 0}, {"skew": -1.0}])
def test_bad_knobs(bad: dict[str, float]) -> None:
    with pytest.raises(DataError, match="visitors"):
        weblog.generate(10, **bad)
