"""`cepheid run` with a set of rules: the matches of all of them, in one table."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.cli.arguments import Input
from cepheid.cli.inputs import EventFile
from cepheid.cli.run_local import write_found
from cepheid.cli.show import Figures, PerRule
from cepheid.cli.target import Result, Target, refuse_nested
from cepheid.engine.attribution.json_rows import RULE
from cepheid.errors import RuleSetError
from cepheid.language import ast
from cepheid.language.walking import walk
from cepheid.options import Options
from cepheid.rules import RuleSet, Template
from cepheid.rules.written import Frame


def run_rules_here(
    rules: RuleSet, sources: tuple[Input, ...], options: Options, target: Target
) -> Result:
    """Match all rules in this process."""
    begin = clock.perf_counter()
    files = {source.name or "": EventFile(source, options.time) for source in sources}
    schemas = {name: file.schema for name, file in files.items()}
    refuse_wrong(rules, schemas.get("", schemas), options, target)
    tables = {
        name: file.read(columns_read(rules.templates, file.schema, options))
        for name, file in files.items()
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*have no time")  # the figures tell it
        found: pa.Table = rules.match(tables.get("", tables), options)
    write_found(found.to_batches(), found.schema, files, target)
    figures = Figures(
        events=sum(table.num_rows for table in tables.values()),
        matches=found.num_rows,
        seconds=clock.perf_counter() - begin,
        rejected=sum(table[options.time].null_count for table in tables.values()),
    )
    counts = {str(n["values"]): n["counts"].as_py() for n in pc.value_counts(found[RULE])}
    shown = found.slice(0, target.limit).to_pylist()
    return Result(found.column_names, shown, figures, PerRule(len(rules), counts))


def refuse_wrong(rules: RuleSet, data: Any, options: Options, target: Target) -> None:
    """All that is wrong with the rules over these events, before the work and not in its midst."""
    findings = rules.check(data, options)
    if findings:
        raise RuleSetError(findings)
    for template in rules.templates:
        refuse_nested(template.carried_schema, target.written, f"leave it out of {template.origin}")


def columns_read(templates: Iterable[Template], columns: pa.Schema, options: Options) -> list[str]:
    """The columns of the events that some query may read; all, if one returns whole events."""
    read = {options.time, options.type, options.tie, options.start}
    frames: set[Frame] = set()
    for template in templates:
        if template.written is not None:
            read.update(template.written.attributes)
            if template.written.frame in frames:
                continue
            frames.add(template.written.frame)
        query = template.query.syntax
        if not query.returns or any(map(_is_whole, query.returns)):
            return list(columns.names)
        for node in walk(query):
            match node:
                case ast.Attribute(name=name) | ast.Name(name=name):
                    read.add(name)
                case ast.KeyTest(attribute=name):
                    read.add(name)
    folded = {name.lower() for name in read if name is not None}
    return [name for name in columns.names if name.lower() in folded]


def _is_whole(item: ast.ReturnItem) -> bool:
    """Whether it may be an event with all its columns. `count(b)` only looks as if."""
    match item.expression:
        case ast.Call(name=name) if name.lower() == "count":
            return False
        case expression:
            return any(isinstance(node, ast.Name | ast.Star) for node in walk(expression))
