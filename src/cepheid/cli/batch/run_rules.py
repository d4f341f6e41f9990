"""`cepheid run` with a set of rules: the matches of all of them, in one table."""

from __future__ import annotations

import time as clock
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.cli.arguments import InputSource
from cepheid.cli.batch.run_local import first_rejected, write_results
from cepheid.cli.inputs import open_inputs
from cepheid.cli.output.show import PerRule, RunSummary
from cepheid.cli.target import Result, Target, refuse_nested
from cepheid.engine.attribution.json_rows import RULE
from cepheid.errors import RuleSetError
from cepheid.language import ast
from cepheid.language.attribute_paths import read_path
from cepheid.language.outline import Frame
from cepheid.language.traversal import walk
from cepheid.options import Options
from cepheid.rules import RuleSet, Template


def run_rules_here(
    rules: RuleSet, sources: tuple[InputSource, ...], options: Options, target: Target
) -> Result:
    """Match all rules in this process."""
    begin = clock.perf_counter()
    inputs = open_inputs(sources, [t.query.syntax for t in rules.templates], options)
    refuse_wrong(rules, inputs.columns, options, target)
    columns = inputs.schemas.values()
    read = inputs.read({n for c in columns for n in columns_read(rules.templates, c, options)})
    matches: pa.Table = rules.match(read.data, options)
    write_results(matches.to_batches(), matches.schema, read.rejected, target)
    seconds = clock.perf_counter() - begin
    figures = RunSummary(read.events, matches.num_rows, seconds, read.rejected.num_rows)
    counts = {str(n["values"]): n["counts"].as_py() for n in pc.value_counts(matches[RULE])}
    shown = matches.slice(0, target.limit).to_pylist()
    lost = first_rejected(read.rejected)
    return Result(matches.column_names, shown, figures, lost, PerRule(len(rules), counts))


def refuse_wrong(rules: RuleSet, data: Any, options: Options, target: Target) -> None:
    """Raise all findings of the rules over these events before the run starts."""
    findings = rules.check(data, options)
    if findings:
        raise RuleSetError(findings)
    for template in rules.templates:
        refuse_nested(template.carried_schema, target.written, f"leave it out of {template.origin}")


def columns_read(templates: Iterable[Template], columns: pa.Schema, options: Options) -> list[str]:
    """The event columns that any query may read; all, if one returns whole events."""
    read = {options.time, options.type, options.tie, options.start}
    frames: set[Frame] = set()
    for template in templates:
        if template.outline is not None:
            read.update(template.outline.attributes)
            if template.outline.frame in frames:
                continue
            frames.add(template.outline.frame)
        query = template.query.syntax
        if not query.returns or any(map(_is_whole, query.returns)):
            return list(columns.names)
        for node in walk(query):
            match node:
                case ast.Attribute(name=name) | ast.Name(name=name):
                    read.add(name)
                case ast.KeyTest(attribute=name):
                    read.add(name)
    paths = [path for name in read if name is not None and (path := read_path(name)) is not None]
    read.update(path.column for path in paths)
    folded = {name.lower() for name in read if name is not None}
    return [name for name in columns.names if name.lower() in folded]


def _is_whole(item: ast.ReturnItem) -> bool:
    """Whether the value may be a whole event. `count(b)` isn't one."""
    match item.expression:
        case ast.Call(name=name) if name.lower() == "count":
            return False
        case expression:
            return any(isinstance(node, ast.Name | ast.Star) for node in walk(expression))
