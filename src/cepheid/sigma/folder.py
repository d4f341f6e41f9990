"""Drafts as files: `.cep` files that are named after Sigma's, and tables of families."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from cepheid.language.names import quoted
from cepheid.rules.load.tables import read_table
from cepheid.sigma.drafts import Draft, header
from cepheid.sigma.families import Family
from cepheid.sigma.marked_text import text


def write_rules(
    folder: Path, drafts: Mapping[Path, Sequence[Draft]], families: Sequence[Family]
) -> None:
    """Write the rules into a new folder. The paths are those of files below it."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, written in drafts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(map(_written, written)), encoding="utf-8")
    for family in families:
        (folder / f"{family.name}.cep").write_text(_query_of(family), encoding="utf-8")
        _write_rows(folder / family.name, family.rows)


def _written(draft: Draft) -> str:
    return f"{header(draft)}INTO    {quoted(draft.name)}\n{text(draft.query)}\n"


def _query_of(family: Family) -> str:
    titles = "".join(f"--   {title}\n" for title in _titles(family))
    return (
        f"-- One rule for each row of the table {family.name}:\n{titles}"
        f"INTO    {quoted(family.name)}\n{family.query}\n"
    )


def _titles(family: Family) -> Iterator[str]:
    shown = 10
    yield from (str(member.carried["title"]) for member in family.members[:shown])
    if len(family.members) > shown:
        yield f"and {len(family.members) - shown} more"


def _write_rows(path: Path, rows: pa.Table) -> None:
    """As CSV, if that reads as the same values, and else as Parquet: a text of digits doesn't."""
    table = path.with_suffix(".csv")
    pa.csv.write_csv(rows, table)
    read = read_table(table).rows
    if read.to_pydict() != rows.to_pydict() or not read.schema.equals(rows.schema):
        table.unlink()
        pa.parquet.write_table(rows, path.with_suffix(".parquet"))
