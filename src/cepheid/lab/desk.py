"""Questions for the process that answers: one at a time, the newest first, none for too long."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections import defaultdict
from contextlib import suppress

PATIENCE = 1.0
"""Seconds after which a question gives way to a newer one of its kind."""


class Superseded(Exception):
    """A newer question of the same kind has come."""


class GivenUp(Exception):
    """The answer took too long, and was given up."""


class Desk:
    """A process that answers. It is started again after a question that had to be given up."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self._process: Process | None = None
        self._opening: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._newest: dict[str, int] = defaultdict(int)
        self._newer = asyncio.Condition()

    async def ask(self, task: str, body: bytes) -> bytes:
        """The answer as JSON. Of the questions of a kind that wait, only the newest is sent."""
        async with self._newer:
            self._newest[task] += 1
            number = self._newest[task]
            self._newer.notify_all()
        async with self._lock:
            if number != self._newest[task]:
                raise Superseded
            return await self._answer(task, number, body)

    def open(self) -> None:
        """Start the process in the background, so that the first question needn't wait for that."""
        self._opening = asyncio.create_task(self._open())

    async def _open(self) -> None:
        async with self._lock:
            await self._started()

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            self._process = None

    async def _answer(self, task: str, number: int, body: bytes) -> bytes:
        process = await self._started()  # this takes as long as it takes
        answer = asyncio.create_task(self._exchange(process, task, body))
        newer = asyncio.create_task(self._outdated(task, number))
        try:
            await asyncio.wait(
                {answer, newer}, timeout=self.deadline, return_when=asyncio.FIRST_COMPLETED
            )
            if answer.done():
                return await answer
            await self.close()
            raise Superseded if newer.done() else GivenUp
        except asyncio.CancelledError:
            await self.close()
            raise
        finally:
            for waiting in (answer, newer):
                waiting.cancel()
            await asyncio.gather(answer, newer, return_exceptions=True)

    async def _outdated(self, task: str, number: int) -> None:
        """Wait until there is a newer question, and the patience is over."""
        await asyncio.sleep(PATIENCE)
        async with self._newer:
            await self._newer.wait_for(lambda: self._newest[task] != number)

    async def _exchange(self, process: Process, task: str, body: bytes) -> bytes:
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(f"{task} {len(body)}\n".encode() + body)
            await process.stdin.drain()
            length = int(await process.stdout.readline())
            return await process.stdout.readexactly(length)
        except (ConnectionError, ValueError, asyncio.IncompleteReadError):
            await self.close()  # it has died: of its memory, mostly
            raise GivenUp from None

    async def _started(self) -> Process:
        """The process, when it has loaded what it needs and says so by an empty line."""
        if self._process is None or self._process.returncode is not None:
            # A session of its own: Ctrl-C at the terminal is for the server, which then ends it.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "cepheid.lab.answers_process",
                stdin=PIPE, stdout=PIPE, start_new_session=True,
            )  # fmt: skip
            assert self._process.stdout is not None
            await self._process.stdout.readline()
        return self._process
