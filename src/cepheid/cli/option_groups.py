"""Options that belong together, as frozen values. On the command line they are flat: `flat` makes
a parameter of every field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from cepheid.cli import arguments
from cepheid.files.bad_rows import UTF_8, BadRows
from cepheid.files.formats import Format
from cepheid.options import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOptions:
    """Where the events are, and the parts that their columns play."""

    input: arguments.Inputs
    time: arguments.TimeColumn
    type: arguments.TypeColumn = None
    tie: arguments.TieColumn = None
    start: arguments.StartColumn = None
    unit: arguments.Unit = None
    param: arguments.Parameters = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedEventOptions:
    """The same where events may be missing: their columns are assumed then."""

    input: arguments.OptionalInputs = None
    time: arguments.AssumedTime = "ts"
    type: arguments.TypeColumn = None
    tie: arguments.TieColumn = None
    start: arguments.StartColumn = None
    unit: arguments.Unit = None
    param: arguments.Parameters = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """How the files of events are read."""

    input_format: arguments.InputFormat = None
    schema: arguments.Schemas = None
    bad_rows: arguments.BadRowsChoice = BadRows.REJECT
    time_format: arguments.TimeFormatText = None
    encoding: arguments.Encoding = UTF_8


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What the caller decides in place of the planner."""

    engine: arguments.EngineKind = None
    plan: arguments.PlanShape = Options.plan
    negation: arguments.NegationPlace = None
    propagation: arguments.PropagationKind = None
    stats: arguments.StatisticsFile = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """Where matches and rejected rows go."""

    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Where to write the matches: a file, - for standard output, or a folder (Spark, "
            "several queries).",
        ),
    ] = None
    format: Annotated[
        Format | None,
        typer.Option(
            help="By default it follows from the name of --output: Parquet without an ending, CSV "
            "on standard output."
        ),
    ] = None
    overwrite: arguments.Overwrite = False
    rejected: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Where to write rejected rows, with their file and the reason; they are always "
            "counted. For a stream the default is CHECKPOINT/rejected.",
        ),
    ] = None
    show: Annotated[
        int, typer.Option(min=0, help="How many matches to print if there is no --output.")
    ] = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """What only --stream takes. None: not given."""

    checkpoint: arguments.Checkpoint = None
    trigger: arguments.Trigger = None
    watermark: arguments.WatermarkDelay = None
    future: arguments.Future = None
    idle: arguments.Idle = None
    heartbeat: arguments.Heartbeat = None
    buckets: arguments.Buckets = None
    max_files: arguments.MaxFiles = None
    limit: arguments.StateLimit = None
    shed: arguments.Shed = None
    timeouts: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where to write expired partial matches, with what was missing.",
            rich_help_panel="Streams",
        ),
    ] = None
    no_watch: Annotated[
        bool | None,
        typer.Option(
            "--no-watch",
            help="Keep the rules as they are at the start; ignore changes of their files.",
            rich_help_panel="Streams",
        ),
    ] = None

    page: Annotated[
        bool | None,
        typer.Option(
            "--page",
            help="Serve a page on this machine with events/s, lag, state and matches.",
            rich_help_panel="Streams",
        ),
    ] = None

    @property
    def given(self) -> list[str]:
        """The options that were given, as they are written."""
        names = (f.name for f in fields(self) if getattr(self, f.name) is not None)
        return [f"--{name.replace('_', '-')}" for name in names]


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer takes it: instead of a group, the group's fields."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[Parameter] = []
    groups: dict[str, Any] = {}
    for name, parameter in signature(command).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            parameters += _parameters(hints[name])
        else:
            kind = Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(kind=kind, annotation=hints[name]))

    def flattened(**given: Any) -> None:
        values = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **values)

    flattened.__name__, flattened.__doc__ = command.__name__, command.__doc__
    flattened.__annotations__ = {p.name: p.annotation for p in parameters}
    vars(flattened)["__signature__"] = Signature(parameters)
    return flattened


def _parameters(group: Any) -> list[Parameter]:
    hints: Mapping[str, Any] = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
