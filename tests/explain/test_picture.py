"""The drawing, read back: what is in it, that nothing overlaps, and that it is valid XML."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

import cepheid as cep
from cepheid.explain import Explanation
from cepheid.explain.paint import DARK, EDGE, FAINT, INK, LIGHT, SOFT, ground, thickness
from cepheid.plan.nodes import Node
from cepheid.plan.text import inputs_of
from tests.explain.cases import DRAWN, plan_of, profile_of, sequence

SVG = "{http://www.w3.org/2000/svg}"
Rectangle = tuple[float, float, float, float]

drawn = pytest.mark.parametrize("name", DRAWN)


def read(explanation: Explanation) -> ET.Element:
    return ET.fromstring(explanation.to_svg())


def boxes(svg: ET.Element) -> list[ET.Element]:
    return [rect for rect in svg.iter(f"{SVG}rect") if rect.get("class") == "box"]


def rectangle(element: ET.Element) -> Rectangle:
    x, y, width, height = (float(element.get(k, "")) for k in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def offset(svg: ET.Element) -> tuple[float, float]:
    """How far the tree is moved from the corner."""
    group = next(
        g for g in svg.findall(f"{SVG}g") if g.find(f".//{SVG}rect[@class='box']") is not None
    )
    x, y = re.findall(r"[\d.]+", group.get("transform", ""))
    return float(x), float(y)


def nodes(node: Node) -> int:
    return 1 + sum(nodes(part) for part, _ in inputs_of(node))


def said(svg: ET.Element) -> list[str]:
    return [text.text or "" for text in svg.iter(f"{SVG}text")]


@drawn
def test_boxes_are_disjoint_and_inside_the_picture(name: str) -> None:
    svg = read(DRAWN[name])
    _, _, width, height = map(float, svg.get("viewBox", "").split())
    right, down = offset(svg)
    found = [rectangle(box) for box in boxes(svg)]
    for one, other in combinations(found, 2):
        apart = one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]
        assert apart, (one, other)
    for x0, y0, x1, y1 in found:
        assert right + x0 >= 0 and right + x1 <= width
        assert down + y0 >= 0 and down + y1 <= height


@drawn
def test_every_use_of_an_operator_has_a_box(name: str) -> None:
    roots = DRAWN[name].planned.plan.alternatives
    expected = sum(map(nodes, roots)) + (len(roots) > 1)
    assert len(boxes(read(DRAWN[name]))) == expected


@drawn
def test_text_stays_in_its_box(name: str) -> None:
    for group in read(DRAWN[name]).iter(f"{SVG}g"):
        box = group.find(f"{SVG}rect[@class='box']")
        if box is None:
            continue
        x0, y0, x1, y1 = rectangle(box)
        for text in group.findall(f"{SVG}text"):
            size = float(text.get("font-size", 12))
            x, y = float(text.get("x", "")), float(text.get("y", ""))
            upper = 0.6 if text.get("font-family") else 0.75  # letters of a code are equally wide
            wide = sum(upper if c.isupper() else 0.6 for c in text.text or "") * size
            begin, end = (x - wide, x) if text.get("text-anchor") == "end" else (x, x + wide)
            assert begin >= x0 and end <= x1, text.text
            assert y - size >= y0 and y <= y1 - 4


@drawn
def test_lines_cross_no_box(name: str) -> None:
    svg = read(DRAWN[name])
    found = [rectangle(box) for box in boxes(svg)]
    for path in svg.iter(f"{SVG}path"):
        way = path.get("d", "")
        if "C" in way:
            for x, y in points(way):
                inside = [b for b in found if b[0] + 1 < x < b[2] - 1 and b[1] + 1 < y < b[3] - 1]
                assert not inside, (way, inside)


def points(way: str) -> list[tuple[float, float]]:
    """Points on a line `M x y (V|H) to C …`: the corner, and the curve in steps."""
    numbers = [float(n) for n in re.findall(r"-?[\d.]+(?:e-?\d+)?", way)]
    x, y, to, *curve = numbers
    corner = (x, to) if "V" in way else (to, y)
    (ax, ay), (bx, by, cx, cy, dx, dy) = corner, curve
    found = [corner]
    for step in range(1, 20):
        t = step / 20
        u = 1 - t
        weights = (u**3, 3 * u * u * t, 3 * u * t * t, t**3)
        xs, ys = (ax, bx, cx, dx), (ay, by, cy, dy)
        found.append(
            (
                sum(w * v for w, v in zip(weights, xs, strict=True)),
                sum(w * v for w, v in zip(weights, ys, strict=True)),
            )
        )
    return found


@drawn
def test_nothing_comes_from_outside(name: str) -> None:
    text = DRAWN[name].to_svg()
    assert text.count("http") == 1  # the name of SVG itself
    for word in ("<script", "href", "url(", "@import", "<image", "<foreignObject"):
        assert word not in text


def test_a_long_plan_can_be_read_on_a_page() -> None:
    for name in ("12 classes left-deep", "40 classes left-deep", "40 classes right-deep"):
        assert float(read(DRAWN[name]).get("width", "")) <= 1000, name


def test_negated_inputs_are_dashed() -> None:
    svg = read(DRAWN["negation pushed"])
    dashed = [box for box in boxes(svg) if box.get("stroke-dasharray")]
    assert len(dashed) == 1
    assert "!B b" in said(svg) and "negated" in said(svg)
    assert "negated" not in said(read(DRAWN["query 6"]))


def test_what_is_shared_is_marked_at_each_use() -> None:
    svg = read(DRAWN["disjunction"])
    assert said(svg).count("shared by 2") == 2
    assert "shared: runs once" in said(svg)
    assert "shared: runs once" not in said(read(DRAWN["query 6"]))


def test_long_conditions_are_whole_in_the_tooltip() -> None:
    svg = read(DRAWN["long names"])
    condition = f"{'a' * 60}.{'x' * 60} < b.y"
    assert condition not in said(svg)
    titles = [title.text or "" for title in svg.iter(f"{SVG}title")]
    assert any(condition in title for title in titles)


def test_of_many_conditions_the_rest_is_counted() -> None:
    svg = read(DRAWN["closure"])
    # hash(a.id = b.id), b.x > PREV(b.x), sum(b.x) > 9, count(b) > 2
    assert "and 2 more" in said(svg)
    titles = [title.text or "" for title in svg.iter(f"{SVG}title")]
    assert any("count(b) > 2" in title for title in titles)


def test_estimates_stand_in_the_boxes() -> None:
    query = "PATTERN A a ; B b WITHIN 10"
    planned = plan_of(query, [(10, 1_000), (2_000, 1_000), (3_400_000, 2_000)])
    texts = said(read(Explanation(query, planned)))
    for text in (
        "≈ 10 rows · 1.0 µs per window",
        "≈ 2.0 k rows · 1.0 µs per window",
        "≈ 3.4 M rows · 2.0 µs per window",
        "50 %",
    ):
        assert text in texts


def test_actuals_stand_beside_them_and_decide_color_and_lines() -> None:
    query = "PATTERN A a ; B b WITHIN 10"
    planned = plan_of(query, [(10, 900), (10, 50), (10, 50)])
    profile = profile_of(planned, [(9, 0.0, 5), (99_999, 0.75, 12), (7, 0.25, 0)])
    svg = read(Explanation(query, planned, profile=profile))
    texts = said(svg)
    for text in (
        "99,999 rows · 750 ms in the run",
        "peak 12",
        "75 %",
        "share of the time, 0 to 100 %",
    ):
        assert text in texts
    fills = [box.get("fill") for box in boxes(svg)]
    assert fills == [ground(0.25), ground(0.0), ground(0.75)]
    widths = [p.get("stroke-width") for p in svg.iter(f"{SVG}path") if "C" in p.get("d", "")]
    assert widths == [f"{thickness(rows):.3g}" for rows in (9, 99_999)]


def test_color_is_by_share_of_cost() -> None:
    query = "PATTERN A a ; B b WITHIN 10"
    svg = read(Explanation(query, plan_of(query, [(10, 100), (10, 300), (10, 600)])))
    assert [box.get("fill") for box in boxes(svg)] == [ground(0.6), ground(0.1), ground(0.3)]


@pytest.mark.parametrize(
    "text", ["<&>\"'", "]]> <!-- --> </svg><script>", "\x00\x1b\x0b\ufffe", "😀"]
)
def test_whatever_stands_in_a_query_is_only_text(text: str) -> None:
    constant = text.replace("'", "''")
    query = f"PATTERN A a ; B b WHERE a.s <> '{constant}' WITHIN 10"
    svg = read(Explanation(query, plan_of(query)))
    assert svg.tag == f"{SVG}svg" and not list(svg.iter(f"{SVG}script"))
    shown = "".join(said(svg))
    assert ("😀" if text == "😀" else "a.s <> '") in shown


def test_figures_past_all_bounds_leave_the_drawing_whole() -> None:
    inf, nan = float("inf"), float("nan")
    planned = plan_of(sequence(2), [(inf, inf), (nan, nan), (1e300, 1e300)])
    text = Explanation("", planned).to_svg()
    assert len(boxes(ET.fromstring(text))) == 3
    assert "nan" not in text and "inf" not in text


def test_estimates_that_are_missing_are_left_out() -> None:
    planned = replace(plan_of(sequence(2)), estimates={})
    assert not any("rows ·" in text for text in said(read(Explanation("", planned))))


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Of WCAG 2: 4.5 for text, 3 for large text and drawings."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def mixed(over: str, under: str, opacity: float) -> str:
    pairs = [(int(over[i : i + 2], 16), int(under[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(opacity * a + (1 - opacity) * b):02x}" for a, b in pairs)


def test_text_can_be_read_on_every_box() -> None:
    for box in (ground(n / 10) for n in range(11)):
        assert contrast(INK, box) >= 7
        assert contrast(mixed(INK, box, FAINT), box) >= 4.5


@pytest.mark.parametrize("page", ["#ffffff", "#0d1117"])
def test_what_stands_outside_of_boxes_can_be_seen_on_light_and_dark(page: str) -> None:
    assert contrast(EDGE, page) >= 3


@pytest.mark.parametrize("colors", [LIGHT, DARK])
def test_text_outside_of_boxes_can_be_read(colors: tuple[str, str]) -> None:
    text, page = colors
    assert contrast(mixed(text, page, SOFT), page) >= 4.5


@drawn
def test_a_drawing_stays_large_enough_to_be_read(name: str) -> None:
    """The page scrolls it in a frame."""
    svg = read(DRAWN[name])
    least = re.search(r"min-width: (\d+)px", svg.get("style", ""))
    assert least is not None and int(least[1]) * 12 / float(svg.get("width", "")) >= 10
    assert not {"#738393"} & {text.get("fill") for text in svg.iter(f"{SVG}text")}


AUTOMATA = [name for name in DRAWN if name.startswith("automaton")]


@pytest.mark.parametrize("name", AUTOMATA)
def test_the_states_of_an_automaton_stand_in_its_box(name: str) -> None:
    for group in read(DRAWN[name]).iter(f"{SVG}g"):
        box = group.find(f"{SVG}rect[@class='box']")
        inner = group.find(f"{SVG}g[@class='automaton']")
        if box is None or inner is None:
            continue
        x0, _, x1, y1 = rectangle(box)
        heading = max(float(text.get("y", "")) for text in group.findall(f"{SVG}text"))
        for text in inner.iter(f"{SVG}text"):
            half = sum(0.75 if c.isupper() else 0.6 for c in text.text or "") * 11 / 2
            x, y = float(text.get("x", "")), float(text.get("y", ""))
            assert x0 <= x - half and x + half <= x1, text.text
            assert heading < y - 11 and y <= y1 - 4, text.text
        for ring in inner.iter(f"{SVG}circle"):
            x, y, r = (float(ring.get(k, "")) for k in ("cx", "cy", "r"))
            assert x0 <= x - r and x + r <= x1 and heading < y - r and y + r <= y1


@pytest.mark.parametrize("name", AUTOMATA)
def test_states_and_their_labels_keep_apart(name: str) -> None:
    svg = read(DRAWN[name])
    rings = {
        (float(ring.get("cx", "")), float(ring.get("cy", "")))
        for inner in svg.iterfind(f".//{SVG}g[@class='automaton']")
        for ring in inner.iter(f"{SVG}circle")
    }
    for (ax, ay), (bx, by) in combinations(rings, 2):
        assert abs(ax - bx) >= 32 or abs(ay - by) >= 32
    labels = [
        (float(t.get("x", "")), float(t.get("y", "")), len(t.text or "") * 0.6 * 11 / 2)
        for inner in svg.iterfind(f".//{SVG}g[@class='automaton']")
        for t in inner.iter(f"{SVG}text")
    ]
    for (ax, ay, one), (bx, by, other) in combinations(labels, 2):
        assert abs(ay - by) >= 8 or abs(ax - bx) >= one + other


def test_an_automaton_is_a_row_of_states_with_loops() -> None:
    """start, a, b and c; c is final. Others are skipped at a and b, and b takes more."""
    svg = read(DRAWN["automaton"])
    (inner,) = svg.iterfind(f".//{SVG}g[@class='automaton']")
    assert len(list(inner.iter(f"{SVG}circle"))) == 4 + 1
    loops = [path for path in inner.iter(f"{SVG}path") if "A" in path.get("d", "")]
    assert len(loops) == 2 + 1
    texts = [text.text for text in inner.iter(f"{SVG}text")]
    assert texts == [
        "A a",
        "a",
        "others",
        "B b",
        "b",
        "others",
        "every B b, b.x > PREV(b.x)",
        "C c",
        "c",
    ]
    tooltips = [title.text for title in inner.iter(f"{SVG}title")]
    assert tooltips[0] == "start: forward any A a"
    assert "take one more" in " ".join(said(svg))


def test_only_automata_have_states_to_explain() -> None:
    assert "take one more" not in " ".join(said(read(DRAWN["stacks"])))


def test_the_time_outside_of_operators_is_drawn() -> None:
    query = "PATTERN A a ; B b WITHIN 10"
    planned = plan_of(query, [(10, 900), (10, 50), (10, 50)])
    profile = profile_of(planned, [(9, 0.0, 5), (99, 0.2, 12), (7, 0.1, 0)])
    texts = said(read(Explanation(query, planned, profile=profile)))
    assert "operators 30 %" in texts
    assert "reading, storing, returning 70 %" in texts
    assert "peak: the most records in its buffer at once" in texts


def test_what_was_assumed_stands_in_the_drawing() -> None:
    query = "PATTERN A a ; B b WITHIN 10"
    texts = said(read(Explanation(query, plan_of(query, [(10, 100), (10, 300), (10, 600)]))))
    assert "assumed: everything: there are no statistics, so defaults are used" in texts


def test_states_are_cut_only_if_there_is_no_room() -> None:
    long = "PATTERN A a -> B a_rather_long_name_for_a_b WITHIN 10"
    texts = said(read(cep.Query(long).explain()))
    assert any("a_rather_long_name_for_a_b" in text for text in texts)
