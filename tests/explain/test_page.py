"""The page, the notebook's fragment, and files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.errors import DataError
from cepheid.explain import Explanation
from cepheid.plan.profile import Replan
from cepheid.rewrites import Applied
from cepheid.statistics import Statistics
from tests.explain.cases import DRAWN, plan_of, profile_of

QUERY = "PATTERN A a ; B b\nWHERE a.x < b.x AND a.s <> '</pre><script>'\nWITHIN 10 units"


def explanation() -> Explanation:
    planned = plan_of(
        QUERY,
        [(1, 100), (1, 100), (1, 200)],
        losers=[("right-deep", 1_200)],
        statistics=Statistics({"a": 1, "b": 2}),
    )
    replan = Replan(3, 40, "left-deep", "right-deep", "the rate of b rose", 2.0, 1.5)
    profile = profile_of(planned, [(11, 0.1, 1), (12, 0.1, 1), (13, 0.1, 0)], matches=13)
    return Explanation(
        QUERY,
        planned,
        rewrites=(Applied("redundant", "a.x < 5 AND a.x < 7", "a.x < 5"),),
        warnings=("mind <this>",),
        distribution=(("partitioning", "by key"),),
        profile=replace(profile, replans=(replan,)),
    )


def body(page: str) -> ET.Element:
    return ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))


def words(element: ET.Element) -> str:
    return " ".join(part.strip() for part in element.itertext() if part.strip())


def test_the_page_says_what_the_text_says() -> None:
    page = explanation().to_html()
    assert page.startswith("<!DOCTYPE html>\n")
    text = words(body(page))
    for expected in (
        QUERY,
        "mind <this>",
        "redundant a.x < 5 AND a.x < 7 → a.x < 5",
        "left-deep 400 ns ×1.0 right-deep 1.2 µs ×3.0",
        "rates a: 1, b: 2",
        "partitioning by key",
        "matches 13",
        "round 3, at 40 left-deep → right-deep: predicted gain ×2.0, observed ×1.5; "
        "the rate of b rose",
    ):
        assert expected in text, expected


def test_bars_are_as_long_as_plans_are_dear() -> None:
    page = explanation().to_html()
    assert page.index("width:73px") < page.index("width:220px")  # 400 and 1,200 ns


def test_the_page_needs_nothing_from_outside() -> None:
    page = explanation().to_html()
    for word in ("<script", "http://", "https://", "href", "src=", "url(", "@import"):
        assert word not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")


@pytest.mark.parametrize("name", DRAWN)
def test_every_page_is_well_formed_and_has_its_drawing(name: str) -> None:
    root = body(DRAWN[name].to_html())
    assert root.find(".//{http://www.w3.org/2000/svg}svg") is not None


def test_a_plan_without_rivals_has_no_bars() -> None:
    text = words(body(DRAWN["query 6"].to_html()))
    assert "the only one" in text
    assert "Rewrites" not in text and "Replans" not in text and "On Spark" not in text


def test_notebooks_show_a_fragment() -> None:
    shown = explanation()._repr_html_()
    assert "<svg" in shown and "<html" not in shown and "<body" not in shown
    # Only what is inside the fragment may be styled.
    style = shown[shown.index("<style>") + 7 : shown.index("</style>")]
    style = re.sub(r"@media[^{]*\{", "", style)
    rules = [rule.strip() for rule in style.split("}") if rule.strip()]
    selectors = [part for rule in rules for part in rule.split("{")[0].split(",")]
    assert rules and all(part.strip().startswith(".cepheid") for part in selectors)


def test_the_name_of_a_file_says_what_is_in_it(tmp_path: Path) -> None:
    found = explanation()
    for name in ("a.txt", "a.json", "a.svg", "a.HTML"):
        found.save(tmp_path / name)
    assert (tmp_path / "a.txt").read_text("utf-8") == f"{found}\n"
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["version"] == 1
    assert (tmp_path / "a.svg").read_text("utf-8").startswith("<svg ")
    assert (tmp_path / "a.HTML").read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(("name", "said"), [("a.png", "'.png'"), ("plan", "without a suffix")])
def test_another_kind_of_file_is_refused(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(DataError, match=r"\.txt, \.json, \.svg or \.html") as error:
        explanation().save(str(tmp_path / name))
    assert said in str(error.value)
    assert not list(tmp_path.iterdir())


def test_the_page_has_a_title_return_and_full_conditions() -> None:
    condition = "a.a_column_with_a_long_name > b.another_column_with_a_long_name"
    page = cep.Query(f"PATTERN A a ; B b WHERE {condition} WITHIN 10 RETURN a.x AS y").explain()
    text = words(body(page.to_html()))
    assert "RETURN a.x AS y" in text
    assert "h1" in {child.tag for child in body(page.to_html()).iter()}
    assert text.count(condition) >= 2  # in the query and among the operators


def test_notebooks_show_a_query_with_its_plan_or_with_what_is_wrong() -> None:
    shown = cep.Query("PATTERN A a ; B b WHERE a.name = '<b>' WITHIN 5")._repr_html_()
    assert "<svg" in shown and "&lt;b&gt;" in shown and "<b>'" not in shown
    shown = cep.Query("PATTERN A a ; B b WHERE a.x > :low")._repr_html_()
    assert "CEP206: the parameter `:low` has no value" in shown and "<svg" not in shown


def test_one_row_is_no_rows() -> None:
    events = {"ts": [1, 2, 3], "type": ["A", "B", "B"]}
    query = cep.Query("PATTERN A a ; B b WITHIN 9")
    page = query.explain(pa.table(events), time="ts", type="type", analyze=True).to_html()
    said = words(body(page))
    assert "per window 1 row in the run" in said
    assert "per window 2 rows in the run" in said
