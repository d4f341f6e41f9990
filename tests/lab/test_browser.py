"""The pages in a real browser: what a person does, and what they see then."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
QUERY = "PATTERN A a ; B b\nWHERE b.x > a.x\nWITHIN 10"
EVENTS = "A@1(x=5) B@3(x=7) A@20(x=5) B@22(x=4)"
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
WAIT = 30_000
STREAM_WAIT = 240_000
"""Spark starts first."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason="needs Debian's Chromium: apt-get install chromium"
    ),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def lab() -> Iterator[str]:
    """The address that the command prints."""
    command = [sys.executable, "-m", "cepheid.cli", "lab", "--no-browser", "-q", QUERY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        yield running.stdout.readline().strip()
        running.terminate()


@pytest.fixture
def page(browser: Browser, lab: str) -> Iterator[Page]:
    """The lab with four events. A message of the console fails the test."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(WAIT)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(lab)
    write_events(page, EVENTS)
    expect(page.locator("#status")).to_have_text(re.compile("1 match in 4 events"), timeout=WAIT)
    yield page
    assert said == []
    context.close()


def write_events(page: Page, text: str) -> None:
    page.click("#as-text")
    expect(page.locator("#events-text")).not_to_have_value("", timeout=WAIT)
    page.fill("#events-text", text)
    count = text.count("@")
    expect(page.locator("#status")).to_contain_text(f"in {count:,} events", timeout=WAIT)
    page.click("#as-lanes")


def write_query(page: Page, text: str) -> None:
    """Returns when the page has matched it."""
    known = page.evaluate("Number(document.getElementById('status').dataset.version)")
    page.fill("[aria-label=Query]", text)
    wait_until(
        page, "known => Number(document.getElementById('status').dataset.version) > known", known
    )


def wait_until(page: Page, expression: str, arg: object = None) -> None:
    """`wait_for_function` would evaluate text inside the page, which its policy forbids."""
    for _ in range(WAIT // 50):
        if page.evaluate(expression, arg):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}")


def status(page: Page, text: str) -> None:
    expect(page.locator("#status")).to_contain_text(text, timeout=WAIT)


def test_typing_matches_again(page: Page) -> None:
    write_query(page, QUERY.replace("b.x > a.x", "b.x < a.x"))
    status(page, "1 match in 4 events")
    page.click("tr[data-match='0']")
    expect(page.locator("circle.lit")).to_have_count(2)
    assert page.locator("circle.lit").first.get_attribute("data-row") == "2"
    write_query(page, QUERY.replace("b.x > a.x", "b.x <> a.x"))
    status(page, "2 matches in 4 events")


def test_a_mistake_is_marked_and_explained(page: Page) -> None:
    write_query(page, QUERY.replace("b.x", "b.xx"))
    status(page, "1 mistake")
    assert "".join(page.locator("#editor .wrong").all_inner_texts()) == "b.xx"
    expect(page.locator("#findings")).to_contain_text("CEP204")
    expect(page.locator("#findings")).to_contain_text("did you mean `x`")
    expect(page.locator("#panel")).to_contain_text("These are the matches before the last change.")
    assert "-0" not in page.locator("text.tick").all_inner_texts()
    write_query(page, QUERY)
    status(page, "1 match")
    expect(page.locator("#editor .wrong")).to_have_count(0)


def test_completion(page: Page) -> None:
    page.fill("[aria-label=Query]", "")
    page.locator("[aria-label=Query]").press_sequentially("PATTERN A a ; B b WHERE b.")
    expect(page.locator("#completions li")).to_have_count(3)  # ts, type, x
    page.keyboard.type("x")
    expect(page.locator("#completions")).to_be_hidden()
    page.keyboard.type(" > 6 with")
    expect(page.locator("#completions b").first).to_have_text("WITHIN")
    page.keyboard.press("Enter")
    page.keyboard.type(" 10")
    status(page, "1 match in 4 events")


def test_dragging_an_event(page: Page) -> None:
    """The A at 1 comes to stand behind the B at 3."""
    one, other = (page.locator(f"circle[data-row='{row}']").bounding_box() for row in (0, 2))
    assert one is not None and other is not None
    page.mouse.move(one["x"] + 4, one["y"] + 4)
    page.mouse.down()
    page.mouse.move((one["x"] + other["x"]) / 2, one["y"] + 4, steps=8)
    page.mouse.up()
    status(page, "0 matches in 4 events")
    page.click("#as-text")
    expect(page.locator("#events-text")).to_have_value(re.compile(r"^A@(9|10|11|12)\(x=5\)"))


def test_adding_and_editing_an_event(page: Page) -> None:
    page.click("#add-event")
    status(page, "in 5 events")
    page.fill(".fields [aria-label=ts]", "2")
    page.fill(".fields [aria-label=type]", "B")
    page.fill(".fields [aria-label=x]", "9")
    page.keyboard.press("Enter")
    status(page, "2 matches in 5 events")
    page.click("text=Delete event")
    status(page, "1 match in 4 events")


def test_why_not_and_its_change(page: Page) -> None:
    page.click("circle[data-row='2']")
    page.click("circle[data-row='3']")
    page.click("#ask-why-not")
    expect(page.locator("#panel")).to_contain_text("These events don't match together.")
    expect(page.locator("#panel")).to_contain_text("b.x is 4")
    page.click("#apply")
    status(page, "2 matches in 4 events")


def test_typed_values_may_have_another_type(page: Page) -> None:
    """`x` was a number."""
    write_query(page, "PATTERN A a ; B b WHERE [x] WITHIN 10")
    write_events(page, "A@1(x='ann') B@2(x='ann') B@3(x='bob')")
    status(page, "1 match in 3 events")
    write_events(page, "A@1(x=1.5) B@2(x=1.5) B@3(x=2)")
    status(page, "1 match in 3 events")


def test_a_link_opened_in_a_new_page(page: Page, browser: Browser) -> None:
    write_query(page, QUERY + "  -- to pass on")
    status(page, "1 match in 4 events")
    wait_until(page, "location.hash.length > 20")
    before = page.evaluate("location.hash")
    write_events(page, "A@1(x=1) B@2(x=2) B@3(x=3)")
    status(page, "2 matches in 3 events")
    wait_until(page, "before => location.hash !== before", before)
    context = browser.new_context()
    context.set_default_timeout(WAIT)
    other = context.new_page()
    other.goto(page.url)
    status(other, "2 matches in 3 events")
    assert other.input_value("[aria-label=Query]").endswith("-- to pass on")
    other.goto(page.url.split("#")[0] + "#damaged")
    other.reload()
    status(other, "in 2 events")  # those that the command began with
    context.close()


def test_a_slow_lab_loses_nothing(browser: Browser, lab: str) -> None:
    """What is clicked before the page has begun, and typed before the text of the events came."""
    context = browser.new_context()
    context.set_default_timeout(WAIT)
    page = context.new_page()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/start", hold)
    page.goto(lab)
    wait_until(page, "document.getElementById('status').textContent === 'starting'")
    expect(page.locator("main")).to_have_attribute("inert", "")
    page.route("**/ask/write", hold)
    held.pop().continue_()
    page.click("#as-text")
    page.fill("#events-text", EVENTS)
    page.wait_for_timeout(300)
    held.pop().continue_()
    status(page, "in 4 events")
    expect(page.locator("#events-text")).to_have_value(EVENTS)
    context.close()


def test_editing_a_moment(page: Page) -> None:
    page.select_option("#snippets", "0")  # ann fails three times, then she logs in at 10:04
    status(page, "1 match in 6 events")
    page.click("circle[data-row='4']")
    page.fill(".fields [aria-label=ts]", "2026-03-02 10:02:30")
    page.keyboard.press("Tab")
    status(page, "0 matches in 6 events")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "type"
    page.fill(".fields [aria-label=ts]", "soon")
    page.keyboard.press("Tab")
    expect(page.locator(".fields [aria-label=ts]")).to_have_attribute("aria-invalid", "true")
    page.fill(".fields [aria-label=ts]", "2026-03-02T10:09:59.999")
    page.keyboard.press("Tab")
    status(page, "1 match in 6 events")


@pytest.mark.parametrize("tab", ["why", "funnel", "plan", "python", "command", "case"])
def test_the_panels(page: Page, tab: str) -> None:
    page.click(f"#tab-{tab}")
    told = {"why": "Nearest misses", "funnel": "of first", "plan": "SEQ", "python": "cep.match"}
    told |= {"command": "cepheid run", "case": "matches  a1 b3"}
    expect(page.locator("#panel")).to_contain_text(told[tab], timeout=WAIT)


def test_markup_in_values_and_queries_does_nothing(page: Page) -> None:
    mean = "<img src=x onerror=\"document.title=''mean''\">"
    write_events(page, f"A@1(s='{mean}', x=1) B@2(s='{mean}', x=2) `{mean.replace(chr(39), '')}`@3")
    page.fill(
        "[aria-label=Query]", f"PATTERN A a ; B b WHERE a.s = '{mean}' WITHIN 9 RETURN a.s, b.x"
    )
    status(page, "1 match in 3 events")
    for tab in ("matches", "why", "funnel", "plan", "python", "command"):
        page.click(f"#tab-{tab}")
        expect(page.locator("#panel")).to_contain_text("img", timeout=WAIT)
    assert page.locator("img:not(header img)").count() == 0
    assert page.title() == "Cepheid lab"


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_scrolls_sideways(browser: Browser, lab: str, width: int, scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
    )
    context.set_default_timeout(WAIT)
    page = context.new_page()
    page.goto(lab)
    for recipe in ("1", "6", "10"):
        page.select_option("#snippets", recipe)
        page.wait_for_timeout(300)
        for tab in ("matches", "why", "plan", "command"):
            page.click(f"#tab-{tab}")
            page.wait_for_timeout(200)
            assert page.evaluate("document.documentElement.scrollWidth") == width
    context.close()


def test_five_thousand_events(browser: Browser, lab: str) -> None:
    """They are drawn as bars, and matched at every change."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(WAIT)
    page = context.new_page()
    page.goto(lab)
    write_events(page, " ".join(f"{'AB'[n % 2]}@{n}(x={n % 7})" for n in range(5000)))
    for low in range(3):
        write_query(page, f"PATTERN A a ; B b WHERE b.x > a.x + {low} WITHIN 4")
        status(page, "in 5,000 events")
    expect(page.locator("rect.many").first).to_be_visible()
    context.close()


# ── beside a stream ──────────────────────────────────────────────────────────


def add_events(place: Path, name: str, *events: tuple[int, str, int]) -> None:
    rows = [{"ts": NOON + timedelta(seconds=s), "type": t, "x": x} for s, t, x in events]
    pq.write_table(pa.Table.from_pylist(rows), place / f".{name}")
    (place / f".{name}").rename(place / name)


@contextmanager
def streaming(place: Path) -> Iterator[str]:
    """A stream with its page; the address of that."""
    command = [
        sys.executable,
        "-m",
        "cepheid.cli",
        "run",
        "-q",
        f"{QUERY} seconds RETURN b.x AS high",
    ]
    command += ["--stream", "--input", "in", "--time", "ts", "--type", "type", "--page"]
    command += ["--output", "found", "--checkpoint", "state", "--trigger", "1 second"]
    with subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stderr is not None
            told = (line for line in running.stderr if line.startswith("page: "))
            yield next(told).split()[-1]
        finally:
            running.send_signal(signal.SIGINT)
            assert running.stderr is not None
            running.stderr.read()


def test_the_page_beside_a_running_stream(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    add_events(tmp_path / "in", "1.parquet", (0, "A", 1), (2, "B", 5))
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    with streaming(tmp_path) as place:
        page.goto(place)
        add_events(tmp_path / "in", "2.parquet", (60, "A", 1))  # time goes on
        newest, tiles = page.locator("#newest"), page.locator("#tiles")
        expect(newest).to_contain_text("high", timeout=STREAM_WAIT)
        expect(newest.locator("tbody tr")).to_have_count(1)
        corners = page.locator(".under").first.get_attribute("points") or ""
        assert corners.startswith("0,96 0,") and corners.endswith(" 1000,96")
        expect(tiles).to_contain_text("events per second")
        add_events(tmp_path / "in", "3.parquet", (62, "B", 9), (120, "A", 1), (-600, "A", 1))
        expect(newest.locator("tbody tr")).to_have_count(2, timeout=STREAM_WAIT)
        expect(page.locator("#status.good")).to_contain_text("batch")
    expect(page.locator("#status")).to_contain_text("no answer", timeout=STREAM_WAIT)
    with streaming(tmp_path) as again:
        assert again == place
        add_events(tmp_path / "in", "4.parquet", (122, "B", 7), (180, "A", 1))
        expect(newest.locator("tbody tr")).to_have_count(3, timeout=STREAM_WAIT)
        expect(page.locator("#status")).to_contain_text("run 2 of this checkpoint")
        for width in (1200, 400):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") == width
    context.close()
