"""The queries of the papers find in their events what a person has found there, and
docs/papers.md shows them as they are.

The command in the head of a query file says how to run it; it is what the tests do.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import cepheid as cep
from cepheid.algebra import STREAM_COLUMN, BoundQuery, bind
from cepheid.algebra.schemas import bind_schema, bind_streams
from cepheid.cli import main
from cepheid.cli.arguments import parse_inputs, parse_parameters
from cepheid.language.diagnostics import Source
from cepheid.options import Options
from tests.docs.blocks import ROOT, blocks
from tests.oracle import answers, matches, outputs
from tests.oracle.events import Event

PAPERS = ROOT / "examples" / "papers"
PAGE = "docs/papers.md"
Rows = list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Example:
    """`queries` are the files that are run, the last of them the one whose matches are known."""

    queries: tuple[Path, ...]
    inputs: tuple[str, ...]
    options: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def path(self) -> Path:
        return self.queries[-1]

    @property
    def answer(self) -> Path:
        return self.path.with_suffix(".matches.jsonl")

    @property
    def files(self) -> dict[str, Path]:
        """By the stream's name; one without a name is alone."""
        return {i.name or "": ROOT / i.path for i in parse_inputs(self.inputs, None)}

    def expected(self) -> Rows:
        return [json.loads(line) for line in self.answer.read_text().splitlines()]

    def tables(self) -> dict[str, pa.Table]:
        return {name: pa.csv.read_csv(path) for name, path in self.files.items()}


def command(path: Path) -> list[str]:
    """The words of the command in a query's head; none in a query that only feeds another."""
    head = "\n".join(re.findall(r"^--(.*)$", path.read_text(), re.MULTILINE))
    _, found, words = head.partition("cepheid run ")
    return shlex.split(words.replace("\\\n", " ")) if found else []


def example(words: list[str]) -> Example:
    queries = [w for w in words if w.endswith(".cep")]
    rest = words[len(queries) :]
    given = list(zip(rest[::2], rest[1::2], strict=True))
    params = parse_parameters([value for name, value in given if name == "--param"])
    named = {name[2:]: value for name, value in given if name not in ("--input", "--param")}
    return Example(
        tuple(ROOT / q for q in queries),
        tuple(value for name, value in given if name == "--input"),
        {**named, "params": params},
    )


BY_FILE = {path: example(command(path)) for path in sorted(PAPERS.glob("*/*.cep")) if command(path)}
EXAMPLES = list(BY_FILE.values())


# ── what is found ────────────────────────────────────────────────────────────


def multiset(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(plain(row), sort_keys=True) for row in rows)


def plain(value: Any) -> Any:
    """Numbers as numbers: whether one is 10 or 10.0 depends on the file."""
    match value:
        case bool() | None | str():
            return value
        case int() | float():
            return round(float(value), 9)
        case Mapping():
            return {k: plain(v) for k, v in value.items()}
        case _:
            return [plain(v) for v in value]


@lru_cache
def by_oracle(case: Example) -> Rows:
    """Each query reads the events of the files, and the matches of the queries before it."""
    options = Options(**case.options)
    streams = case.tables()
    found: Rows = []
    for path in case.queries:
        query = bound(path, streams, options)
        events = tuple(events_of(query, streams))
        found = list(rows_of(query, events))
        if query.into is not None and "" not in streams:
            lasting = [{**row, options.time: row["match_end"]} for row in found]
            streams = {**streams, query.into: pa.Table.from_pylist(lasting)}
    return found


def rows_of(query: BoundQuery, events: tuple[Event, ...]) -> Iterator[dict[str, Any]]:
    """Matches or answers, with their start and end as events."""
    if query.answers is not None:
        for row in answers(query, events):
            yield {**row, "match_start": row["window_end"], "match_end": row["window_end"]}
        return
    for match in matches(query, events):
        yield {**outputs(query, match, events), "match_start": match.start, "match_end": match.end}


def bound(path: Path, streams: Mapping[str, pa.Table], options: Options) -> BoundQuery:
    text = path.read_text()
    schemas = {name: table.schema for name, table in streams.items()}
    alone = schemas.get("")
    if alone is not None:
        schema = bind_schema(alone, options)
    else:
        schema = bind_streams(schemas, options)[1]
        if "match_start" in schema.columns:
            schema = replace(schema, start="match_start")
    return bind(cep.Query(text).syntax, schema, options.params, Source(text))


def events_of(query: BoundQuery, streams: Mapping[str, pa.Table]) -> Iterator[Event]:
    named = [(name, row) for name, table in streams.items() for row in table.to_pylist()]
    for index, (name, row) in enumerate(named):
        values = {column: row.get(column) for column in query.schema.columns}
        if name:
            values[STREAM_COLUMN] = name
        time = row[query.schema.time]
        start = row.get("match_start", time) if query.schema.start else None
        yield Event(index, time, values, start)


def by_engine(case: Example) -> Rows:
    """A dozen events aren't worth compiling for."""
    tables = case.tables()
    data = tables.get("", tables)
    queries = [cep.Query(path.read_text(), path.stem) for path in case.queries]
    *_, found = cep.match(data, queries, jit=False, **case.options).values()
    rows: Rows = found.to_pylist()
    return rows


@pytest.mark.parametrize("case", EXAMPLES, ids=str)
def test_the_oracle_finds_what_a_person_found(case: Example) -> None:
    assert multiset(by_oracle(case)) == multiset(case.expected())


@pytest.mark.filterwarnings("ignore:.* events have the same `ts` as another")  # as in the paper
@pytest.mark.parametrize("case", EXAMPLES, ids=str)
def test_the_engine_finds_what_a_person_found(case: Example) -> None:
    found = by_engine(case)
    assert multiset(found) == multiset(case.expected())
    ends = [row["match_end"] for row in found]
    assert ends == sorted(ends)


@pytest.mark.parametrize("name", ["sase/misplaced", "cayuga/9_nested"])
def test_the_commands_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    case = BY_FILE[PAPERS / f"{name}.cep"]
    several = len(case.queries) > 1
    written = tmp_path / (f"{case.path.stem}.json" if several else "found.json")
    output = tmp_path if several else written
    with pytest.raises(SystemExit) as exit:
        main(["run", *command(case.path), "--output", str(output), "--format", "json"])
    assert exit.value.code in (0, None)
    found = [json.loads(line) for line in written.read_text().splitlines()]
    assert multiset(found) == multiset(case.expected())


def test_two_ways_to_a_double_top() -> None:
    one, two = (e for e in EXAMPLES if e.path.stem.startswith("double_top"))
    assert multiset(by_oracle(one)) == multiset(by_oracle(two)) != []


# ── what is there ────────────────────────────────────────────────────────────


def test_every_query_of_the_papers_is_there() -> None:
    names = {folder.name: {p.stem for p in folder.glob("*.cep")} for folder in PAPERS.iterdir()}
    numbers = {
        paper: {int(n) for stem in stems for n in re.findall(r"^(\d+)_", stem)}
        for paper, stems in names.items()
    }
    assert numbers["zstream"] == set(range(1, 9))
    assert numbers["thesis"] == set(range(1, 16))
    assert numbers["next"] >= set(range(1, 5))
    assert numbers["cayuga"] >= set(range(1, 9))
    assert {"double_top", "double_top_resubscribed"} <= names["cayuga"]
    assert names["sase"] == {"shoplifting", "misplaced", "overdose", "query_1"}


def test_no_file_is_left_over() -> None:
    used = {path for e in EXAMPLES for path in (*e.queries, e.answer, *e.files.values())}
    assert {p for p in PAPERS.glob("*/*") if p.is_file()} == used


def test_commands_are_about_the_file_they_stand_in() -> None:
    assert [example.path for example in EXAMPLES] == list(BY_FILE)


# ── the page ─────────────────────────────────────────────────────────────────


def query_of(path: Path) -> str:
    """The query without the comment at its head."""
    return re.sub(r"\A(?:--.*\n)+", "", path.read_text())


def test_the_page_shows_every_query_and_its_matches() -> None:
    shown = {kind: [b.text for b in blocks(PAGE) if b.kind == kind] for kind in ("sql", "json")}
    queries = [query_of(path) for e in EXAMPLES for path in e.queries]
    assert sorted(shown["sql"]) == sorted(queries)
    assert sorted(shown["json"]) == sorted(e.answer.read_text() for e in EXAMPLES)


def test_the_page_shows_matches_beside_their_query() -> None:
    order = [b for b in blocks(PAGE) if b.kind in ("sql", "json")]
    for before, after in pairwise(order):
        if after.kind == "json":
            known = [e.answer.read_text() for e in EXAMPLES if query_of(e.path) == before.text]
            assert after.text in known, after.place
