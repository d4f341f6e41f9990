"""`cepheid run --timeline`: the events and matches of a run as a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cepheid.cli.arguments import InputSource
from cepheid.cli.inputs import read_events
from cepheid.files.guard import Guard
from cepheid.files.output import write_text
from cepheid.options import Options
from cepheid.query import Query


def write_timeline(
    query: Query, sources: Sequence[InputSource], options: Options, path: Path, guard: Guard
) -> None:
    """Draw it, as the name says."""
    drawn = query.timeline(read_events(query, sources, options), options)
    written = drawn.to_svg() if path.suffix.lower() == ".svg" else drawn.to_html()
    write_text(written, path, guard, "--timeline")
