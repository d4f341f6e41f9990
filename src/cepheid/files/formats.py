"""The format of files, by their names: the one place, for batches, Spark and streams.

A path is a file, a folder of files, a pattern of names such as `logs/*.csv.gz`, or an address
such as `s3a://bank/cards/`, into which only Spark can look. Files whose names begin with `.` or `_`
aren't data: Spark and others keep their notes in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from glob import glob
from pathlib import Path, PurePath
from typing import assert_never

from cepheid.errors import OptionError


class Format(StrEnum):
    PARQUET = "parquet"
    CSV = "csv"
    TSV = "tsv"
    JSON = "json"

    @property
    def delimiter(self) -> str | None:
        """The delimiter of a line's columns; None if the format has none."""
        return {Format.CSV: ",", Format.TSV: "\t"}.get(self)


ENDINGS = {
    ".parquet": Format.PARQUET,
    ".csv": Format.CSV,
    ".tsv": Format.TSV,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
}

STANDARD = "-"
"""The path that means standard input or output."""

COMPRESSED = {".gz": "gzip", ".bz2": "bzip2"}
"""Endings of compressed text files that pyarrow and Spark both read, and Spark's names for them."""

_SPARK_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Spark's option for times in text: by default it writes milliseconds and drops the rest."""

SPARK_JSON = {**_SPARK_TIMES, "ignoreNullFields": "false"}
"""Spark's options to write all of a row as JSON."""

_SPARK_CELLS = {
    "escape": '"',
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
"""Spark's options to write cells as others do: quotes are doubled, and spaces kept."""

_SPECIAL = re.compile(r"[*?\[\]{}\\]")
_PATTERN = re.compile(r"[*?\[{]")
_ALTERNATIVES = re.compile(r"\{([^{}]*)\}")


def is_local(path: str) -> bool:
    return "://" not in path


def is_pattern(path: str) -> bool:
    """Whether the path is a pattern of names; a file of exactly this name is only itself."""
    return bool(_PATTERN.search(path)) and not (is_local(path) and Path(path).exists())


def fixed_folder(pattern: str) -> Path:
    """The folder that contains all files of a pattern.

    >>> fixed_folder("logs/day=*/a.csv").name
    'logs'
    """
    parts = Path(pattern).parts
    wild = next((n for n, part in enumerate(parts) if _PATTERN.search(part)), len(parts))
    return Path(*parts[:wild])


def named_format(path: str | PurePath) -> Format | None:
    """The format that a name ends with; None if it ends with another or with none.

    >>> [str(named_format(n)) for n in ("a.csv.gz", "a.NDJSON", "a.parquet.gz", "a.xlsx", "a")]
    ['csv', 'json', 'None', 'None', 'None']
    """
    name = PurePath(path)
    if name.suffix.lower() not in COMPRESSED:
        return ENDINGS.get(name.suffix.lower())
    inner = ENDINGS.get(PurePath(name.stem).suffix.lower())
    return None if inner is Format.PARQUET else inner


def input_format(path: str, chosen: Format | None = None) -> Format | None:
    """The format of what is read: the one chosen, or else what the names of all its files say.

    None if there is no file, or only Spark can look; an address may end with its format.
    OptionError if the names say nothing, or not the same.
    """
    if chosen is not None:
        return chosen
    if not is_local(path):
        return named_format(path)
    by_format = {named_format(file): file for file in data_files(path)}
    match list(by_format.items()):
        case []:
            return named_format(path)
        case [(None, file)]:
            raise unknown_ending(file, "--input-format")
        case [(format, _)]:
            return format
        case [(_, file), (_, second), *_]:
            raise OptionError(
                f"{path} has files of several formats, such as {file.name} and {second.name}: read "
                f"some of them, --input '{_folder(path)}/*.csv', or all as one, --input-format csv"
            )
    raise AssertionError


def output_format(path: Path, chosen: Format | None = None) -> Format:
    """The format of what is written: the one chosen, or else what the name ends with; Parquet if it
    has no ending. OptionError if it has another."""
    if chosen is not None:
        return chosen
    named = named_format(path)
    if named is None and path.suffix:
        raise unknown_ending(path, "--format")
    return named or Format.PARQUET


def spark_format(format: Format, path: str) -> tuple[str, dict[str, str]]:
    """Spark's name of the format, and the options to write it to a folder of this name."""
    ending = PurePath(path).suffix.lower()
    options = {"compression": COMPRESSED[ending]} if ending in COMPRESSED else {}
    match format:
        case Format.PARQUET:
            return format.value, options
        case Format.JSON:
            return format.value, {**SPARK_JSON, **options}
        case Format.CSV | Format.TSV:
            separated = {"header": "true", "sep": format.delimiter or ","}
            return "csv", {**separated, **_SPARK_TIMES, **_SPARK_CELLS, **options}
        case _:
            assert_never(format)


def unknown_ending(path: Path, option: str) -> OptionError:
    known = ", ".join(ENDINGS)
    what = f"the ending {path.suffix} is unknown" if path.suffix else "the name has no ending"
    choices = ", ".join(Format)
    return OptionError(
        f"{path}: {what}. Known are {known}, and those of text with {' or '.join(COMPRESSED)}; or "
        f"name the format: {option} ({choices})"
    )


def existing_files(path: str) -> list[Path]:
    """The files of a local path; OptionError if there is none."""
    if not is_local(path):
        raise OptionError(f"{path}: only Spark reads from there, --runtime spark")
    files = list(data_files(path))
    if files:
        return files
    if is_pattern(path):
        raise OptionError(f"{path}: no file has a name that fits")
    if Path(path).is_dir():
        raise OptionError(f"{path}: there is no file in this folder")
    raise FileNotFoundError(2, "No such file or folder", path)


def spark_path(path: str) -> str:
    """The path for Spark, which takes every path for a pattern."""
    if not is_local(path) or is_pattern(path):
        return path
    return _SPECIAL.sub(r"\\\g<0>", path)


def is_deep(path: str) -> bool:
    """Whether a local folder has files in folders that aren't partitions, such as `day=3`. Spark
    doesn't look into them by itself."""
    if not is_local(path):
        return False
    places = [place for place in _places(path) if place.is_dir()]
    return any(
        "=" not in folder
        for place in places
        for file in data_files(str(place))
        for folder in file.relative_to(place).parts[:-1]
    )


def data_files(path: str) -> Iterator[Path]:
    """The files of a local path, in the order of their names; none if there are none.

    Of a folder, those of all folders inside it.
    """
    for place in _places(path):
        if place.is_dir():
            inside = sorted(p for p in place.rglob("*") if p.is_file())
            yield from (p for p in inside if not _is_hidden(p.relative_to(place)))
        elif place.exists():
            yield place


def _places(path: str) -> list[Path]:
    if not is_pattern(path):
        return [Path(path)]
    if "**" in path:
        raise OptionError(f"{path}: `**` can't be read by Spark, so it isn't known here either")
    places = {place for pattern in alternatives(path) for place in glob(pattern)}
    return [place for place in map(Path, sorted(places)) if not _is_hidden(Path(place.name))]


def alternatives(path: str) -> Iterator[str]:
    """
    >>> list(alternatives("{a,b}/*.{csv,tsv}"))
    ['a/*.csv', 'a/*.tsv', 'b/*.csv', 'b/*.tsv']
    """
    braces = _ALTERNATIVES.search(path)
    if braces is None:
        yield path
        return
    for choice in braces[1].split(","):
        yield from alternatives(path[: braces.start()] + choice + path[braces.end() :])


def _folder(path: str) -> str:
    return str(Path(path).parent if is_pattern(path) else Path(path))


def _is_hidden(path: PurePath) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)
