"""`cepheid lab`: a local page to try patterns in, or beside a running stream."""

from __future__ import annotations

import sys
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlparse

import typer

from cepheid.cli import arguments
from cepheid.cli.option_groups import AssumedEventOptions, FileOptions, flat
from cepheid.errors import OptionError
from cepheid.extras import require

if TYPE_CHECKING:
    import pyarrow as pa

    from cepheid.lab.gate import Gate
    from cepheid.lab.situations.situation import Situation
    from cepheid.options import Options

EVENTS = 5000
"""Events of a file that the page takes: with so many it answers within 200 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEventOptions(AssumedEventOptions):
    """Events that the page shows."""

    input: Annotated[
        list[str] | None,
        typer.Option(
            "--input", "-i", metavar="PATH", show_default=False,
            help="Events to show: a file, a folder, or a pattern such as 'logs/*.csv.gz'.",
        ),
    ] = None  # fmt: skip


@flat
def lab(
    events: ShownEventOptions,
    read: FileOptions,
    file: arguments.QueryFile = None,
    query: arguments.QueryText = None,
    rows: Annotated[
        int, typer.Option(min=1, max=20_000, help="About how many events of a file to take.")
    ] = EVENTS,
    stream: Annotated[
        Path | None,
        typer.Option(
            metavar="CHECKPOINT",
            help="Show the stream of this checkpoint instead: its figures and matches.",
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Begin with the query and events of a link that was copied from another lab.",
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any free port.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Open a local page to try patterns in.

    On the left is the query, on the right are events: those of a file, or typed as A@1(x=5) B@3.
    The page matches again at every change, and says why events match or don't.

        cepheid lab

        cepheid lab theft.cep --input rfid.parquet --time ts --type type

        cepheid lab --stream state/

    The page is for this machine alone, and its address has a token: only who has the address gets
    in. It loads nothing from elsewhere, and tells nothing to anyone. Ctrl-C ends it.
    """
    require("lab")
    from cepheid.lab.server import address, listening, new_token, serve

    token = new_token()
    app = _app(events, read, file, query, rows, stream, token)
    with listening(port) as at:
        place = address(at, token)
        if link is not None:
            place += f"#{urlparse(link).fragment}"

        def started() -> None:
            print(place, flush=True)
            if browser:
                webbrowser.open(place)

        print("the lab listens on this machine alone; Ctrl-C ends it", file=sys.stderr, flush=True)
        serve(app, at, started)


def _app(
    events: AssumedEventOptions,
    read: FileOptions,
    file: Path | None,
    query: str | None,
    rows: int,
    stream: Path | None,
    token: str,
) -> Gate:
    from cepheid.lab.live import Live
    from cepheid.lab.pages import lab_app, live_app

    if stream is None:
        return lab_app(_situation(events, read, file, query, rows), token)
    if events.input or file is not None or query is not None:
        raise typer.BadParameter("--stream shows a stream: leave out the query and --input")
    return live_app(Live(stream), token)


def _situation(
    events: AssumedEventOptions, read: FileOptions, file: Path | None, query: str | None, rows: int
) -> Situation:
    """What the page begins with. A query may be wrong: the page is there to mend it."""
    from cepheid.cli.inputs import input_sources, make_options, open_inputs
    from cepheid.lab.situations.situation import TIME, TYPE, Situation
    from cepheid.lab.start import starting_events, starting_query
    from cepheid.lab.words import example

    if file is not None and query is not None:
        raise typer.BadParameter("give the query in a file or with -q, not both")
    text = query if file is None else file.read_text(encoding="utf-8")
    options = make_options(events)
    if not events.input:
        if text is None:
            return example()
        plain = Situation(text, starting_events(text))
        typed = make_options(AssumedEventOptions(time=TIME, type=TYPE, param=events.param))
        return Situation(text, plain.events, typed)
    if arguments.reads_standard_input(events.input):
        raise OptionError("the lab reads files, not standard input: --input FILE")
    if events.start is not None:
        raise OptionError("the lab has no events with a duration: leave out --start")
    sources = input_sources(events, read)
    if len(sources) > 1:
        raise OptionError("the lab shows one stream of events: give one --input")
    table = open_inputs(sources, (), options).read().tables
    if sources[0].name:
        raise OptionError(f"leave out the name of the stream: --input {sources[0].path}")
    text = starting_query(table[""], options) if text is None else text
    return _sampled(text, table[""], options, rows, sources[0].path)


def _sampled(text: str, table: pa.Table, options: Options, rows: int, source: str) -> Situation:
    from cepheid.lab.situations.situation import Situation
    from cepheid.lab.start import sample

    chosen, which = sample(text, table, options, rows)
    return Situation(text, chosen, options, source, which)
