"""The situation as a program in Python, and as a command."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cepheid.files.declared import schema_text
from cepheid.lab.situations.situation import Situation
from cepheid.options import Options

WRITTEN_OUT = 200
"""Events that a program holds; more are in a file beside it."""

BESIDE = "events.jsonl"


def code(situation: Situation) -> dict[str, Any]:
    """The program, the command, and the events as lines of JSON, if they are read from a file that
    doesn't exist yet."""
    events = situation.events
    beside = not situation.source and events.num_rows > WRITTEN_OUT
    lines = "\n".join(_json_lines(events)) + "\n" if beside else None
    situation = replace(situation, source=BESIDE) if beside else situation
    return {"python": python(situation), "command": command(situation), "lines": lines}


def python(situation: Situation) -> str:
    """A program that prints the matches."""
    named = ", ".join(f"{name}={value!r}" for name, value in _named(situation.options))
    made = list(_read(situation) if situation.source else _made(situation.events))
    text = "\n".join(made)
    imports = ["import datetime"] if "datetime." in text else []
    imports += ["from decimal import Decimal"] if "Decimal(" in text else []
    imports += ["from math import inf, nan"] if _has_odd_floats(situation) else []
    return "\n".join(
        [
            *imports,
            *([""] if imports else []),
            _library(situation.source),
            "",
            "import cepheid as cep",
            "",
            *made,
            f"query = {_quoted(situation.text)}",
            f"print(cep.match(events, query, {named}))",
            "",
        ]
    )


def command(situation: Situation) -> str:
    """What a shell runs. Events that aren't in a file are its standard input."""
    options, written = situation.options, not situation.source
    words = [f"cepheid run -q {shlex.quote(situation.text.strip())}"]
    words.append(f"--input {shlex.quote(situation.source or '-')}")
    words += [f"--{n} {shlex.quote(str(v))}" for n, v in _named(options) if n != "params"]
    words += [f"--param {shlex.quote(f'{n}={_bare(v)}')}" for n, v in options.params.items()]
    if written:
        words.append("--input-format json")
    if written or situation.source == BESIDE:
        words.append(f"--schema {shlex.quote(schema_text(situation.events.schema))}")
    run = " \\\n  ".join(words)
    if not written:
        return run
    return "\n".join([f"{run} <<'EVENTS'", *_json_lines(situation.events), "EVENTS"])


def _named(options: Options) -> Iterator[tuple[str, Any]]:
    yield "time", options.time
    for name in ("type", "tie", "unit"):
        if getattr(options, name) is not None:
            yield name, getattr(options, name)
    if options.params:
        yield "params", dict(options.params)


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    """A text of several lines in three quotes, if it can be."""
    text = text.strip()
    if "\n" not in text or '"' in text or "\\" in text:
        return repr(text)
    return f'"""\n{text}\n"""'


# ── the events ───────────────────────────────────────────────────────────────


def _read(situation: Situation) -> Iterator[str]:
    source, time = situation.source, situation.options.time
    if _is_json(source):
        yield f"events = pyarrow.json.read_json({source!r})"
    elif source.endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz")):
        moments = pa.types.is_timestamp(situation.events.schema.field(time).type)
        tab = r", sep='\t'" if ".tsv" in source else ""
        dates = f", parse_dates=[{time!r}]" if moments else ""
        yield f"events = pd.read_csv({source!r}{tab}{dates})"
    else:
        yield f"events = pd.read_parquet({source!r})"


def _is_json(source: str) -> bool:
    return source.endswith((".json", ".jsonl", ".ndjson"))


def _library(source: str) -> str:
    if _is_json(source):
        return "import pyarrow.json"
    return "import pandas as pd" if source else "import pyarrow as pa"


def _made(events: pa.Table) -> Iterator[str]:
    yield "events = pa.table("
    yield "    {"
    for name in events.column_names:
        column = events[name]
        if pa.types.is_timestamp(column.type) and column.type.tz:
            column = column.cast(pa.timestamp("us"))
        kind = _type(events[name].type)
        yield f"        {name!r}: pa.array({column.to_pylist()!r}{kind}),"
    yield "    }"
    yield ")"


def _type(type_: pa.DataType) -> str:
    """The second argument of `pa.array`; of nested values none, pyarrow finds their type."""
    is_ = pa.types
    if is_.is_nested(type_):
        return ""
    if is_.is_timestamp(type_):
        return ", pa.timestamp('us'" + (", 'UTC')" if type_.tz else ")")
    if is_.is_decimal(type_):
        return f", pa.decimal128({type_.precision}, {type_.scale})"
    names = {"double": "float64", "float": "float32", "bool": "bool_", "date32[day]": "date32"}
    return f", pa.{names.get(str(type_), str(type_))}()"


def _has_odd_floats(situation: Situation) -> bool:
    return not situation.source and any(
        isinstance(value, float) and not math.isfinite(value)
        for column in situation.events.columns
        if pa.types.is_floating(column.type)
        for value in column.to_pylist()
    )


def _json_lines(events: pa.Table) -> Iterator[str]:
    for row in events.to_pylist():
        yield json.dumps({n: v for n, v in row.items() if v is not None}, default=_iso)


def _iso(value: Any) -> str:
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)
