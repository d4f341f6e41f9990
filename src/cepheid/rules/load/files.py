"""Rules from files: queries, and tables of their parameters.

All files are read and everything that is wrong with any of them is gathered, so that one look at
the findings is enough to mend them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cepheid.algebra.binding.findings import did_you_mean
from cepheid.errors import DataError, QueryError
from cepheid.language import quoted
from cepheid.language.diagnostics import Source
from cepheid.language.query_list import spans_a_line_with_into, split_at_lines, split_queries
from cepheid.rules.findings import Finding, of_query
from cepheid.rules.load.carried import constants, enabled, with_columns, with_headers, with_values
from cepheid.rules.load.query_texts import QueryTexts
from cepheid.rules.load.readers import circles
from cepheid.rules.load.row_classes import numbers
from cepheid.rules.load.rule_names import duplicates, first_of_each_name
from cepheid.rules.load.tables import TABLES, Misfits, read_table
from cepheid.rules.load.usable import usable
from cepheid.rules.template import Template, clashes, problems

QUERIES = ".cep"
NO_PARAMETERS: Mapping[str, object] = {}


@dataclass(frozen=True)
class LoadedFiles:
    """The contents of files: the templates that could be read, and all findings."""

    templates: tuple[Template, ...]
    findings: tuple[Finding, ...]


def read(path: str | Path, params: Mapping[str, object] = NO_PARAMETERS) -> LoadedFiles:
    """Load the rules of a folder, or of a file and the tables beside it that its queries need.

    `params` are values of parameters for all rules; a table that has a column of that name has
    its own.
    """
    place = Path(path)
    if not place.exists():
        return LoadedFiles((), (Finding(str(path), "there is no such file or folder"),))
    if place.is_dir():
        files = sorted(_files(place))
        tables = [file for file in files if file.suffix.lower() in TABLES]
        files = [file for file in files if file.suffix.lower() == QUERIES]
        if not files:
            hint = f"queries are in files whose names end with {QUERIES}"
            return LoadedFiles((), (Finding(str(path), "there are no rules in this folder", hint),))
    else:
        files, tables = [place], []
    findings: list[Finding] = []
    read = [template for file in files for template in _templates(file, findings)]
    named = first_of_each_name(read, findings)
    if not place.is_dir():
        tables = [t for template in named.values() for t in _beside(place, template, params)]
    templates = _with_tables(named, tables, findings)
    used = list(enabled(with_params(templates, params), findings))
    return gathered(used, findings)


def gathered(templates: Iterable[Template], findings: Iterable[Finding] = ()) -> LoadedFiles:
    """The templates, and the findings of each and between them."""
    loaded = tuple(templates)
    alone = [finding for template in loaded for finding in problems(template)]
    together = (*duplicates(loaded), *circles(loaded), *clashes(loaded))
    return LoadedFiles(loaded, (*findings, *alone, *together))


def without_findings(loaded: LoadedFiles) -> LoadedFiles:
    """The rules that are right. What is wrong between rules is looked at again without the wrong
    ones: one that read a rule that is left out may be wrong, too."""
    left = loaded
    while True:
        templates = usable(left.templates, left.findings)
        again = gathered(templates)
        if not again.findings:
            return LoadedFiles(again.templates, loaded.findings)
        left = again
        loaded = LoadedFiles(loaded.templates, (*loaded.findings, *again.findings))


def _files(folder: Path) -> Iterator[Path]:
    """The files of the folder and its subfolders, except hidden ones. A table may be a folder."""
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir() and path.suffix.lower() not in TABLES:
            yield from _files(path)
        else:
            yield path


# ── queries ──────────────────────────────────────────────────────────────────


def _templates(file: Path, findings: list[Finding]) -> list[Template]:
    """A template for each valid query of the file."""
    try:
        source = Source(file.read_text(encoding="utf-8-sig"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it isn't UTF-8 text"
        findings.append(Finding(str(file), f"the file can't be read: {reason}"))
        return []
    pieces = split_queries(source)
    read, wrong = parsed((file.stem, piece) for piece in pieces)
    if wrong and any(spans_a_line_with_into(piece.text) for piece in pieces):
        pieces = split_at_lines(source)
        read, wrong = parsed((file.stem, piece) for piece in pieces)
    findings.extend(wrong)
    templates = []
    for template in read:
        if template.label is None and len(pieces) > 1:
            message = f"line {template.query.line}: this query has no name"
            hint = "a file has several queries if each begins with INTO and a name"
            findings.append(Finding(str(file), message, hint))
        else:
            templates.append(replace(template, name=template.label or file.stem, origin=""))
    return list(with_headers(templates, source.text, findings))


def parsed(texts: Iterable[tuple[str, Source]]) -> tuple[list[Template], list[Finding]]:
    """A template for each text that is a valid query, with these names."""
    templates, findings, queries = list[Template](), list[Finding](), QueryTexts()
    for name, source in texts:
        try:
            query, apart = queries.read(source)
        except QueryError as error:
            findings.extend(of_query(error))
        else:
            templates.append(Template(name, query, outline=apart))
    return templates, findings


# ── tables ───────────────────────────────────────────────────────────────────


def _beside(file: Path, template: Template, params: Mapping[str, object]) -> list[Path]:
    """The tables that the queries of a single file need. Other tables beside it may be events."""
    if template.parameters.keys() <= params.keys():
        return []
    paths = [file.with_name(template.name + suffix) for suffix in TABLES]
    return [path for path in paths if path.exists()]


def _with_tables(
    named: Mapping[str, Template], tables: Sequence[Path], findings: list[Finding]
) -> list[Template]:
    """Give each table to the query of the same name."""
    filled = dict(named)
    taken: dict[str, Path] = {}
    for path in tables:
        name = path.stem
        if name not in named:
            hint = did_you_mean(name, named, f"begin one with INTO {quoted(name)}")
            findings.append(Finding(str(path), f"no query is called `{name}`", hint))
        elif name in taken:
            message = f"the query `{name}` has a table already: {taken[name]}"
            findings.append(Finding(str(path), message, "keep one of them", (), name))
        else:
            taken[name] = path
            try:
                table = read_table(path, numbers(named[name].query.syntax))
                rows = with_columns(table.rows, constants(named[name]))
                filled[name] = replace(named[name], rows=rows, origin=str(path))
                findings += [_of_misfits(path, name, misfits) for misfits in table.misfits]
            except DataError as error:
                findings.append(Finding(str(path), str(error)))
                del filled[name]
    return list(filled.values())


def _of_misfits(path: Path, template: str, misfits: Misfits) -> Finding:
    message = f"`{misfits.column}` is `{misfits.example}`, and the other values are numbers"
    hint = "an empty field is no value"
    return Finding(str(path), message, hint, misfits.rows, template)


def with_params(templates: Iterable[Template], params: Mapping[str, object]) -> Iterator[Template]:
    """The templates, with values for the parameters that their tables lack."""
    for template in templates:
        given = {name: params[name] for name in template.parameters if name in params}
        if template.rows is None and given:
            yield replace(with_values(template, given), origin=template.query.name)
        elif template.rows is not None:
            yield replace(template, rows=with_columns(template.rows, given))
        else:
            yield template
