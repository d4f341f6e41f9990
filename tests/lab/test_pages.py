"""The application over HTTP, without a browser: who gets in, and what is refused."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator

import httpx2
import pytest
from starlette.testclient import TestClient

from cepheid.lab.gate import LARGEST
from cepheid.lab.pages import STATIC, lab_app
from cepheid.lab.server import address, listening, serving
from cepheid.lab.words import example
from tests.lab.situations import situation

TOKEN = "a-token-of-the-tests"
MEAN = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def page() -> Iterator[TestClient]:
    with TestClient(lab_app(example(), TOKEN), base_url="http://127.0.0.1:8000") as client:
        yield client


def test_the_page_and_its_files_are_behind_the_token(page: TestClient) -> None:
    for path in ("", "static/lab.js", "static/lab.css", "static/live.js", "start"):
        assert page.get(f"/{TOKEN}/{path}").status_code == 200, path
        for wrong in (f"/{path}", f"/{TOKEN}x/{path}", f"/{TOKEN[:-1]}/{path}", f"//{path}"):
            assert page.get(f"http://127.0.0.1:8000{wrong}").status_code == 403, wrong
    assert "the address lacks the token" in page.get("/").text
    assert page.get(f"/{TOKEN}/static/../gate.py").status_code == 404
    assert page.get(f"/{TOKEN}/static/%2e%2e/gate.py").status_code == 404
    assert page.get(f"/{TOKEN}/nothing").status_code == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8000", "localhost.evil", ""]
)
def test_other_names_of_this_machine_are_refused(page: TestClient, host: str) -> None:
    """A page elsewhere may have a name that leads here."""
    assert page.get(f"/{TOKEN}/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "localhost"])
def test_its_own_names_are_not(page: TestClient, host: str) -> None:
    assert page.get(f"/{TOKEN}/", headers={"host": host}).status_code == 200


def test_another_page_may_not_ask(page: TestClient) -> None:
    ask = f"/{TOKEN}/ask/read"
    refused = page.post(ask, json={"text": "A@1"}, headers={"origin": "http://evil.example"})
    assert refused.status_code == 403
    own = page.post(ask, json={"text": "A@1"}, headers={"origin": "http://127.0.0.1:8000"})
    assert own.json()["events"]["rows"] == [[1, "A"]]


def test_nothing_is_loaded_from_elsewhere(page: TestClient) -> None:
    policy = page.get(f"/{TOKEN}/").headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy
    assert page.get(f"/{TOKEN}/").headers["referrer-policy"] == "no-referrer"
    assert page.get("/").headers["x-content-type-options"] == "nosniff"
    for file in STATIC.iterdir():
        text = file.read_text()
        for place in ("http://", "https://", "//cdn"):
            known = text.replace("http://www.w3.org/2000/svg", "")
            assert place not in known, f"{file.name} has {place}"


def test_what_is_too_large_is_refused_with_a_sentence(page: TestClient) -> None:
    body = b'{"text": "' + b"A" * (10 << 20) + b'"}'
    told = page.post(f"/{TOKEN}/ask/read", content=body)
    assert told.status_code == 413
    assert told.text == f"that is more than the lab takes at once: at most {LARGEST >> 20} MB"

    def untold() -> Iterator[bytes]:
        for start in range(0, len(body), 1 << 20):
            yield body[start : start + (1 << 20)]

    assert page.post(f"/{TOKEN}/ask/read", content=untold()).status_code == 413
    long = page.post(f"/{TOKEN}/ask/match", json=situation("PATTERN " + "A a ; " * 400_000))
    assert "diagnostics" in long.json() or "problem" in long.json()


@pytest.mark.parametrize(
    "task, body",
    [
        ("match", b"not JSON"),
        ("match", b"[" * 100_000),
        ("match", b"[]"),
        ("match", b'{"query": 5, "events": {}, "time": "ts"}'),
        ("match", json.dumps(situation(time="nothing")).encode()),
        ("match", json.dumps(situation(type=5)).encode()),
        ("match", json.dumps(situation(unit="ells")).encode()),
        ("match", json.dumps(situation(params=[1])).encode()),
        ("match", json.dumps(situation("(" * 50_000)).encode()),
        ("read", b'{"text": 5}'),
        ("write", b"{}"),
        ("why", b"null"),
    ],
)
def test_odd_requests_get_a_sentence(page: TestClient, task: str, body: bytes) -> None:
    answer = page.post(f"/{TOKEN}/ask/{task}", content=body)
    assert answer.status_code == 200
    given = answer.json()
    assert given.get("problem") or given.get("diagnostics")
    assert "the lab failed" not in given.get("problem", "")


def test_there_are_no_other_questions(page: TestClient) -> None:
    assert page.post(f"/{TOKEN}/ask/quit", json={}).status_code == 404
    assert page.get(f"/{TOKEN}/ask/match").status_code == 405


def test_markup_stays_text(page: TestClient) -> None:
    quoted = MEAN.replace("'", "''")
    given = situation(
        f"PATTERN A a ; B b WHERE a.s = '{quoted}' AND b.x > 5 WITHIN 10",
        f"A@1(s='{quoted}') B@2(x=3)",
    )
    for task in ("why", "funnel", "plan"):
        html = page.post(f"/{TOKEN}/ask/{task}", json=given).json()["html"]
        assert "<img" not in html and "&lt;img" in html, task


def test_a_question_that_takes_too_long_is_given_up() -> None:
    """The lab goes on."""
    app = lab_app(example(), TOKEN, seconds=2)
    events = " ".join(f"A@{n}(x={n})" for n in range(60))
    endless = situation("PATTERN A{5,} a SUBSETS WHERE sum(a.x) < 0 WITHIN 1000", events)
    with TestClient(app, base_url="http://localhost") as client:
        stopped = client.post(f"/{TOKEN}/ask/match", json=endless).json()
        assert "took more than 2 seconds or too much memory" in stopped["problem"]
        found = client.post(f"/{TOKEN}/ask/match", json=situation()).json()
        assert len(found["matches"]) == 1


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_requests_at_once_are_bounded(count: int) -> None:
    at = listening(0)
    place = address(at, TOKEN)
    body = json.dumps(situation()).encode()

    async def ask(client: httpx2.AsyncClient) -> int:
        return (await client.post(place + "ask/match", content=body)).status_code

    async def all_of_them() -> Counter[int]:
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(limits=limits, timeout=60) as client:
            codes = await asyncio.gather(*(ask(client) for _ in range(count)))
            last = await client.post(place + "ask/match", content=body)
            assert len(last.json()["matches"]) == 1
            return Counter(codes)

    with serving(lab_app(example(), TOKEN), at):
        codes = asyncio.run(all_of_them())
    assert codes.keys() <= {200, 503} and codes[200] and codes[503], codes
