"""The input of a command: a query, several that read each other's matches, or a set of rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import typer

from cepheid.algebra.binding.findings import did_you_mean
from cepheid.errors import OptionError, RuleSetError
from cepheid.language.diagnostics import Source
from cepheid.language.query_list import split_queries
from cepheid.language.traversal import parameters
from cepheid.query import Query
from cepheid.query.several import name_of, numbered
from cepheid.rules import LiveRules, RuleSet
from cepheid.rules.load.files import LoadedFiles, read

ONE_QUERY = "name the file of a query, or write the query itself: -q 'PATTERN a ; b'"


def read_query(path: Path | None, text: str | None = None) -> Query:
    """The query of a file, which findings then name, or the query given with `-q`."""
    if (path is None) == (text is None):
        raise typer.BadParameter(ONE_QUERY)
    return Query(_text(path), str(path)) if path is not None else Query(text or "")


def read_queries(
    paths: Sequence[Path], text: str | None, params: Mapping[str, object]
) -> tuple[Query, ...] | RuleSet:
    """Several files are queries of their own. A folder is a set of rules, and so is a file that has
    several queries, or a table beside it for the parameters that have no value."""
    if text is not None or not paths:
        return (read_query(paths[0] if paths else None, text),)
    if len(paths) > 1:
        for path in paths:
            _refuse_rules(path)
        return tuple(map(read_query, paths))
    (path,) = paths
    loaded = read(path, params)
    query = alone(path, loaded)
    if query is not None:
        return (query,)
    if loaded.findings:
        raise RuleSetError(loaded.findings)
    return RuleSet(loaded.templates)


@dataclass(frozen=True, slots=True)
class WatchedRules:
    """The rules of a folder or a file, for a stream that keeps running while they change.
    `versions` is the folder of all versions; without `watched`, rules change only at a start."""

    path: Path
    versions: Path
    watched: bool = True


@dataclass(frozen=True, slots=True)
class SeveralQueries:
    """Queries of a stream, of which some may read the matches of others."""

    queries: tuple[Query, ...]


Running: TypeAlias = Query | SeveralQueries | WatchedRules
"""What runs over a stream."""


def read_stream(
    paths: Sequence[Path],
    text: str | None,
    params: Mapping[str, object],
    versions: Path,
    watched: bool,
) -> Running:
    """The queries or rules of a stream. Some rules may be invalid, or even all, if there are
    earlier versions to resume."""
    if text is not None or not paths:
        return read_query(paths[0] if paths else None, text)
    if len(paths) > 1:
        for path in paths:
            _refuse_rules(path)
        return SeveralQueries(numbered(map(read_query, paths)))
    (path,) = paths
    loaded = read(path, params)
    query = alone(path, loaded)
    if query is not None:
        return query
    if not loaded.templates and LiveRules(str(versions)).first() is None:
        raise RuleSetError(loaded.findings)
    return WatchedRules(path, versions, watched)


def alone(path: Path, loaded: LoadedFiles) -> Query | None:
    """The query of a file, if it is the only one and has no table."""
    if path.is_dir() or len(loaded.templates) != 1:
        return None
    (template,) = loaded.templates
    tabled = template.rows is not None and template.origin != template.query.name
    elsewhere = any(finding.template != template.name for finding in loaded.findings)
    return None if tabled or elsewhere else template.query


def refuse_unknown(params: Mapping[str, object], wanted: tuple[Query, ...] | RuleSet) -> None:
    """Refuse a value for a parameter that no query has: most often its name is misspelled."""
    if not params:
        return
    named = (
        [template.parameters for template in wanted.templates]
        if isinstance(wanted, RuleSet)
        else [parameters(query.syntax) for query in wanted]
    )
    known = {name for names in named for name in names}
    for name in params.keys() - known:
        hint = did_you_mean(name, known, "leave it out")
        raise OptionError(f"--param {name}: no query has a parameter `:{name}`; {hint}")


def files_read(paths: Sequence[Path], wanted: tuple[Query, ...] | RuleSet) -> tuple[str, ...]:
    """The files and folders of the queries, and the tables of their parameters."""
    tables = [t.origin for t in wanted.templates] if isinstance(wanted, RuleSet) else []
    return (*map(str, paths), *(table for table in tables if Path(table).exists()))


def output_names(queries: Sequence[Query]) -> dict[str, str]:
    """The names of the outputs: the label, or the file name without its ending."""
    short = {name_of(q): q.syntax.into or Path(q.name).stem for q in queries}
    if len(set(short.values())) < len(queries):
        raise OptionError("two outputs would have the same name: label the queries with INTO")
    for name in short.values():
        if Path(name).name != name:
            raise OptionError(f"the label `{name}` can't be the name of a file: choose another")
    return short


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise OptionError(f"{path}: this isn't a query: the file isn't UTF-8 text") from None


def _refuse_rules(path: Path) -> None:
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder of rules: run it alone")
    source = Source(_text(path), str(path))
    if len(split_queries(source)) > 1:
        raise typer.BadParameter(
            f"{path} has several queries: run it alone, as a set of rules, or put each query in "
            "its own file, if they read each other's matches"
        )
