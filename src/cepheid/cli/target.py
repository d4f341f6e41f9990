"""The outputs of a run, and its result."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.cli.output.show import PerRule, RunSummary
from cepheid.errors import OptionError
from cepheid.files.formats import STANDARD, Format, is_local, output_format
from cepheid.files.guard import Guard
from cepheid.files.output import check_output


@dataclass(frozen=True, slots=True)
class Target:
    """Where matches and dead letters go; without an output, `limit` matches go to the screen. Paths
    are as written: Spark also writes to remote addresses.

    The paths are as they were written: Spark also writes to addresses.
    """

    output: str | None
    format: Format
    rejected: str | None
    limit: int
    guard: Guard

    @property
    def written(self) -> Format | None:
        """The format of the output, if there is one."""
        return None if self.output is None else self.format

    @property
    def piped(self) -> bool:
        """Whether standard output is for data, and for nothing else."""
        return STANDARD in (self.output, self.rejected)


def file_target(
    output: str | None,
    format: Format | None,
    rejected: str | None,
    limit: int,
    guard: Guard,
    several: bool = False,
) -> Target:
    """Check the files that the local engine will write; for several queries, files in a folder.
    OptionError if one must not be written."""
    refuse_nested_places({"--output": output, "--rejected": rejected})
    for option, place in (("--output", output), ("--rejected", rejected)):
        if place is not None and not is_local(place):
            raise OptionError(f"{option} {place}: only Spark writes there, --runtime spark")
    chosen = format or Format.PARQUET
    if output is not None and several:
        if output == STANDARD:
            raise OptionError("--output -: several queries are written to a folder")
        chosen = output_format(Path(output), format)
    elif output is not None:
        chosen = check_output(Path(output), format, guard, "--output")
    if rejected is not None:
        check_output(Path(rejected), None, guard, "--rejected")
    return Target(output, chosen, rejected, limit, guard)


def folder_target(
    output: str | None, format: Format | None, rejected: str | None, limit: int, guard: Guard
) -> Target:
    """Check the folders that Spark will write; OptionError if one must not be written."""
    places = {"--output": output, "--rejected": rejected}
    refuse_nested_places(places)
    for option, place in places.items():
        if place == STANDARD:
            raise OptionError(f"{option} -: Spark writes folders; leave out --runtime spark")
        if place is not None:
            check_folder(place, guard, option)
            output_format(Path(place), format if option == "--output" else None)
    return Target(output, output_format(Path(output or ""), format), rejected, limit, guard)


def check_folder(place: str, guard: Guard, option: str) -> None:
    if is_local(place):
        guard.check_folder(Path(place), option)
    elif guard.overwrite:
        raise OptionError(
            f"{option} {place}: --overwrite can't look there for what it would replace; remove it "
            "yourself, or name another folder"
        )


def refuse_nested_places(places: dict[str, str | None]) -> None:
    """Two outputs are two places, and neither is in the other."""
    given = [
        (option, place, Path(place).resolve())
        for option, place in places.items()
        if place is not None and is_local(place)
    ]
    for (option, place, path), (other, its_place, its_path) in permutations(given, 2):
        if path.is_relative_to(its_path):
            raise OptionError(
                f"{option} {place} is {'in ' if path != its_path else ''}{other} {its_place}: name "
                "another place"
            )


@dataclass(frozen=True, slots=True)
class Result:
    """The columns of the matches, the sample to print, the figures, and the first rows that were
    rejected; of a set of rules, also the figures of each."""

    names: list[str]
    rows: list[dict[str, Any]]
    figures: RunSummary
    rejected: list[dict[str, Any]] = field(default_factory=list)
    rules: PerRule | None = None


def refuse_nested(
    schema: pa.Schema, format: Format | None, instead: str = "name plain columns in RETURN"
) -> None:
    """CSV holds plain values only; say so before the work rather than after."""
    nested = [f.name for f in schema if pa.types.is_nested(f.type)]
    if format is not None and format.delimiter is not None and nested:
        raise OptionError(
            f"{format.value.upper()} can't hold `{nested[0]}`, which is "
            f"{schema.field(nested[0]).type}: {instead}, or write --format json"
        )
