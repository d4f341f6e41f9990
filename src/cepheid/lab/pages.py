"""The application: the page, its files, and the requests that it sends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from cepheid.lab.answers_process import TASKS
from cepheid.lab.desk import Desk, GivenUp, Superseded
from cepheid.lab.gate import Gate
from cepheid.lab.live import Live
from cepheid.lab.situations.situation import Situation
from cepheid.lab.words import snippets, words

STATIC = Path(str(files("cepheid.lab") / "static"))

QUICK = ("match", "read", "write")
"""Requests of the page while one types. The others take longer, and have a process of their own."""

MATCH_SECONDS, REPORT_SECONDS = 5.0, 20.0


def lab_app(situation: Situation, token: str, seconds: float = MATCH_SECONDS) -> Gate:
    """The page to try patterns in; it begins with this situation. A match that takes longer is
    given up."""
    quick, slow = Desk(seconds), Desk(REPORT_SECONDS)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        quick.open()
        slow.open()
        try:
            yield
        finally:
            await quick.close()
            await slow.close()

    async def ask(request: Request) -> Response:
        task = request.path_params["task"]
        if task not in TASKS:
            return PlainTextResponse(f"the lab has no {task}", 404)
        desk = quick if task in QUICK else slow
        try:
            answer = await desk.ask(task, await request.body())
        except Superseded:
            return JSONResponse({"superseded": True})  # an error would stand in the console
        except GivenUp:
            return JSONResponse({"problem": _too_long(desk.deadline)})
        return Response(answer, media_type="application/json")

    async def start(_: Request) -> Response:
        return JSONResponse(
            {
                "situation": situation.to_dict(),
                "words": words(situation),
                "snippets": list(snippets()),
            }
        )

    routes = [Route("/start", start), Route("/ask/{task}", ask, methods=["POST"])]
    return Gate(Starlette(routes=[*routes, *_files("lab.html")], lifespan=life), token)


def live_app(live: Live, token: str) -> Gate:
    """The page beside a stream."""

    async def state(request: Request) -> Response:
        return JSONResponse(live.state(_number(request.query_params.get("after"))))

    return Gate(Starlette(routes=[Route("/state", state), *_files("live.html")]), token)


def _files(page: str) -> list[Any]:
    async def index(_: Request) -> Response:
        return FileResponse(STATIC / page, media_type="text/html")

    return [Route("/", index), Mount("/static", StaticFiles(directory=STATIC))]


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 19 else 0


def _too_long(seconds: float) -> str:
    return (
        f"this took more than {seconds:g} seconds or too much memory, and was stopped: take fewer "
        "events or a shorter window"
    )
