"""A campaign: files come, faults happen, the command is started again, and all is compared."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaign.account import (
    expected_matches,
    read_matches,
    total,
    wrong_changes,
    wrong_files,
    wrong_letters,
    wrong_matches,
)
from tests.campaign.disk import Disk
from tests.campaign.draws import Draws, T
from tests.campaign.driver import Checkpoint, Driver, until
from tests.campaign.events import BEGIN, COLUMNS, DELAY, Fate, Source
from tests.campaign.faults import FAULTS
from tests.campaign.rules import Rules
from tests.campaign.scenarios import CHANGING, Scenario

FORMATS = ("parquet", "json", "csv")
LOCAL = ("local[2]", "local[2,4]")
CLUSTER = "local-cluster[2,1,1024]"
"""The master that has executors of their own, which can be killed."""

MORE = 5.0
HANGS = 300.0
"""Seconds in which a command must get somewhere; machines may be busy."""

MOST_STARTS = 6
"""With which all files must be done at the end: a start may fail, if Python takes too long to."""


@dataclass
class Campaign:
    """`place` is the folder of all that is written. `format` and `master` are drawn if they aren't
    given. `draws` are those of the campaigns before this one, too. `done` counts what has
    happened."""

    scenario: Scenario
    seed: int
    place: Path
    faults: Sequence[str] = tuple(FAULTS)
    format: str | None = None
    master: str = ""
    draws: Draws = field(default_factory=Draws)
    driver: Driver | None = None
    left: list[Driver] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.began = time.monotonic()
        self.chance = random.Random(f"{self.scenario.name}/{self.seed}")
        self.place.mkdir(parents=True, exist_ok=True)
        format = "parquet" if self.scenario.before else self.format or self.draw(FORMATS)
        self.faults = [name for name in self.faults if self.scenario.suffers(name)]
        self.source = Source(self.place / "in", format, self.scenario.streams, self.chance)
        self.disk = Disk(self.place / "disk", small="disk" in self.faults)
        self.checkpoint = Checkpoint(self.disk.folder / "state")
        self.rules = Rules(self.place / "rules", self.scenario)
        masters = [*LOCAL, *([CLUSTER] if "executor" in self.faults else [])]
        self.master = self.master or self.draw(masters)
        self.most = self.draw((1, 3, 10))

    def draw(self, options: Sequence[T]) -> T:
        return self.draws.draw(options, self.chance)

    # ── the command ──

    def command(self, *more: str) -> list[str]:
        source, inputs = self.source, list[str]()
        if self.scenario.before:
            return self._program(*more)
        for folder in source.folders:
            named = f"{folder.name}=" if source.streams else ""
            inputs += ["--input", f"{named}{folder}", "--schema", f"{named}{COLUMNS}"]
        kind = [] if source.streams else ["--type", "type"]
        return [
            *("run", str(self.rules.path), "--stream", "--time", "ts", *kind, *inputs),
            *("--input-format", source.format, "--output", str(self.disk.folder / "found")),
            *("--checkpoint", str(self.checkpoint.folder), "--watermark", f"{DELAY} seconds"),
            *self._common(*more),
        ]

    def _program(self, *more: str) -> list[str]:
        """The command runs no queries that read each other's matches."""
        places = [
            *("--queries", str(self.rules.path), "--input", str(self.source.folder)),
            *("--output", str(self.disk.folder / "found")),
            *("--checkpoint", str(self.checkpoint.folder), "--watermark", f"{DELAY} seconds"),
        ]
        return [*places, *self._common(*more)]

    def _common(self, *more: str) -> list[str]:
        return [*("--max-files", str(self.most), "--buckets", "2", "--master", self.master, *more)]

    @property
    def log(self) -> Path:
        return self.place / "log"

    def start(self, *more: str) -> Driver:
        self.done["starts"] += 1
        module = "tests.campaign.chain_stream" if self.scenario.before else "cepheid.cli"
        started = Driver([module, *self.command(*more)], self.place, self.log)
        self.left.append(started)
        return started

    def tell(self, text: str) -> None:
        print(f"[{time.monotonic() - self.began:6.1f} s] {text}", flush=True)

    # ── what happens ──

    def run(self, seconds: float) -> list[str]:
        """What was wrong at the end; all of it has been printed."""
        self.tell(
            f"{self.scenario.name}, seed {self.seed}: {self.source.format}, {self.master}, at most "
            f"{self.most} files in a batch, in {self.place}"
        )
        wrong = ["it ended early"]
        try:
            wrong = list(self._everything(seconds))
        finally:
            for driver in self.left:
                driver.kill_all()
            self.disk.close(self.place / "kept" if wrong else None)
        for text in wrong:
            self.tell(f"WRONG {text}")
        self.done["differences"] += len(wrong)
        self.tell(f"{'WRONG' if wrong else 'right'}: {self.scenario.name}, seed {self.seed}")
        self.tell(figures(self.done))
        return wrong

    def _everything(self, seconds: float) -> Iterator[str]:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.rules.look(self.source.rows, self.checkpoint.folder)
            self._feed()
            self._keep_running()
            yield from self._get_somewhere()
            for _ in range(self.chance.randrange(1, 4)):
                self._strike()
        yield from self._finish()
        yield from self._compare()

    def _feed(self) -> None:
        source = self.source
        for _ in range(self.chance.randrange(1, 5)):
            odd = [fate for fate in source.odd_fates if self.chance.random() < 0.2]
            self.tell(f"a file with {source.add(odd)}")

    def _keep_running(self) -> None:
        if self.driver is not None and self.driver.running:
            return
        if self.driver is not None:
            last = (self.driver.said.strip().splitlines() or [""])[-1]
            self.tell(f"the command has ended with {self.driver.process.returncode}: {last[:150]}")
            if self.chance.random() < 0.5:  # or else what it has left behind goes on for a while
                self.driver.kill_all()
        self.driver = self.start()
        self.tell("the command is started")

    def _get_somewhere(self) -> Iterator[str]:
        """Some batches further, or to its end; files are waiting, so there must be one."""
        assert self.driver is not None
        driver, before = self.driver, self.checkpoint.begun()
        wanted = before + self.chance.randrange(1, 4)
        if not until(lambda: not driver.running or self.checkpoint.begun() > before, HANGS):
            yield "the command hangs: files are waiting, and no batch is begun"
        until(lambda: not driver.running or self.checkpoint.begun() >= wanted, MORE)
        time.sleep(self.chance.random() * 2)

    def _strike(self) -> None:
        assert self.driver is not None
        possible = [name for name in self.faults if self._is_possible(name)]
        if not self.driver.running or not possible:
            return  # a command that has ended by itself is started again first
        fault = self.draw(possible)
        self.done["faults"] += 1
        self.tell(f"{fault}: {FAULTS[fault](self, self.driver)}")

    def _is_possible(self, fault: str) -> bool:
        match fault:
            case "executor":
                return self.master == CLUSTER
            case "rules":
                return bool(self.scenario.changing)
            case "late":
                return self.late_second() is not None
            case _:
                return True

    def _finish(self) -> Iterator[str]:
        """All that is there is matched, however often it takes."""
        if self.driver is not None and self.driver.running:
            self.driver.signal(signal.SIGTERM)
            if self.driver.wait(HANGS) is None:
                yield "SIGTERM doesn't stop the command"
        for driver in self.left:
            driver.kill_all()
        self.tell(f"a file with {self.source.add_end()}")
        said = ""
        for _ in range(MOST_STARTS):
            self.driver = self.start("--trigger", "once")
            code = self.driver.wait(HANGS)
            said = self.driver.said.strip()
            self.tell(f"a last run ended with {code}: {said[-400:]}")
            self.driver.kill_all()
            if code in (0, 3):
                return
        yield f"the last run fails again and again: {said[-2000:]}"

    def _compare(self) -> Iterator[str]:
        source, taken = self.source, self.source.fates[Fate.TAKEN]
        found = read_matches(self.scenario, self.disk.folder / "found")
        expected = expected_matches(self.scenario, taken)
        fates = ", ".join(f"{len(rows)} {f.value}" for f, rows in source.fates.items() if rows)
        self.tell(f"rows: {fates}; SQL finds {total(expected)} matches, the stream {total(found)}")
        self.done["files"] += source.files
        self.done["events"] += sum(map(len, source.fates.values()))
        self.done["matches compared"] += total(expected)
        for name, rows in expected.items():
            yield from wrong_matches(found[name], rows, name)
        if self.rules.versions:
            changing = found.get(CHANGING, Counter())
            yield from wrong_changes(changing, self.rules.versions, self.rules.last, source)
        if self.scenario.before:
            return
        rejected = self.checkpoint.folder / "rejected"
        yield from wrong_files(source, rejected)
        yield from wrong_letters(source, rejected)

    # ── what faults need ──

    def late_second(self) -> int | None:
        """A second that the watermark has passed for good, if it has any."""
        watermark = self.checkpoint.watermark()
        if not watermark:
            return None
        second = watermark // 1000 - int(BEGIN.timestamp())
        return second if second > 40 else None


def figures(done: Counter[str]) -> str:
    """What has happened so often.

    >>> figures(Counter({"starts": 3, "kills": 2_000}))
    '3 starts, 2,000 kills'
    """
    return ", ".join(f"{count:,} {what}" for what, count in done.items())
