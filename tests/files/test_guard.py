"""What a command may write to: nothing of the user's is replaced unasked, and nothing stays behind
when it fails."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cepheid.errors import OptionError
from cepheid.files.guard import MARKER, Guard, guard_of, mark_stream, replace_text

OUT = "--output"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with an input, a folder of inputs and a query; the working folder is inside."""
    (tmp_path / "in").mkdir()
    (tmp_path / "work").mkdir()
    for name in ("e.csv", "in/a.csv", "q.cep"):
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "me"))
    yield tmp_path


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def write_folder(guard: Guard, path: Path, *files: str) -> None:
    with guard.new_folder(path, OUT, "test") as partial:
        partial.mkdir()
        for name in files:
            (partial / name).write_text("new")


# ── files ────────────────────────────────────────────────────────────────────


def test_a_file_that_exists_is_replaced_only_if_asked(here: Path) -> None:
    old = here / "old.csv"
    old.write_text("old")
    with pytest.raises(OptionError, match=r"--output .*old\.csv: the file exists; --overwrite"):
        Guard().check_file(old, OUT)
    with Guard(overwrite=True).new_file(old) as partial:
        partial.write_text("new")
        assert old.read_text() == "old"
    assert old.read_text() == "new"


@pytest.mark.parametrize("way", ["e.csv", "work/../e.csv", "link.csv", "hard.csv", "q.cep"])
def test_what_is_read_is_never_replaced(way: str, here: Path) -> None:
    (here / "link.csv").symlink_to(here / "e.csv")
    os.link(here / "e.csv", here / "hard.csv")
    guard = guard_of([here / "e.csv", here / "q.cep"], overwrite=True)
    with pytest.raises(OptionError, match="this is read by the command, and is never replaced"):
        guard.check_file(here / way, OUT)


def test_nothing_is_written_where_it_would_be_read_the_next_time(here: Path) -> None:
    guard = guard_of([str(here / "in"), str(here / "*.csv")], overwrite=True)
    with pytest.raises(OptionError, match=r"this is inside .*in, all of which is read"):
        guard.check_file(here / "in" / "new.csv", OUT)
    with pytest.raises(OptionError, match=r"the name fits .*\*\.csv, which is read"):
        guard.check_file(here / "new.csv", OUT)
    guard.check_file(here / "new.parquet", OUT)
    guard.check_file(here / "work" / "new.csv", OUT)


def test_only_regular_files_are_replaced(here: Path) -> None:
    guard = Guard(overwrite=True)
    os.mkfifo(here / "pipe")
    with pytest.raises(OptionError, match="this isn't a regular file"):
        guard.check_file(here / "pipe", OUT)
    for device in ("/dev/stdout", "/dev/null", "/proc/self/fd/1"):
        with pytest.raises(OptionError, match="--output - writes to standard output"):
            guard.check_file(Path(device), OUT)
    with pytest.raises(OptionError, match="this is a folder; name a file"):
        guard.check_file(here / "in", OUT)
    with pytest.raises(OptionError, match=r"e\.csv is a file, not a folder"):
        guard.check_file(here / "e.csv" / "new.csv", OUT)


def test_a_link_stays_a_link(here: Path) -> None:
    (here / "real.csv").write_text("old")
    (here / "link.csv").symlink_to("real.csv")
    with Guard(overwrite=True).new_file(here / "link.csv") as partial:
        partial.write_text("new")
    assert (here / "link.csv").is_symlink() and (here / "real.csv").read_text() == "new"


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_nothing_behind(failure: type[BaseException], here: Path) -> None:
    before = names(here)
    with pytest.raises(failure), Guard().new_file(here / "new" / "deep" / "a.csv") as partial:
        partial.write_text("half")
        raise failure
    with pytest.raises(failure), Guard().new_folder(here / "new" / "f", OUT, "test") as partial:
        partial.mkdir()
        (partial / "half").touch()
        raise failure
    assert names(here) == before


def test_what_somebody_else_has_written_meanwhile_stays(here: Path) -> None:
    with pytest.raises(OptionError, match="exists"), Guard().new_file(here / "a.csv") as partial:
        partial.write_text("ours")
        (here / "a.csv").write_text("theirs")
    assert (here / "a.csv").read_text() == "theirs"


# ── folders ──────────────────────────────────────────────────────────────────


def test_a_folder_is_replaced_if_it_is_an_earlier_output(here: Path) -> None:
    found = here / "found"
    write_folder(Guard(), found, "a", "b")
    assert json.loads((found / MARKER).read_text()) == {"made_by": "test", "files": ["a", "b"]}
    with pytest.raises(OptionError, match="holds an earlier output; --overwrite replaces it"):
        write_folder(Guard(), found, "c")
    write_folder(Guard(overwrite=True), found, "c")
    assert names(found) == [MARKER, "c"]
    assert names(here) == sorted(
        ["e.csv", "found", f"found/{MARKER}", "found/c", "in", "in/a.csv", "q.cep", "work"]
    )


def test_a_folder_with_a_file_that_is_not_ours_stays(here: Path) -> None:
    found = here / "found"
    write_folder(Guard(), found, "a")
    (found / "notes.txt").touch()
    with pytest.raises(OptionError, match=r"the folder holds notes\.txt, which isn't from"):
        write_folder(Guard(overwrite=True), found, "b")
    with pytest.raises(OptionError, match=r"the folder holds a\.csv, which isn't from"):
        write_folder(Guard(overwrite=True), here / "in", "b")


def test_an_empty_folder_may_be_filled(here: Path) -> None:
    (here / "empty").mkdir()
    write_folder(Guard(), here / "empty", "a")
    assert names(here / "empty") == [MARKER, "a"]


def test_folders_that_are_never_replaced(here: Path) -> None:
    guard = guard_of([here / "in" / "a.csv", str(here / "e*.csv")], overwrite=True)
    (here / "home" / "me").mkdir(parents=True)
    (here / "link").symlink_to(here / "in")
    for path, reason in {
        ".": "the working folder",
        "..": "the working folder",
        "/": "the working folder",
        "~": "your home folder",
        str(here / "home"): "your home folder",
        str(here / "in"): r"a\.csv in it is read",
        str(here / "link"): r"a\.csv in it is read",
        str(here / "e.csv"): "this isn't one",
        "/dev/shm": "this isn't one",
    }.items():
        with pytest.raises(OptionError, match=reason):
            guard.check_folder(Path(path).expanduser(), OUT)
    with pytest.raises(OptionError, match="this is read by the command"):
        guard_of([here / "in"], True).check_folder(here / "in", OUT)
    with pytest.raises(OptionError, match="this is inside"):
        guard_of([here / "in"], True).check_folder(here / "in" / "found", OUT)


def test_a_stream_goes_on_in_its_own_folder_only(here: Path) -> None:
    guard = Guard()
    mark_stream(here / "state")
    (here / "state" / "more").touch()
    guard.check_stream(here / "state", "--checkpoint")
    guard.check_stream(here / "new", "--checkpoint")
    write_folder(guard, here / "found", "a")
    for path in (here / "in", here / "found"):
        with pytest.raises(OptionError, match="holds files that aren't from a stream"):
            guard.check_stream(path, "--checkpoint")
    with pytest.raises(OptionError, match=r"holds more, which isn't from an earlier run"):
        Guard(overwrite=True).check_folder(here / "state", OUT)


def test_notes_are_replaced_whole_or_not_at_all(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = here / "notes.json"
    replace_text(notes, "before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_text(notes, "after")
    assert notes.read_text() == "before"
    monkeypatch.undo()
    replace_text(notes, "after")
    assert notes.read_text() == "after"
