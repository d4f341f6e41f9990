"""Files of events: what is a row, what is rejected, and where and why."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cepheid.errors import DataError, OptionError
from cepheid.files import line_blocks
from cepheid.files.bad_rows import BadRows
from cepheid.files.cell_values import MOMENT
from cepheid.files.csv_lines import parse_header
from cepheid.files.declared import parse_columns, schema_text
from cepheid.files.events import EventFiles, InputOptions
from cepheid.files.formats import input_format
from cepheid.files.text_rows import EventRows
from cepheid.files.time_format import TimeFormat

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def opened(path: Path, given: InputOptions | None = None) -> EventFiles:
    format = input_format(str(path))
    assert format is not None
    return EventFiles(str(path), format, given or InputOptions("t"))


def read(path: Path, given: InputOptions | None = None, *columns: str) -> EventRows:
    files = opened(path, given)
    wanted = [f for f in files.schema if not columns or f.name in columns]
    return files.read(pa.schema(wanted))


def rejected(rows: EventRows) -> list[tuple[int, str, str]]:
    return [(r["number"], r["line"], r["reason"]) for r in rows.rejected.to_pylist()]


def csv_lines(*bad: str, good: int = 40) -> str:
    """Rows of which the last ones are bad."""
    return "\n".join(["t,x,name", *(f"{n},{n * 2},n{n}" for n in range(good)), *bad, ""])


FAULTS = {
    "csv": (
        csv_lines("40,oops,n40", "41,1", "42,1,n42,more", ",5,n43", '44,5,"n44', "45,90,n45"),
        [
            (42, "40,oops,n40", "`x` is 'oops', not an integer"),
            (43, "41,1", "it has 2 cells, the header 3"),
            (44, "42,1,n42,more", "it has 4 cells, the header 3"),
            (45, ",5,n43", "`t` is empty"),
            (46, '44,5,"n44', "a quote is never closed"),
        ],
    ),
    "jsonl": (
        "\n".join(
            [
                *(f'{{"t": {n}, "x": {n * 2}, "name": "n{n}"}}' for n in range(40)),
                '{"t": 40, "x": "oops"}',
                '{"t": 41, ',
                "[42]",
                "null",
                "",
                '{"x": 5}',
                '{"t": 43, "x": {"a": 1}}',
                '{"t": 45, "x": 90, "name": "n45"}',
            ]
        ),
        [
            (41, '{"t": 40, "x": "oops"}', "`x` is 'oops', not an integer"),
            (42, '{"t": 41, ', "it isn't a JSON object"),
            (43, "[42]", "it isn't a JSON object"),
            (44, "null", "it isn't a JSON object"),
            (46, '{"x": 5}', "`t` is empty"),
            (47, '{"t": 43, "x": {"a": 1}}', '`x` is \'{"a": "1"}\', not an integer'),
        ],
    ),
}


@pytest.mark.parametrize("block", [1, 64, 1 << 20])
@pytest.mark.parametrize("ending", FAULTS)
def test_bad_rows_are_rejected(
    ending: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the file is cut into blocks."""
    monkeypatch.setattr(line_blocks, "_BYTES", block)
    text, expected = FAULTS[ending]
    rows = read(write(tmp_path, f"e.{ending}", text))
    assert rows.table.schema.types == [pa.int64(), pa.int64(), pa.string()]
    assert rows.table["t"].to_pylist() == [*range(40), 45]
    assert rows.table["x"].to_pylist() == [n * 2 for n in (*range(40), 45)]
    assert rejected(rows) == expected
    assert {Path(f).name for f in rows.rejected["file"].to_pylist()} == {f"e.{ending}"}


def test_cells_that_nobody_reads_reject_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, "e.csv", csv_lines("40,oops,n40", "41,1"))
    rows = read(path, None, "t", "name")
    assert rows.table.num_rows == 41
    assert [number for number, *_ in rejected(rows)] == [43]


def test_keep_leaves_the_column_text(tmp_path: Path) -> None:
    path = write(tmp_path, "e.csv", csv_lines("40,oops,n40", "41,1"))
    rows = read(path, InputOptions("t", bad_rows=BadRows.KEEP))
    assert rows.table["x"].type == pa.string()
    assert rows.table["x"].to_pylist()[-2:] == ["78", "oops"]
    assert [reason for *_, reason in rejected(rows)] == ["it has 2 cells, the header 3"]


def test_null_empties_the_cell(tmp_path: Path) -> None:
    path = write(tmp_path, "e.csv", csv_lines("40,oops,n40", "soon,1,n41"))
    rows = read(path, InputOptions("t", bad_rows=BadRows.NULL))
    assert rows.table.to_pylist()[-1] == {"t": 40, "x": None, "name": "n40"}
    assert rejected(rows) == [(43, "soon,1,n41", "`t` is 'soon', not an integer")]


@pytest.mark.parametrize(
    ("bad", "message"),
    [("40,oops,n40", ":42: `x` is 'oops', not an integer"), ("40", ":42: it has 1 cell, the")],
)
def test_fail_names_the_first_bad_row(bad: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, "e.csv", csv_lines(bad, "41,also,n41"))
    with pytest.raises(DataError) as error:
        read(path, InputOptions("t", bad_rows=BadRows.FAIL))
    assert f"{path}{message}" in str(error.value) and "--bad-rows reject" in str(error.value)


def test_fail_does_not_mean_rows_without_a_time(tmp_path: Path) -> None:
    path = write(tmp_path, "e.csv", csv_lines(",1,n40"))
    assert read(path, InputOptions("t", bad_rows=BadRows.FAIL)).rejected.num_rows == 1


def test_a_bad_cell_far_from_the_beginning(tmp_path: Path) -> None:
    """The sample may not see it; the types are those of the rest all the same."""
    rows = [f"{n},{n},n{n}" for n in range(60_000)]
    rows[31_415] = "31415,n.n.,pi"
    path = write(tmp_path, "e.csv", "\n".join(["t,x,name", *rows]))
    found = read(path)
    assert found.table.num_rows == 59_999 and found.table["x"].type == pa.int64()
    assert rejected(found) == [(31_417, "31415,n.n.,pi", "`x` is 'n.n.', not an integer")]


def test_most_files_decide_and_the_others_are_rejected(tmp_path: Path) -> None:
    for n in range(3):
        write(tmp_path, f"{n}.csv", csv_lines())
    write(tmp_path, "3.csv", "t,x,name\n40,high,n40\n41,low,n41\n")
    rows = read(tmp_path)
    assert rows.table.num_rows == 120 and rows.table["x"].type == pa.int64()
    assert [reason for *_, reason in rejected(rows)] == [
        "`x` is 'high', not an integer",
        "`x` is 'low', not an integer",
    ]


def test_columns_go_by_their_names(tmp_path: Path) -> None:
    write(tmp_path, "1.csv", "t,x,name\n1,2,a\n")
    write(tmp_path, "2.csv", "x,extra,t\n4,5,3\n")
    rows = read(tmp_path, None, "t", "x")
    assert rows.table.to_pylist() == [{"t": 1, "x": 2}, {"t": 3, "x": 4}]
    rows = read(tmp_path)
    assert [reason for *_, reason in rejected(rows)] == [
        "its file has no column `extra`",
        "its file has no column `name`",
    ]
    assert read(tmp_path, InputOptions("t", bad_rows=BadRows.NULL)).table.to_pylist() == [
        {"t": 1, "x": 2, "name": "a", "extra": None},
        {"t": 3, "x": 4, "name": None, "extra": 5},
    ]


def test_declared_columns_count(tmp_path: Path) -> None:
    path = write(tmp_path, "e.csv", "t,x,name\n1,2,003\n2,2.5,4\n")
    given = InputOptions("t", parse_columns("x decimal(5,2), name int"))
    files = opened(path, given)
    assert schema_text(files.schema) == "t long, x decimal(5,2), name int"
    assert [str(v) for v in files.read(files.schema).table["x"].to_pylist()] == ["2.00", "2.50"]
    given = InputOptions("t", parse_columns("x long"))
    assert rejected(read(path, given)) == [(3, "2,2.5,4", "`x` is '2.5', not an integer")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('t,x\n1,"a\nb"\n2,"c,""d"""\n', ["a\nb", 'c,"d"']),
        ('t,x\r\n1,"a"\r\n\r\n2,\r\n3,""\r\n', ["a", None, ""]),
        ("t,x\n1,5\" pipe\n2,NA\n", ['5" pipe', "NA"]),
        ("\ufefft,x\n1,é\n2,b", ["é", "b"]),
        ("\n\nt,x\n1,a\n2,b\n", ["a", "b"]),
        ("t,x\r1,a\r2,b\r", ["a", "b"]),
        ("t,x\r\r\n1,a\r\r\n2,b", ["a", "b"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("block", [7, 1 << 20])
def test_how_csv_is_written(
    text: str, expected: list[str], block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_blocks, "_BYTES", block)
    rows = read(write(tmp_path, "e.csv", text))
    assert rows.table["x"].to_pylist() == expected
    assert not rows.rejected.num_rows


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_a_carriage_return_ends_a_line(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyarrow and Spark take it for one, so each half of such a row is reported."""
    monkeypatch.setattr(line_blocks, "_BYTES", block)
    rows = read(write(tmp_path, "e.csv", "t,x,y\r\n1,2,3\r\n2,3\r,4\r\n3,4,5\r\n4,a,6\r\n5,6,7"))
    assert rows.table["t"].to_pylist() == [1, 3, 5]
    assert rejected(rows) == [
        (3, "2,3", "it has 2 cells, the header 3"),
        (4, ",4", "it has 2 cells, the header 3"),
        (6, "4,a,6", "`x` is 'a', not an integer"),
    ]
    lines = '{"t": 1}\r{"t": 2}\r\n{"t": "a"}\r\n{"t": 3}'
    rows = read(write(tmp_path, "e.json", lines), InputOptions("t", parse_columns("t long")))
    assert rows.table["t"].to_pylist() == [1, 2, 3]
    assert rejected(rows) == [(3, '{"t": "a"}', "`t` is 'a', not an integer")]


@pytest.mark.parametrize("longest", [20, 1 << 24])
@pytest.mark.parametrize("block", [7, 1 << 20])
def test_a_quote_that_is_never_closed_swallows_no_lines(
    block: int, longest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where cells may go over several lines."""
    monkeypatch.setattr(line_blocks, "_BYTES", block)
    monkeypatch.setattr(line_blocks, "_LONGEST", longest)
    text = 't,x\n1,"a\nb"\n2,"c\n' + "".join(f"{n},d\n" for n in range(3, 12))
    rows = read(write(tmp_path, "e.csv", text))
    assert rows.table["t"].to_pylist() == [1, *range(3, 12)]
    assert rejected(rows) == [(4, '2,"c', "a quote is never closed")]


def test_blanks_are_the_same_wherever_a_block_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "e.csv", "t\n1\n  \n2\n")
    for block in (1, 1 << 20):
        monkeypatch.setattr(line_blocks, "_BYTES", block)
        assert rejected(read(path)) == [(3, "  ", "`t` is empty")]


def test_a_header_that_is_not_csv() -> None:
    """Such a file has other columns, and must not stop a stream."""
    long = "x" * 200_000
    assert parse_header(f"t,{long}", ",") == ("t", long)


def test_compressed_and_other_delimiters(tmp_path: Path) -> None:
    packed = write(tmp_path, "e.csv.gz", gzip.compress(csv_lines("40,oops,n40").encode()))
    assert read(packed).table.num_rows == 40
    divided = write(tmp_path, "e.tsv", "t\tx\n1\ta,b\n2\n")
    rows = read(divided)
    assert rows.table.to_pylist() == [{"t": 1, "x": "a,b"}]
    assert rejected(rows) == [(3, "2", "it has 1 cell, the header 2")]


# ── letters ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_latin_1(ending: str, tmp_path: Path) -> None:
    text = "t,x\n1,Müller\n" if ending == "csv" else '{"t": 1, "x": "Müller"}\n'
    path = write(tmp_path, f"e.{ending}", text.encode("latin-1"))
    with pytest.raises(DataError, match=r"isn't UTF-8, as in '.*Müller.*--encoding"):
        opened(path)
    rows = read(path, InputOptions("t", encoding="Latin-1"))
    assert rows.table["x"].to_pylist() == ["Müller"]


def test_a_line_that_is_not_utf_8_far_from_the_beginning(tmp_path: Path) -> None:
    lines = [f"{n},n{n}".encode() for n in range(60_000)]
    lines[31_415] = "31415,Müller".encode("latin-1")
    rows = read(write(tmp_path, "e.csv", b"\n".join([b"t,x", *lines])))
    assert rows.table.num_rows == 59_999
    ((number, line, reason),) = rejected(rows)
    assert (number, line) == (31_417, "31415,Müller")
    assert reason == "it isn't UTF-8; --encoding names another encoding"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [("utf-16", "can't be read; make it UTF-8"), ("klingon", "--encoding klingon isn't known")],
)
def test_encodings_that_cannot_be_read(encoding: str, text: str) -> None:
    with pytest.raises(DataError, match=text):
        InputOptions("t", encoding=encoding)


def test_utf_16_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"e\.csv: it is UTF-16, .*iconv"):
        opened(write(tmp_path, "e.csv", "t,x\n1,2\n".encode("utf-16")))


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        (";", r"e\.csv: its header .* 't;x': it has semicolons .*sep=';'"),
        ("|", r"bars between its columns.*sep='\|'"),
        ("\t", r"tabs between its columns.*\.tsv.*--input-format tsv"),
    ],
)
def test_columns_that_no_comma_separates_are_told(mark: str, told: str, tmp_path: Path) -> None:
    text = "t,x\n1,2\n2,3\n".replace(",", mark)
    with pytest.raises(DataError, match=told):
        opened(write(tmp_path, "e.csv", text))


def test_a_single_column_may_have_any_name(tmp_path: Path) -> None:
    path = write(tmp_path, "e.csv", "t;x\n1\n2\n")
    assert read(path, InputOptions("t;x")).table["t;x"].to_pylist() == [1, 2]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_zeros_that_a_crash_has_left(ending: str, tmp_path: Path) -> None:
    """They are a bad row, as in a stream; in the first line they say that it is no text."""
    lines = {"csv": "t,x\n1,2\n3,4\n", "jsonl": '{"t":1,"x":2}\n{"t":3,"x":4}\n'}[ending]
    files = opened(write(tmp_path, f"e.{ending}", lines + "\0" * 999))
    rows = files.read(pa.schema({"t": pa.int64(), "x": pa.int64()}))
    assert rows.table.to_pydict() == {"t": [1, 3], "x": [2, 4]} and rows.rejected.num_rows == 1
    with pytest.raises(DataError, match="no text at all"):
        opened(write(tmp_path, f"f.{ending}", "\0" * 999 + lines))


# ── nothing, and what isn't what it should be ────────────────────────────────


def test_a_header_and_no_rows(tmp_path: Path) -> None:
    files = opened(write(tmp_path, "e.csv", "t,x\n"))
    assert files.schema.types == [pa.null(), pa.null()]
    assert files.read(pa.schema({"t": MOMENT, "x": pa.float64()})).table.num_rows == 0


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_an_empty_file(ending: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"e.{ending}", "")
    with pytest.raises(DataError, match=r"it is empty, so its columns are unknown.*--schema"):
        opened(path)
    assert read(path, InputOptions("t", parse_columns("t long, x long"))).table.num_rows == 0


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("e.json", '[{"t": 1},\n {"t": 2}]', "it is one JSON array"),
        ("e.json", '{\n "t": 1\n}\n', "no line is a JSON object; the first one is '{'"),
        ("e.csv", "t,x,t\n1,2,3\n", "there are several columns called `t`"),
    ],
)
def test_files_that_cannot_be_read(name: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        opened(write(tmp_path, name, text))


def test_a_time_that_is_text(tmp_path: Path) -> None:
    path = write(tmp_path, "e.csv", "t,x\nsoon,1\nlater,2\n")
    with pytest.raises(OptionError, match=r"`t` is text, such as 'soon'.*--time-format"):
        opened(path)


def test_a_declared_column_that_is_misspelled(tmp_path: Path) -> None:
    path = write(tmp_path, "e.csv", "t,price,prices\n1,1,2\n")
    with pytest.warns(UserWarning, match=r"no column `prixe` \(--schema\); did you mean `price`\?"):
        read(path, InputOptions("t", parse_columns("prixe double")))
    # These may come in later files.
    read(
        path, InputOptions("t", parse_columns("user long, price double, prices long, pricex long"))
    )


@pytest.mark.parametrize("name", ["e.csv.gz", "e.jsonl.gz"])
def test_a_compressed_file_that_is_cut_off_is_named(name: str, tmp_path: Path) -> None:
    packed = gzip.compress(b"t,x\n1,2\n" if "csv" in name else b'{"t": 1}\n')
    path = write(tmp_path, name, packed[:-5])
    with pytest.raises(DataError, match=rf"{name}: it can't be read to its end: "):
        opened(path)


# ── times ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_times_in_another_form(ending: str, tmp_path: Path) -> None:
    moments = ["31.01.2026 12:00", "31.01.2026 12:01", "soon"]
    path = tmp_path / f"e.{ending}"
    match ending:
        case "csv":
            path.write_text("\n".join(["t,x", *(f"{m},1" for m in moments)]))
        case "jsonl":
            path.write_text("\n".join(f'{{"t": "{m}", "x": 1}}' for m in moments))
        case _:
            pq.write_table(pa.table({"t": moments, "x": [1, 1, 1]}), path)
    rows = read(path, InputOptions("t", time_format=TimeFormat.of("%d.%m.%Y %H:%M")))
    assert rows.table["t"].type == MOMENT and rows.table["t"][0].as_py() == NOON
    assert rows.table.num_rows == 2
    assert [reason for *_, reason in rejected(rows)] == ["`t` is 'soon', not a time"]


# ── Parquet ──────────────────────────────────────────────────────────────────


def test_rows_of_parquet_without_a_time(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([NOON, None]), "x": [1, 2], "name": ["a", "b"]})
    pq.write_table(table, tmp_path / "e.parquet")
    rows = read(tmp_path / "e.parquet", None, "t", "x")
    assert rows.table.num_rows == 1
    assert rejected(rows) == [(None, '{"t":null,"x":2,"name":"b"}', "`t` is empty")]


def test_text_of_parquet_can_be_declared_to_be_numbers(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1, 2], "x": ["5", "n.n."]}), tmp_path / "e.parquet")
    rows = read(tmp_path / "e.parquet", InputOptions("t", parse_columns("x long")))
    assert rows.table.to_pylist() == [{"t": 1, "x": 5}]
    assert [reason for *_, reason in rejected(rows)] == ["`x` is 'n.n.', not an integer"]
    with pytest.raises(DataError, match="`t` is int64 and can't be read as date32"):
        read(tmp_path / "e.parquet", InputOptions("x", parse_columns("t date, x long")))
