"""The options that the commands share, and what `--input` and `--param` mean."""

from __future__ import annotations

import atexit
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated

import typer

from cepheid.files.bad_rows import UTF_8, BadRows
from cepheid.files.formats import STANDARD, Format, input_format

_NAMED = re.compile(r"([^\W\d]\w*)=(.+)", re.DOTALL)


class TimeUnit(StrEnum):
    """The possible units of an integer time column."""

    US = "us"
    MS = "ms"
    S = "s"
    MIN = "min"
    H = "h"
    D = "d"


class NegationMode(StrEnum):
    AUTO = "auto"
    PUSH = "push"
    TOP = "top"


class EngineName(StrEnum):
    AUTO = "auto"
    TREE = "tree"
    NFA = "nfa"


class Propagation(StrEnum):
    AUTO = "auto"
    PUSH = "push"
    LAZY = "lazy"
    PULL = "pull"
    PASS_DOWN = "pass-down"


QueryFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="QUERY.cep", exists=True, dir_okay=False, help="The file with the query.",
        show_default=False,
    ),
]  # fmt: skip
QueryOrRules = Annotated[
    Path | None,
    typer.Argument(
        metavar="QUERY", exists=True, show_default=False,
        help="The file with the query, or a folder of rules.",
    ),
]  # fmt: skip
QueryText = Annotated[
    str | None,
    typer.Option(
        "--query", "-q", metavar="TEXT", show_default=False,
        help="The query itself, instead of a file: -q 'PATTERN a ; b WITHIN 5 minutes'.",
    ),
]  # fmt: skip
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace an existing output. Inputs are never replaced."),
]
TextOutput = Annotated[
    Path,
    typer.Option(
        "--output", "-o", show_default="standard output", help="The file to write.",
    ),
]  # fmt: skip
QueryFiles = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="QUERY", exists=True, show_default=False,
        help="The file with the query; several, if one reads the matches of another; or a folder "
        "of rules.",
    ),
]  # fmt: skip
Inputs = Annotated[
    list[str],
    typer.Option(
        "--input", "-i", metavar="[NAME=]PATH", show_default=False,
        help="Events: a file, a folder, a pattern such as 'logs/*.csv.gz', or - for standard "
        "input. For several streams repeat it with the streams' names: --input trades=a.parquet "
        "--input news=b.csv.",
    ),
]  # fmt: skip
InputFormat = Annotated[
    Format | None,
    typer.Option(help="By default it follows from the file names."),
]
TimeColumn = Annotated[
    str, typer.Option(help="The column of the event time.", metavar="COLUMN", show_default=False)
]
TypeColumn = Annotated[
    str | None,
    typer.Option("--type", metavar="COLUMN", help="The column of the event type, if there is one."),
]
TieColumn = Annotated[
    str | None,
    typer.Option("--tie", metavar="COLUMN", help="The column that orders events of one time."),
]
StartColumn = Annotated[
    str | None,
    typer.Option(
        "--start", metavar="COLUMN",
        help="The column of the time at which an event starts, if events have a duration; --time "
        "is then when they end.",
    ),
]  # fmt: skip
Unit = Annotated[
    TimeUnit | None,
    typer.Option(help="The unit of an integer time, to allow WITHIN 10 seconds."),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", metavar="NAME=VALUE",
        help="The value of the query's :NAME. A number, true, false, null, or else text.",
    ),
]  # fmt: skip
PlanShape = Annotated[
    str,
    typer.Option(
        help="auto (the cheapest), left-deep, right-deep, or a tree over the variables: "
        "'(a (b c))'."
    ),
]
EngineKind = Annotated[
    EngineName | None,
    typer.Option(help="Trees of joins, automata (nfa), or the cheapest."),
]
NegationPlace = Annotated[
    NegationMode | None, typer.Option(help="Where negations are checked: pushed down, or on top.")
]
PropagationKind = Annotated[
    Propagation | None, typer.Option(help="How intermediate results move from input to output.")
]
StatisticsFile = Annotated[
    Path | None,
    typer.Option(
        "--stats", metavar="FILE.json", exists=True, dir_okay=False, show_default=False,
        help="Statistics of the data, from `cepheid analyze` or written by hand.",
    ),
]  # fmt: skip


OptionalInputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input", "-i", metavar="[NAME=]PATH",
        help="Events whose columns the query must fit; only their schema is read.",
    ),
]  # fmt: skip
AssumedTime = Annotated[str, typer.Option(help="The column of the event time.", metavar="COLUMN")]

Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", file_okay=False, rich_help_panel="Streams",
        help="Where a stream keeps its state, to resume after a stop.",
    ),
]  # fmt: skip
Trigger = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT", rich_help_panel="Streams", show_default="as soon as there are files",
        help="How often new files are read: '10 seconds'; or once, for the existing files.",
    ),
]  # fmt: skip
WatermarkDelay = Annotated[
    str | None,
    typer.Option(
        "--watermark", metavar="DURATION", rich_help_panel="Streams",
        help="How late events may arrive, such as '10 seconds': the stream waits for them. By "
        "default events are matched at once, and events out of order are late.",
    ),
]  # fmt: skip
Future = Annotated[
    str | None,
    typer.Option(
        "--future", metavar="DURATION", rich_help_panel="Streams",
        show_default="1 hour; 2 days for times without a zone",
        help="How far ahead of the clock an event may be. Events beyond it are rejected, and move "
        "no watermark. 'off' removes the limit.",
    ),
]  # fmt: skip
Until = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", show_default="for ever",
        help="How far time passes at the end of the data: to a time, or to the 'last event'. "
        "Matches that are undecided then are left out and counted.",
    ),
]  # fmt: skip
Threads = Annotated[
    int, typer.Option(min=1, help="How many threads match a large table, in process.")
]
Idle = Annotated[
    str | None,
    typer.Option(
        "--idle", metavar="DURATION", rich_help_panel="Streams", show_default="never",
        help="With a key and WITHIN n EVENTS: when a key that has no event is over and forgotten.",
    ),
]  # fmt: skip
Heartbeat = Annotated[
    str | None,
    typer.Option(
        "--heartbeat", metavar="DURATION", rich_help_panel="Streams", show_default="off",
        help="When nothing has come for so long, time advances with the clock and releases what "
        "waits for it. Events that come behind it are late.",
    ),
]  # fmt: skip
Buckets = Annotated[
    int | None,
    typer.Option(
        min=1, rich_help_panel="Streams", show_default="8",
        help="Number of buckets for the keys; it can't change with a checkpoint.",
    ),
]  # fmt: skip
MaxFiles = Annotated[
    int | None,
    typer.Option(
        min=1, rich_help_panel="Streams", show_default="all new files",
        help="The largest number of files in a batch.",
    ),
]  # fmt: skip
Schemas = Annotated[
    list[str] | None,
    typer.Option(
        "--schema", metavar="[NAME=]COLUMNS", rich_help_panel="Files of text",
        help="The types of columns, such as 'ts timestamp, user long'. Other types are inferred "
        "from samples of the files.",
    ),
]  # fmt: skip
BadRowsChoice = Annotated[
    BadRows,
    typer.Option(
        "--bad-rows", rich_help_panel="Files of text",
        help="What to do with a row whose cell doesn't fit its column: reject the row, stop "
        "(fail), read the cell as null, or keep such columns as text.",
    ),
]  # fmt: skip
TimeFormatText = Annotated[
    str | None,
    typer.Option(
        "--time-format", metavar="FORMAT", rich_help_panel="Files of text",
        help="The format of times that aren't ISO 8601: '%d.%m.%Y %H:%M:%S'.",
    ),
]  # fmt: skip
Encoding = Annotated[
    str,
    typer.Option(
        metavar="NAME", rich_help_panel="Files of text",
        help="The encoding of the files, such as latin-1.",
    ),
]  # fmt: skip
StateLimit = Annotated[
    int | None,
    typer.Option(
        "--limit", min=1, rich_help_panel="Streams",
        help="Fail if more events than this must be held in a bucket. Queries without WITHIN "
        "need it.",
    ),
]  # fmt: skip
Shed = Annotated[
    bool | None,
    typer.Option(
        "--shed", rich_help_panel="Streams",
        help="Beyond --limit, drop the oldest events and continue.",
    ),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class InputSource:
    """Where a stream's events are, and the options for its files. Without a name, it is the only
    stream."""

    name: str | None
    path: str
    chosen: Format | None = None
    declared: str | None = None
    time_format: str | None = None
    encoding: str = UTF_8
    bad_rows: BadRows = BadRows.REJECT

    @property
    def format(self) -> Format:
        """The chosen format, else the format of the files; Parquet by default."""
        return input_format(self.path, self.chosen) or Format.PARQUET


def parse_inputs(
    texts: Sequence[str],
    format: Format | None,
    schemas: Sequence[str] | None = None,
    time_format: str | None = None,
    encoding: str = UTF_8,
    bad_rows: BadRows = BadRows.REJECT,
) -> tuple[InputSource, ...]:
    """`PATH`, or `NAME=PATH` for each of several streams.

    A path with a `=` of its own, as in `day=3/events.csv`, is a path if it is there.
    """
    paths = {}
    for text in texts:
        named = None if Path(text).exists() else _NAMED.fullmatch(text)
        name, path = (named[1], named[2]) if named else (None, text)
        if name in paths:
            raise typer.BadParameter(
                "two inputs have the same name"
                if name
                else "with several inputs each needs a name: --input trades=a.parquet"
            )
        paths[name] = path
    if len(paths) > 1 and None in paths:
        raise typer.BadParameter("with several inputs each needs a name: --input trades=a.parquet")
    declared = parse_schemas(schemas or (), list(paths))
    return tuple(
        InputSource(
            name,
            spooled(format) if path == STANDARD else path,
            format,
            declared.get(name),
            time_format,
            encoding,
            bad_rows,
        )
        for name, path in paths.items()
    )


def reads_standard_input(texts: Sequence[str]) -> bool:
    return any(text == STANDARD or text.endswith(f"={STANDARD}") for text in texts)


def spooled(format: Format | None) -> str:
    """Standard input copied to a file, since it is read more than once."""
    if format is None:
        choices = ", ".join(Format)
        raise typer.BadParameter(f"--input - needs --input-format: {choices}")
    folder = mkdtemp(prefix="cepheid-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / f"standard-input.{format.value}"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return str(path)


def parse_schemas(texts: Sequence[str], inputs: Sequence[str | None]) -> dict[str | None, str]:
    """The declared columns by input name; without names there is only one input.

    >>> parse_schemas(["ts timestamp, user long"], [None])
    {None: 'ts timestamp, user long'}
    """
    columns_by_input: dict[str | None, str] = {}
    for text in texts:
        named = _NAMED.fullmatch(text)
        name, columns = (named[1], named[2]) if named else (None, text)
        if name not in inputs:
            raise typer.BadParameter(
                f"--schema {name}=... is for no --input of that name"
                if name
                else "with several inputs each schema needs a name: --schema 'news=ts timestamp'"
            )
        columns_by_input[name] = columns
    return columns_by_input


def parse_parameters(texts: Sequence[str]) -> dict[str, object]:
    """The values of a query's parameters. A value in quotes is text.

    >>> parse_parameters(["limit=5", "share=0.2", "name=IBM", "code='007'", "x=null"])
    {'limit': 5, 'share': 0.2, 'name': 'IBM', 'code': '007', 'x': None}
    """
    values: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals):
            raise typer.BadParameter(f"{text!r} isn't like --param limit=5")
        values[name.strip().removeprefix(":")] = _value(value.strip())
    return values


def _value(text: str) -> object:
    words: dict[str, object] = {"true": True, "false": False, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
