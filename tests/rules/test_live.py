"""Rules that change: versions in a table, and a folder that is watched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.errors import DataError
from cepheid.rules.live.watch import Change, Watch

COLUMNS = pa.schema(
    {"ts": pa.int64(), "type": pa.string(), "id": pa.int64(), "amount": pa.float64()}
)
PAIR = "INTO pair PATTERN A a ; B b WHERE [id] AND b.amount > :low WITHIN 9"
BIG = "INTO big PATTERN A a ; A b WHERE [id] AND b.amount > 100 WITHIN 9"


@pytest.fixture
def live(tmp_path: Path) -> cep.LiveRules:
    return cep.LiveRules(str(tmp_path / "versions"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "rules"
    path.mkdir()
    (path / "big.cep").write_text(BIG)
    (path / "pair.cep").write_text(PAIR)
    (path / "pair.csv").write_text("rule,low\npair-1,1\npair-2,2\n")
    return path


@pytest.fixture
def watch(folder: Path, live: cep.LiveRules) -> Watch:
    return Watch(folder, live, COLUMNS, cep.Options("ts", type="type"), tell=lambda change: None)


_times: Iterator[int] = iter(range(1, 1000))


def write(path: Path, text: str) -> None:
    """With a time of its own, however coarse the file system's are."""
    path.write_text(text)
    moment = 1_900_000_000 + next(_times)
    os.utime(path, (moment, moment))


def look(watch: Watch) -> Change:
    change = watch.look()
    assert change is not None
    return change


def messages(change: Change) -> str:
    return "\n".join(finding.render() for finding in change.findings)


def test_versions_are_added_and_stay(live: cep.LiveRules) -> None:
    one = cep.RuleSet.of({"a": "PATTERN A ; B WITHIN 5"})
    two = one | cep.RuleSet.from_template("b", PAIR, {"low": [1.5, 2.5], "tag": ["x", None]})
    assert live.publish(one) == "00000001"
    assert live.publish(two) == "00000002"
    assert live.publish(two) is None
    assert live.rules() == two
    assert live.rules("00000001") == one
    assert [(v.version, v.count) for v in live.versions()] == [("00000001", 1), ("00000002", 3)]
    with pytest.raises(DataError, match="no version 00000009"):
        live.rules("00000009")


def test_an_order_is_no_change(live: cep.LiveRules) -> None:
    """Of the rows of a table, its columns, and the tables; but of a table without names of rules,
    which are called by their places, it is."""
    columns = {"rule": ["x", "y", "z"], "low": [1.5, None, 0.5], "tag": [None, "b", "c"]}
    backwards = {name: columns[name][::-1] for name in reversed(columns)}
    one = cep.RuleSet.of({"a": "PATTERN A ; B WITHIN 5"})
    assert live.publish(one | cep.RuleSet.from_template("b", PAIR, columns)) == "00000001"
    assert live.publish(cep.RuleSet.from_template("b", PAIR, backwards) | one) is None
    exchanged = {**columns, "low": [0.5, None, 1.5]}
    assert live.publish(one | cep.RuleSet.from_template("b", PAIR, exchanged)) == "00000002"
    unnamed = {"low": [1.5, 0.5]}
    assert live.publish(cep.RuleSet.from_template("b", PAIR, unnamed)) == "00000003"
    assert live.publish(cep.RuleSet.from_template("b", PAIR, {"low": [0.5, 1.5]})) == "00000004"


def test_a_stream_needs_rules_and_events_that_stream(live: cep.LiveRules) -> None:
    with pytest.raises(DataError, match=r"there are no rules in .*: publish some first"):
        live.match(pa.table({"ts": [1]}), time="ts")
    live.publish(cep.RuleSet.of({"a": "PATTERN A ; B WITHIN 5"}))
    with pytest.raises(DataError, match="rules that change need a stream"):
        live.match(pa.table({"ts": [1]}), time="ts")


def test_what_changes_in_a_folder_is_published(watch: Watch, folder: Path) -> None:
    first = look(watch)
    assert (first.version, first.added) == ("00000001", ("big", "pair-1", "pair-2"))
    assert watch.look() is None
    write(folder / "pair.csv", "rule,low\npair-1,1\npair-2,5\npair-3,3\n")
    second = look(watch)
    assert second.version == "00000002"
    assert (second.added, second.removed, second.changed) == (("pair-3",), (), ("pair-2",))
    (folder / "big.cep").unlink()
    assert look(watch).removed == ("big",)
    assert sorted(watch.live.rules()) == ["pair-1", "pair-2", "pair-3"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INTO big PATTERN A a ; WITHIN 9", "CEP"),
        (BIG.replace("amount", "amout"), "did you mean `amount`"),
        (BIG.replace("WITHIN 9", ""), "needs a window"),
        (BIG.replace("[id] AND ", ""), "has none of the keys that this stream is partitioned by"),
        (BIG.replace("WITHIN 9", "WITHIN 9 EVENTS"), "counts the events of each key"),
    ],
)
def test_a_rule_that_is_wrong_now_stays_as_it_was(
    watch: Watch, folder: Path, text: str, message: str
) -> None:
    look(watch)
    write(folder / "big.cep", text)
    write(folder / "pair.csv", "rule,low\npair-1,7\n")
    change = look(watch)
    assert message in messages(change)
    assert (change.removed, change.changed) == (("pair-2",), ("pair-1",))
    assert watch.live.rules()["big"].query.text == BIG
    assert watch.live.rules()["pair-1"].params == {"low": 7}


def test_a_row_that_is_wrong_is_left_out_alone(watch: Watch, folder: Path) -> None:
    write(folder / "pair.cep", PAIR.replace("WITHIN 9", "WITHIN :span units"))
    write(folder / "pair.csv", "rule,low,span\npair-1,1,5\npair-2,2,-5\npair-3,3,7\n")
    change = look(watch)
    assert change.added == ("big", "pair-1", "pair-3")
    assert "row 2" in messages(change)
    write(folder / "pair.csv", "rule,low,span\npair-1,1,0\npair-2,2,6\npair-3,3,7\n")
    change = look(watch)
    assert (change.added, change.removed, change.changed) == (("pair-2",), (), ())
    assert watch.live.rules()["pair-1"].params == {"low": 1, "span": 5}


def test_a_column_keeps_its_type(watch: Watch, folder: Path) -> None:
    write(folder / "pair.csv", "rule,low,level\npair-1,1,3\n")
    look(watch)
    write(folder / "pair.csv", "rule,low,level\npair-1,1,high\n")
    change = look(watch)
    assert "the column `level` is string, but int64 in" in messages(change)
    assert watch.live.rules()["pair-1"].carried == {"level": 3}


def test_what_cannot_be_read_at_all_changes_nothing(watch: Watch, folder: Path) -> None:
    look(watch)
    folder.rename(folder.with_name("gone"))
    change = look(watch)
    assert "there is no such file or folder" in messages(change)
    assert (change.version, change.removed) == (None, ())
    folder.mkdir()
    write(folder / "note.txt", "nothing")
    assert "there are no rules in this folder" in messages(look(watch))
    assert sorted(watch.live.rules()) == ["big", "pair-1", "pair-2"]


def test_a_stream_does_not_begin_with_nothing(watch: Watch, folder: Path) -> None:
    """The first version decides which keys there are."""
    write(folder / "big.cep", "INTO big PATTERN A a ;")
    (folder / "pair.cep").unlink()
    (folder / "pair.csv").unlink()
    with pytest.raises(cep.RuleSetError, match="the query ends too early"):
        watch.look()
    assert watch.live.first() is None
    write(folder / "big.cep", BIG)
    assert look(watch).added == ("big",)


def test_a_single_file_is_watched_with_its_tables(folder: Path, live: cep.LiveRules) -> None:
    own = Watch(folder / "pair.cep", live, COLUMNS, cep.Options("ts", type="type"))
    assert look(own).added == ("pair-1", "pair-2")
    write(folder / "pair.csv", "rule,low\npair-1,1\n")
    assert look(own).removed == ("pair-2",)
    write(folder / "pair.cep", PAIR.replace("9", "8"))
    assert look(own).changed == ("pair-1",)
    write(folder / "big.cep", BIG.replace("9", "8"))
    assert own.look() is None


def test_it_is_watched_in_the_background(folder: Path, live: cep.LiveRules) -> None:
    seen: list[Change] = []
    own = Watch(folder, live, COLUMNS, cep.Options("ts", type="type"), every=0.01, tell=seen.append)
    with own:
        assert [change.version for change in seen] == ["00000001"]
        write(folder / "big.cep", BIG.replace("100", "200"))
        for _ in range(500):
            if len(seen) > 1:
                break
            own._stopped.wait(0.02)
    assert seen[1].changed == ("big",)


def test_what_is_wrong_is_a_warning_if_nobody_listens(folder: Path, live: cep.LiveRules) -> None:
    write(folder / "big.cep", "INTO big PATTERN")
    own = Watch(folder, live, COLUMNS, cep.Options("ts", type="type"))
    with pytest.warns(UserWarning, match="the old rules keep running"):
        own.look()
    assert sorted(live.rules()) == ["pair-1", "pair-2"]


def test_programs_that_publish_at_once_get_a_version_each(live: cep.LiveRules) -> None:
    sets = [cep.RuleSet.of({"a": f"PATTERN A a ; B b WITHIN {n}"}) for n in range(1, 9)]
    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(live.publish, sets))
    assert sorted(map(str, versions)) == [f"{n:08}" for n in range(1, 9)]
    for version, rules in zip(versions, sets, strict=True):
        assert live.rules(version) == rules
    assert len(list(live.versions())) == 8
