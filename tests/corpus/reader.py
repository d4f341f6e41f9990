"""Reads the corpus. A file holds cases separated by blank lines; lines with `#` are comments.

    name     closure/maximal group between neighbors
    query    PATTERN A a ; B+ b ; C c WITHIN 10
    events   A@1 B@2 B@3(x=5, s='t', y=null) A@4 B@5 C@6
    matches  a1 b2,3,5 c6 | a4 b5 c6

- A longer field goes on in indented lines.
- An event is `Type@time(attribute=value, …)`. The time column is `ts`, the type column `type`;
  attributes that an event doesn't give are NULL. Values: 3, 2.5, nan, true, null, 'text'.
  `Type@start..end` has a duration; if one event has, the column `begin` holds all starts.
- `matches` were written by hand, `oracle` by the oracle (`pytest tests/oracle --regen`).
- A match names each variable with the time of its event, or `#n`, its place in the input from 0,
  where several events have that time; groups with commas, an empty group as `b()`. A variable
  that is not named belongs to a branch not taken. `none`: there is no match.
- `returns`: the RETURN rows, in the order of the matches, as JSON.
- `answers`: the rows of a query that returns answers, in their order, as JSON; always by hand.
  `matches` need not be given then.
- `tie`: the tie-break column. `params`: `n=5, s='x'`. `columns`: types that can't be inferred,
  `t:timestamp`. `unit`: what a tick of `ts` is. `streams`: `A(x) B(x, y)`, several streams with
  their attributes. `note`: what the case is about.
- Nested values are JSON in a text, and their types are declared: `columns  r:struct<ip:string>`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.algebra import bind
from cepheid.algebra.nested_columns import with_extracted
from cepheid.algebra.patterns import positive
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.types import STREAM_COLUMN, Schema, Type
from cepheid.files.declared import parse_columns
from cepheid.language import parse
from cepheid.language.ast import Unit
from cepheid.language.diagnostics import Source
from tests.oracle.events import Binding, Event, Match
from tests.oracle.match import matches

TIME, KIND, START = "ts", "type", "begin"
FIELD = re.compile(r"([a-z]+)(?:\s+|$)(.*)")
EVENT = re.compile(r"(\w+)@(?:(-?\d+|null)\.\.)?(-?\d+|null)(?:\(((?:'[^']*'|[^')])*)\))?")
STREAM = re.compile(r"(\w+)\(([^)]*)\)")
PAIR = re.compile(r"(\w+)\s*=\s*('[^']*'|[^,]+)")

Bindings = Mapping[str, Binding]


@dataclass(frozen=True)
class Case:
    """`expected` is a multiset; `returns` its RETURN rows, if the case tells them. `rows` are the
    answers, if the query returns some."""

    name: str
    file: str
    query_text: str
    schema: Schema
    events: tuple[Event, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    expected: tuple[Bindings, ...] = ()
    by_hand: bool = True
    returns: tuple[Mapping[str, Any], ...] | None = None
    rows: tuple[Mapping[str, Any], ...] | None = None
    note: str = ""

    def __str__(self) -> str:
        return self.name

    @cached_property
    def bound(self) -> BoundQuery:
        source = Source(self.query_text, self.name)
        return bind(parse(self.query_text, self.name), self.schema, self.params, source)

    def over(self, events: tuple[Event, ...]) -> Case:
        """The same query, bound once, over other events."""
        other = replace(self, events=events)
        vars(other)["bound"] = self.bound
        return other

    @cached_property
    def answer(self) -> list[Match]:
        """The oracle's matches, found once however often the case is run."""
        return matches(self.bound, self.events)


def bound(case: Case) -> BoundQuery:
    return case.bound


def files() -> list[Path]:
    return sorted(Path(__file__).parent.glob("*.txt"))


@lru_cache
def cases(file: str | None = None) -> tuple[Case, ...]:
    """All cases, or those of one file (`closure.txt`)."""
    chosen = [p for p in files() if file is None or p.name == file]
    return tuple(case_of(fields, path.name) for path in chosen for fields in blocks(path))


def blocks(path: Path) -> list[dict[str, str]]:
    paragraphs = re.split(r"\n\s*\n", path.read_text())
    return [fields for p in paragraphs if (fields := fields_of(p, path.name))]


def fields_of(paragraph: str, file: str) -> dict[str, str]:
    """The fields of one case as written."""
    fields: dict[str, str] = {}
    last = ""
    for line in paragraph.splitlines():
        if line.startswith("#"):
            continue
        if line[:1].isspace() and last:
            fields[last] += "\n" + line.strip()
            continue
        head = FIELD.fullmatch(line)
        if head is None or head[1] in fields:
            raise ValueError(f"{file}: can't read {line!r}")
        last = head[1]
        fields[last] = head[2].strip()
    return fields


KNOWN = {
    "name", "query", "events", "matches", "oracle", "returns", "tie", "params", "columns", "unit",
    "streams", "note", "answers",
}  # fmt: skip


def case_of(fields: Mapping[str, str], file: str) -> Case:
    name = fields["name"]
    told = [field for field in ("matches", "oracle") if field in fields]
    if not fields.keys() <= KNOWN or len(told) > 1 or not (told or "answers" in fields):
        raise ValueError(f"{file}: {name}: needs `matches` or `oracle`, and only known fields")
    kind = STREAM_COLUMN if "streams" in fields else KIND
    types = nested_types(fields)
    events = tuple(unpacked(e, types) for e in read_events(fields["events"], kind))
    case = Case(
        name=name,
        file=file,
        query_text=fields["query"],
        schema=schema_of(events, fields, kind),
        events=events,
        params={k: value_of(v) for k, v in PAIR.findall(fields.get("params", ""))},
        by_hand="matches" in fields,
        returns=tuple(json.loads(fields["returns"])) if "returns" in fields else None,
        rows=tuple(json.loads(fields["answers"])) if "answers" in fields else None,
        note=fields.get("note", ""),
    )
    if not told:
        return case
    text = fields.get("matches", fields.get("oracle", ""))
    return Case(**{**case.__dict__, "expected": read_matches(text, case)})


# ── events ───────────────────────────────────────────────────────────────────


def value_of(text: str) -> Any:
    text = text.strip()
    if text.startswith("'"):
        return text[1:-1]
    words = {"null": None, "true": True, "false": False}
    if text in words:
        return words[text]
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def read_events(text: str, kind: str) -> tuple[Event, ...]:
    rest = EVENT.sub("", text).strip()
    if rest:
        raise ValueError(f"can't read events: {rest!r}")
    read: list[tuple[str, str | None, int | None, dict[str, Any]]] = [
        (m[1], m[2], value_of(m[3]), {k: value_of(v) for k, v in PAIR.findall(m[4] or "")})
        for m in EVENT.finditer(text)
    ]
    lasting = any(start is not None for _, start, *_ in read)
    names = dict.fromkeys(name for *_, given in read for name in given)
    floats = {n for n in names for *_, given in read if isinstance(given.get(n), float)}
    events: list[Event] = []
    for index, (event_type, given_start, time, given) in enumerate(read):
        values: dict[str, Any] = {TIME: time, kind: event_type}
        for name in names:
            value = given.get(name)
            values[name] = float(value) if name in floats and value is not None else value
        start = None
        if lasting:
            start = values[START] = time if given_start is None else value_of(given_start)
        events.append(Event(index, time or 0, values, start))
    return tuple(events)


def type_of(values: Iterable[Any]) -> Type:
    for value in values:
        match value:
            case bool():
                return Type.BOOLEAN
            case float():
                return Type.FLOAT
            case int():
                return Type.INTEGER
            case str():
                return Type.STRING
    return Type.INTEGER


def schema_of(events: Sequence[Event], fields: Mapping[str, str], kind: str) -> Schema:
    columns = {TIME: Type.INTEGER, kind: Type.STRING}
    for name in dict.fromkeys(n for e in events for n in e.values):
        columns.setdefault(name, type_of(e.values[name] for e in events))
    nested = nested_types(fields)
    for given in fields.get("columns", "").split():
        name, _, type_name = given.partition(":")
        columns[name] = Type.OTHER if name in nested else Type(type_name)
    streams = {
        m[1]: frozenset({TIME, kind, *m[2].replace(",", " ").split()})
        for m in STREAM.finditer(fields.get("streams", ""))
    }
    return Schema(
        columns=columns,
        time=TIME,
        type=kind,
        tie=fields.get("tie"),
        start=START if START in columns else None,
        streams=streams or None,
        unit=Unit(fields["unit"]) if "unit" in fields else None,
        nested=nested,
    )


def nested_types(fields: Mapping[str, str]) -> dict[str, pa.DataType]:
    """The columns that are declared as structs, arrays or maps."""
    given = [column.partition(":") for column in fields.get("columns", "").split()]
    return {n: parse_columns(f"{n} {type_}").field(n).type for n, _, type_ in given if "<" in type_}


def unpacked(event: Event, types: Mapping[str, pa.DataType]) -> Event:
    values = {n: json.loads(v) for n, v in event.values.items() if n in types and v is not None}
    return replace(event, values={**event.values, **values}) if types else event


def packed(value: Any, type_: pa.DataType) -> Any:
    """As pyarrow takes it: a map as its pairs."""
    match value:
        case dict() if pa.types.is_map(type_):
            return [(k, packed(v, type_.item_type)) for k, v in value.items()]
        case dict():
            return {f.name: packed(value.get(f.name), f.type) for f in type_}
        case list():
            return [packed(v, type_.value_type) for v in value]
        case _:
            return value


ARROW = {
    Type.BOOLEAN: pa.bool_(),
    Type.INTEGER: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.DECIMAL: pa.decimal128(18, 4),
    Type.STRING: pa.string(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us", "UTC"),
}


def table(schema: Schema, events: Sequence[Event]) -> pa.Table:
    """The events as a table, in the order given."""
    plain = {Type.DATE: pa.int32(), Type.TIMESTAMP: pa.int64()}
    arrays: dict[str, pa.Array] = {}
    for name, kind in schema.columns.items():
        values = [e.values.get(name) for e in events]
        if name in schema.paths:
            continue
        if name in schema.nested:
            type_ = schema.nested[name]
            arrays[name] = pa.array([packed(v, type_) for v in values], type_)
            continue
        array = pa.array(values, plain.get(kind, ARROW[kind]))
        arrays[name] = array.cast(ARROW[kind])
    return with_extracted(pa.table(arrays), [*arrays, *schema.paths])


# ── matches ──────────────────────────────────────────────────────────────────


def read_matches(text: str, case: Case) -> tuple[Bindings, ...]:
    if text.strip() in ("", "none"):
        return ()
    variables = positive(bound(case).pattern)
    return tuple(read_match(m, variables, case) for m in text.replace("\n", " ").split("|"))


def read_match(text: str, variables: Sequence[str], case: Case) -> Bindings:
    bindings: dict[str, Binding] = dict.fromkeys(variables)
    query = bound(case)
    for word in text.split():
        fitting = [v for v in variables if word.startswith(v)]
        if not fitting:
            raise ValueError(f"{case.name}: no variable in {word!r}")
        variable = max(fitting, key=len)
        label = word[len(variable) :]
        events = () if label == "()" else tuple(find(w, case) for w in label.split(","))
        single = query.variables[variable].kind.name == "SINGLE"
        bindings[variable] = events[0] if single else events
    return bindings


def find(label: str, case: Case) -> int:
    if label.startswith("#"):
        return int(label[1:])
    found = [e.index for e in case.events if e.time == int(label)]
    if len(found) != 1:
        raise ValueError(f"{case.name}: {label} is the time of {len(found)} events; use #n")
    return found[0]


def show(case: Case, matches: Iterable[Bindings]) -> str:
    """The matches as a case writes them."""
    count = Counter(e.time for e in case.events)

    def label(index: int) -> str:
        time = case.events[index].time
        return str(time) if count[time] == 1 else f"#{index}"

    def word(variable: str, binding: Binding) -> str:
        group = (binding,) if isinstance(binding, int) else binding or ()
        return variable + (",".join(label(i) for i in group) or "()")

    shown = [
        " ".join(word(v, b) for v, b in bindings.items() if b is not None) for bindings in matches
    ]
    return " | ".join(shown) or "none"


def rewrite(path: Path, answers: Mapping[str, str]) -> None:
    """Put new answers in the `oracle` fields of the named cases."""
    paragraphs = re.split(r"(\n\s*\n)", path.read_text())
    for n, paragraph in enumerate(paragraphs):
        name = re.search(r"^name +(.*)$", paragraph, re.MULTILINE)
        if name is not None and name[1].strip() in answers:
            answer = answers[name[1].strip()]
            paragraphs[n] = re.sub(
                r"^oracle\b.*(?:\n[ \t]+.*)*",
                lambda _, a=answer: f"oracle   {a}",
                paragraph,
                flags=re.MULTILINE,
            )
    path.write_text("".join(paragraphs))
