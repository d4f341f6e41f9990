"""Samples of text files: enough lines of enough files to infer the columns.

Bad cells may be anywhere, so of a file not only the beginning is looked at, but pieces all over it.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cepheid.errors import DataError
from cepheid.files.csv_lines import parse_header
from cepheid.files.formats import COMPRESSED, Format
from cepheid.files.inference import CellSample, InferredColumn, agree, decide
from cepheid.files.json_lines import Number, cell_text, parse_line
from cepheid.files.line_blocks import cut_off_named, open_text
from cepheid.files.text_rows import with_line_ends

_FILES = 20
"""How many files are sampled; of more files, this many, evenly spaced."""

_HEAD, _PIECE, _PIECES = 1 << 15, 1 << 13, 15
"""The sampled bytes: of a file's beginning, of each other piece, and the number of pieces. With
several files, less is read of each."""

_CONVERTED = "write it with commas: pandas.read_csv(file, sep={0!r}).to_csv(other, index=False)"
_OTHER_DELIMITERS = {
    "\t": ("tabs", "name it .tsv, or name its format: --input-format tsv"),
    ";": ("semicolons", _CONVERTED.format(";")),
    "|": ("bars", _CONVERTED.format("|")),
}
"""What may separate columns in a file that is taken for CSV: its name, and what to do."""

_COMPRESSED = 1 << 17
"""The sampled bytes of a compressed file, of which only the beginning can be read."""


@dataclass
class FileSample:
    """Cells of a file by column, the columns in the order in which they come."""

    cells: dict[str, CellSample] = field(default_factory=dict)
    header: tuple[str, ...] = ()
    multiline: bool = False

    def add_csv(self, text: str, delimiter: str) -> None:
        """Add rows of CSV; rows with another number of cells than the header are ignored."""
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        while True:
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error:  # a quote that isn't closed, or not at the end of a cell
                continue
            if len(row) != len(self.header):
                continue
            self.multiline |= any("\n" in cell for cell in row)
            for name, cell in zip(self.header, row, strict=True):
                self.cells[name].cells.append(cell)

    def add_json(self, text: str) -> int:
        """Add lines of JSON; return how many are objects."""
        objects = [value for line in text.split("\n") if (value := parse_line(line)) is not None]
        for value in objects:
            for name, cell in value.items():
                sample = self.cells.setdefault(name, CellSample())
                match cell:
                    case dict() | list():
                        sample.nested.append(plain(cell))
                    case str() if not isinstance(cell, Number):
                        sample.quoted.append(cell)
                    case _:
                        sample.cells.append(cell_text(cell) or "")
        return len(objects)


def plain(value: object) -> object:
    """A value of JSON with its numbers as numbers."""
    match value:
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case Number():
            whole = value.lstrip("-").isdigit()
            return int(value) if whole else float(value)
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Sampled:
    """The sample of an input's files. `header` is that of most CSV files; `multiline`: cells may
    span lines."""

    columns: tuple[InferredColumn, ...]
    header: tuple[str, ...] = ()
    multiline: bool = False


def sample_files(
    files: Sequence[Path],
    format: Format,
    encoding: str,
    time: str,
    *,
    exact: bool = False,
    lenient: bool = False,
) -> Sampled:
    """The columns that most of the files have, decided from pieces of some of them. Files without a
    line say nothing; nor do those that can't be read if that is `lenient`, unless none can."""
    chosen = spread(files)
    share = min(len(chosen), 4)
    samples, wrong = [], []
    for file in chosen:
        pieces = _pieces(file, _HEAD // share, max(1, _PIECES // len(chosen)))
        texts = (_decoded(piece, file, encoding, n == 0) for n, piece in enumerate(pieces))
        try:
            sample = sample_texts(texts, format, str(file))
            if sample.header != (time,):
                _refuse_other_delimiters(sample.header, str(file))
            samples.append(sample)
        except (DataError, OSError) as error:
            if not lenient:
                raise
            wrong.append(error)
    if wrong and not samples:
        raise wrong[0]
    return combine(samples, time, exact=exact)


def spread(files: Sequence[Path]) -> Sequence[Path]:
    """The files to sample: all, or evenly spaced ones."""
    return files[:: max(1, -(-len(files) // _FILES))]


def sample_texts(texts: Iterable[str], format: Format, file: str) -> FileSample:
    """Lines of a file, of which the first begin it. DataError if they aren't of that format."""
    sample = FileSample()
    first = True
    objects = 0
    for text in texts:
        if first:
            text = text.lstrip("\n")
        if format.delimiter is None:
            objects += sample.add_json(text)
            if first and text.strip() and not objects:
                raise _not_json(file, text)
        else:
            if first:
                line, _, text = text.partition("\n")
                _add_header(sample, parse_header(line, format.delimiter), file)
            sample.add_csv(text, format.delimiter)
        first = False
    return sample


def _add_header(sample: FileSample, header: tuple[str, ...], file: str) -> None:
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise DataError(f"{file}: there are several columns called `{twice[0]}`")
    sample.header = header
    sample.cells = {name: CellSample() for name in header}


def _refuse_other_delimiters(header: Sequence[str], file: str) -> None:
    """Refuse a single column whose name holds what separates columns elsewhere."""
    [name] = header if len(header) == 1 else [""]
    other = next((mark for mark in _OTHER_DELIMITERS if mark in name), None)
    if other is not None:
        marks, hint = _OTHER_DELIMITERS[other]
        raise DataError(
            f"{file}: its header is a single column, {name[:60]!r}: it has {marks} between "
            f"its columns, where CSV has commas; {hint}"
        )


def _not_json(file: str, text: str) -> DataError:
    if text.lstrip().startswith("["):
        return DataError(
            f"{file}: it is one JSON array; write each event on its own line: jq -c '.[]'"
        )
    shown = text.strip().split("\n")[0][:60]
    return DataError(f"{file}: no line is a JSON object; the first one is {shown!r}")


def combine(samples: Sequence[FileSample], time: str, *, exact: bool = False) -> Sampled:
    """The columns that most of the files agree on."""
    by_name: dict[str, list[InferredColumn]] = {}
    for sample in samples:
        for name, cells in sample.cells.items():
            column = decide(name, cells, exact=exact, time=name == time)
            by_name.setdefault(name, []).append(column)
    headers = Counter(sample.header for sample in samples if sample.header)
    return Sampled(
        tuple(agree(columns, exact=exact) for columns in by_name.values()),
        headers.most_common(1)[0][0] if headers else (),
        any(sample.multiline for sample in samples),
    )


def _pieces(path: Path, head: int, pieces: int) -> Iterator[bytes]:
    """Whole lines from pieces all over a file, its beginning first."""
    if path.suffix.lower() in COMPRESSED:
        with cut_off_named(path), open_text(path) as stream:
            begin = stream.read(_COMPRESSED)
        yield _whole_lines(begin, _COMPRESSED)
        return
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= head + pieces * _PIECE:
            yield file.read()
            return
        yield _whole_lines(file.read(head), head)
        step = (size - head) // pieces
        for number in range(1, pieces + 1):
            file.seek(head + number * step - _PIECE)
            piece = file.read(_PIECE)
            yield _whole_lines(piece.partition(b"\n")[2], 0)


def _whole_lines(text: bytes, limit: int) -> bytes:
    """Without the last line if it isn't whole, unless there is only that."""
    if len(text) < limit:
        return text  # all of the file
    return text[: text.rfind(b"\n") + 1] or text


def _decoded(text: bytes, file: Path, encoding: str, begins: bool) -> str:
    """The piece as text; `begins`: it is the beginning of the file. A zero in its first line says
    that it is no text; in others, as a crash of what wrote it leaves them, they make bad rows."""
    zeros = begins and b"\0" in text.lstrip(b"\r\n").partition(b"\n")[0]
    if zeros or text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(
            f"{file}: it is UTF-16, or no text at all; as UTF-8 it could be read: iconv -f UTF-16 "
            "-t UTF-8"
        )
    try:
        return with_line_ends(text.removeprefix(codecs.BOM_UTF8)).decode(encoding)
    except UnicodeDecodeError as error:
        begin = text.rfind(b"\n", 0, error.start) + 1
        end = text.find(b"\n", error.start)
        line = text[begin : end if end >= 0 else None].decode("latin-1").strip()
        raise DataError(
            f"{file}: it isn't {encoding.upper()}, as in {line[:60]!r}; say which --encoding it "
            "has, such as latin-1"
        ) from None
