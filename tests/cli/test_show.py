"""What is printed fits 80 columns, and no number is broken."""

from __future__ import annotations

from datetime import datetime
from io import StringIO

from rich.console import Console

from cepheid.cli.output.progress import bar
from cepheid.cli.output.show import PerRule, RunSummary, sample
from cepheid.cli.stream.stream_status import Totals, wrapped

WIDTH = 80


def printed(*things: object) -> list[str]:
    console = Console(width=WIDTH, file=StringIO(), record=True)
    for thing in things:
        console.print(thing)
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_a_table_that_fits() -> None:
    rows = [{"id": 1, "name": "IBM"}, {"id": 20, "name": None}]
    lines = printed(sample(["id", "name"], rows, WIDTH))
    assert lines[3:5] == ["│  1 │ IBM  │", "│ 20 │ NULL │"]
    assert printed(sample(["id"], [], WIDTH)) == ["no matches"]


def test_a_match_that_is_too_wide_has_a_line_for_each_column() -> None:
    number = 1234567890.12345
    names = [f"amount_{n}" for n in range(9)]
    rows = [dict.fromkeys(names, number) | {"at": datetime(2026, 1, 31, 12)}] * 2
    lines = printed(sample([*names, "at"], rows, WIDTH))
    assert max(map(len, lines)) <= WIDTH
    words = [word for line in lines for word in line.split()]
    assert words.count(str(number)) == 18
    assert sum("2026-01-31 12:00:00" in line for line in lines) == 2
    assert [line.strip() for line in lines if "match" in line] == ["match 1", "match 2"]


def test_times_are_broken_before_the_hour_if_that_helps() -> None:
    names = ["taken", "left", "match_start", "match_end"]
    rows = [dict.fromkeys(names, datetime(2026, 3, 2, 9, 22, 16, 816090))]
    lines = printed(sample(names, rows, WIDTH))
    assert max(map(len, lines)) <= WIDTH
    assert lines[3].replace("│", " ").split() == ["2026-03-02"] * 4
    assert lines[4].replace("│", " ").split() == ["09:22:16.816090"] * 4


def test_figures_fit() -> None:
    figures = RunSummary(10**12, 10**12, 3600.0, 10**12)
    rules = PerRule(10**9, {"a": 10**9})
    assert max(map(len, printed(figures.table(rules.figures()), rules.table()))) <= WIDTH


def test_a_bar_fits_with_large_numbers() -> None:
    progress = bar()
    progress.add_task("making events", total=999_999_999, completed=999_999_998, unit="events")
    (line,) = printed(progress.get_renderable())
    assert "999,999,998/999,999,999 events" in line and len(line) <= WIDTH


def test_the_line_of_a_stream_is_broken_between_figures() -> None:
    totals = Totals(
        batches=10**6, events=10**12, matches=10**9, late=10**9, rejected=10**9, shed=10**9,
        files=10**3, timeouts=10**9, rate=10**7, seconds=1000.0, watermark=1_769_860_800_000,
        refused=10**5, held={"a": (10**9, 10**12)},
    )  # fmt: skip
    text = totals.line(1_769_860_890)
    lines = wrapped(text, WIDTH).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert " ".join(line.strip() for line in lines) == text
    assert any("watermark 2026-01-31 12:00:00.000" in line for line in lines)
