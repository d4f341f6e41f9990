"""Where a stream writes to: its output, its checkpoint and its dead letters."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from cepheid.cli.arguments import InputSource
from cepheid.cli.queries import Running, SeveralQueries, WatchedRules
from cepheid.cli.target import refuse_nested_places
from cepheid.errors import CepheidError, OptionError
from cepheid.files.formats import Format, is_local, is_pattern
from cepheid.files.guard import guard_of, mark_stream
from cepheid.options import DURATION
from cepheid.query import Query

ONCE, OFF = "once", "off"
LINES, ROWS, FILES = "lines", "rows", "files.jsonl"
"""The folders of dead letters: lines that are no events, rows that are late or ahead of the clock,
and files that couldn't be read."""

MATCHES, OUTPUTS, REJECTED, TIMEOUTS = "matches", "outputs", "rejected", "timeouts"
"""The names of streaming queries; `OUTPUTS` is the folder of several that find matches."""


@dataclass(frozen=True, slots=True)
class StreamTarget:
    """The options of a stream run; `queries` are the files. Of `several` queries, these are the
    names of their outputs."""

    output: Path
    format: Format
    checkpoint: Path
    rejected: Path
    timeouts: Path | None
    trigger: str | None
    watermark: str | None
    future: str | None
    idle: str | None
    heartbeat: str | None
    max_files: int | None
    queries: Sequence[Path] = ()
    page: bool = False
    several: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, text, word in (
            ("--trigger", self.trigger, ONCE),
            ("--watermark", self.watermark, None),
            ("--future", self.future, OFF),
            ("--idle", self.idle, None),
            ("--heartbeat", self.heartbeat, None),
        ):
            if text is not None and text != word and not DURATION.fullmatch(text):
                also = "" if word is None else f" or {word}"
                raise typer.BadParameter(f"{name} is like '10 seconds'{also}, not {text!r}")

    def places(self) -> dict[str, Path]:
        """The output folders by option. The folder of rejected rows may be inside the
        checkpoint."""
        named = {"--output": self.output, "--checkpoint": self.checkpoint}
        if not self.rejected.resolve().is_relative_to(self.checkpoint.resolve()):
            named["--rejected"] = self.rejected
        return named if self.timeouts is None else {**named, "--timeouts": self.timeouts}

    @property
    def outputs(self) -> dict[str, Path]:
        """The folder of matches of each streaming query that finds some, by its name."""
        if not self.several:
            return {MATCHES: self.output}
        ending = self.format.value
        return {f"{OUTPUTS}/{name}": self.output / f"{name}.{ending}" for name in self.several}

    def title(self, name: str) -> str:
        """What is put before the figures of one of several."""
        return f"{name.removeprefix(OUTPUTS)[1:]}: " if self.several else ""

    @property
    def sinks(self) -> dict[str, Path]:
        """The folder that each streaming query writes."""
        sinks = {**self.outputs, REJECTED: self.rejected / LINES}
        return sinks if self.timeouts is None else {**sinks, TIMEOUTS: self.timeouts}

    def place(self, query: str) -> Path:
        """The checkpoint of one of the streaming queries."""
        return self.checkpoint / "queries" / query

    @property
    def begun(self) -> bool:
        """Whether a run has come so far that it can be resumed."""
        return any(self.place(name).exists() for name in (MATCHES, OUTPUTS))

    @property
    def versions(self) -> Path:
        """The folder of rule versions, if rules run."""
        return self.checkpoint / "rules"


@contextmanager
def marked(target: StreamTarget) -> Iterator[None]:
    """The folders that the stream writes to. New ones are removed if it can't begin, since its
    query doesn't fit the files, or since it is interrupted."""
    new = [folder for folder in target.places().values() if mark_stream(folder)]
    try:
        yield
    except (CepheidError, KeyboardInterrupt):
        if not target.begun:
            for folder in new:
                shutil.rmtree(folder)
        raise


def refuse_places(sources: Sequence[InputSource], target: StreamTarget) -> None:
    for source in sources:
        if not is_local(source.path) or is_pattern(source.path):
            continue
        if not Path(source.path).exists():
            raise FileNotFoundError(2, "No such folder", source.path)
        if not Path(source.path).is_dir():
            raise OptionError(
                f"--input {source.path}: a stream is a folder to which files are added, or a "
                "pattern of names"
            )
    guard = guard_of([*(s.path for s in sources), *target.queries], overwrite=False)
    places = target.places()
    refuse_nested_places({option: str(path) for option, path in places.items()})
    for option, path in places.items():
        guard.check_stream(path, option)
    for query, folder in target.sinks.items():
        # Spark would take the batches for those that the folder has, and write nothing.
        if (folder / "_spark_metadata").exists() and not target.place(query).exists():
            raise OptionError(
                f"{folder} has the output of another run, with another checkpoint: use that "
                "checkpoint, or write to another folder"
            )


def refuse_other(query: Running, target: StreamTarget) -> None:
    """Refuse the checkpoint of another kind of run."""
    if not target.begun:
        return
    if target.versions.exists():
        was = "a set of rules"
    else:
        was = "a query" if target.place(MATCHES).exists() else "several queries"
    match query:
        case WatchedRules():
            now = "a set of rules"
        case Query():
            now = "a query"
        case SeveralQueries():
            now = "several queries"
    if was != now:
        raise OptionError(
            f"{target.checkpoint} is the checkpoint of {was}, and this is {now}: start with "
            "another checkpoint and another output"
        )
