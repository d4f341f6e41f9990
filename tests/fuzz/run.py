"""Many texts in several processes, each of which may die or hang."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from tests.fuzz.outcome import SECONDS, Finding, outcome
from tests.fuzz.smaller import smaller
from tests.fuzz.texts import Text, make

_HANGS = 60.0
"""Seconds without an answer after which a process is taken to hang."""

_TOLD = 300.0
"""Seconds between two reports of progress."""

_ADDRESSES = 6 << 30
"""Bytes of addresses that a process may use; beyond that comes a MemoryError."""

_SPAWN = multiprocessing.get_context("spawn")


@dataclass
class _Worker:
    """A process that tries every `step`th text from `number` on."""

    seed: int
    number: int
    last: int
    step: int
    process: BaseProcess = field(init=False)
    answers: Connection = field(init=False)
    heard: float = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.answers, sender = _SPAWN.Pipe(duplex=False)
        arguments = (self.seed, self.number, self.last, self.step, sender)
        self.process = _SPAWN.Process(target=_try, args=arguments, daemon=True)
        self.process.start()
        sender.close()
        self.heard = time.monotonic()


def run(texts: int, seed: int, first: int = 0, processes: int = 2) -> dict[str, Text]:
    """The findings, by their kind; they are printed when they are found."""
    began = told = time.monotonic()
    last = first + texts
    workers = [_Worker(seed, first + n, last, processes) for n in range(min(processes, texts))]
    became: Counter[str] = Counter()
    found: dict[str, Text] = {}
    while workers:
        for worker in list(workers):
            for answer in _answers(worker):
                worker.number += worker.step
                if isinstance(answer, str):
                    became[answer] += 1
                elif isinstance(answer, tuple):
                    became["found wrong"] += 1
                    finding, text = answer
                    _tell(finding, text, seed, found)
            if worker.number >= last:
                worker.process.join()
                workers.remove(worker)
            elif not worker.process.is_alive() or time.monotonic() - worker.heard > _HANGS:
                _tell(_death(worker), make(seed, worker.number), seed, found)
                worker.process.kill()
                worker.number += worker.step
                became["found wrong"] += 1
                worker.start()
        wait([w.answers for w in workers], timeout=1.0)
        if time.monotonic() - told > _TOLD:
            told = time.monotonic()
            print(f"{sum(became.values()):,} texts, {len(found)} kinds of findings", flush=True)
    minutes = (time.monotonic() - began) / 60
    print(f"{texts} texts (seed {seed}, from {first}) in {minutes:.1f} minutes:")
    for what, count in became.most_common():
        print(f"  {count:8}  {what}")
    print(f"{len(found)} kinds of findings")
    return found


def _answers(worker: _Worker) -> Iterator[str | tuple[Finding, Text]]:
    try:
        while worker.answers.poll():
            worker.heard = time.monotonic()
            yield worker.answers.recv()
    except EOFError:
        return


def _death(worker: _Worker) -> Finding:
    worker.process.join(0.1)
    code = worker.process.exitcode
    return Finding("hangs" if code is None else f"the process dies ({code})", "")


def _tell(finding: Finding, text: Text, seed: int, found: dict[str, Text]) -> None:
    if finding.kind in found:
        return
    found[finding.kind] = text
    shown = text.text if len(text.text) < 500 else f"{text.text[:500]}… ({len(text.text)})"
    print(f"FOUND {finding.kind}  [{text.kind}, seed {seed}, number {text.number}]", flush=True)
    print(f"  {finding.detail}\n  {shown!r}\n", flush=True)


def _try(seed: int, number: int, last: int, step: int, answers: Connection) -> None:
    """In a process of its own: an answer for every text."""
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    outcome("PATTERN A a ; B b WHERE a.x > b.x WITHIN 5", 60.0)  # loads what is loaded once
    known: set[str] = set()
    while number < last:
        text = make(seed, number)
        answer = outcome(text.text)
        if isinstance(answer, Finding) and answer.kind.startswith("slow"):
            answer = outcome(text.text, _patience() * SECONDS)
        if isinstance(answer, Finding):
            kind = answer.kind
            if kind not in known:
                known.add(kind)
                shrunk = smaller(text.text, lambda t, k=kind: _is(outcome(t), k))
                text = Text(text.number, text.kind, shrunk)
            answers.send((answer, text))
        else:
            answers.send(answer)
        number += step


def _patience() -> float:
    """Cores that are shared with other processes take longer for the same."""
    return 2.0 if os.getloadavg()[0] > (os.cpu_count() or 1) else 1.2


def _is(answer: Finding | str, kind: str) -> bool:
    return isinstance(answer, Finding) and answer.kind == kind
