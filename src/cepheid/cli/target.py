"""What a run is asked for, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.cli.show import Figures, PerRule
from cepheid.errors import DataError
from cepheid.files.formats import Format


@dataclass(frozen=True, slots=True)
class Target:
    """Where matches and dead letters go; without an output, so many matches to the screen."""

    output: Path | None
    format: Format
    rejected: Path | None
    limit: int


@dataclass(frozen=True, slots=True)
class Result:
    """The columns of the matches, the sample to print, and the figures; of a set of rules, also
    those of each."""

    names: list[str]
    rows: list[dict[str, Any]]
    figures: Figures
    rules: PerRule | None = None


def refuse_nested(
    schema: pa.Schema, target: Target, instead: str = "name plain columns in RETURN"
) -> None:
    """CSV holds plain values only; say so before the work rather than after."""
    nested = [f.name for f in schema if pa.types.is_nested(f.type)]
    if target.output is not None and target.format is Format.CSV and nested:
        raise DataError(
            f"CSV can't hold `{nested[0]}`, which is {schema.field(nested[0]).type}: {instead}, "
            "or write --format parquet or json"
        )
