"""What a run of the benchmarks writes."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.cases import chosen
from benchmarks.measure import Result, Timing
from benchmarks.report import (
    BEGIN,
    END,
    case_record,
    cells,
    document,
    markdown,
    update_page,
    write_json,
)


def result(seconds: float) -> Result:
    (case,) = chosen(["q8 left-deep"])
    others = {"loop": Timing(0.05, 0.06), "DuckDB": Timing(0.2, 0.2)}
    return Result(case, 1_500_000, 150_000, Timing(seconds, 2 * seconds), others)


def test_figures_are_rates_and_ratios_of_processor_time() -> None:
    record = case_record(result(0.1))
    assert record["events_per_second"] == 15_000_000
    assert record["matches_per_second"] == 1_500_000
    assert record["times"] == {"loop": 2.0, "DuckDB": 0.5}
    assert record["target"] == {"text": "≥ 8 M events/s", "met": True}


def test_a_missed_target_is_said() -> None:
    assert cells(case_record(result(0.5)))[-1] == "≥ 8 M events/s ✗ missed"


def test_figures_that_a_case_lacks_stay_empty() -> None:
    assert cells(case_record(result(0.1)))[-4:-1] == ["2.00", "0.50", ""]


def test_the_file_says_what_was_measured_on_what(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "figures.json"
    write_json(path, document([case_record(result(0.1))], quick=True))
    figures = json.loads(path.read_text())
    assert figures["quick"] is True
    assert figures["cases"][0]["name"] == "q8 left-deep"
    assert {"processor", "cores", "system"} == set(figures["machine"])
    assert {"python", "numba", "pyarrow", "pyspark"} <= set(figures["versions"])


def test_the_readme_keeps_everything_but_the_figures(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(f"before\n{BEGIN}\nold figures\n{END}\nafter\n")
    figures = document([case_record(result(0.1))], quick=False)
    update_page(figures, path)
    assert path.read_text() == f"before\n{BEGIN}\n{markdown(figures)}{END}\nafter\n"
    assert "| q8 left-deep | 1.5 M | 150 k | 0.10 | 0.20 | 15 M | 1.5 M | 2.00 | 0.50 |" in (
        path.read_text()
    )
