"""`cepheid help language`: the words of the language, from the tables that the binder uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from textwrap import fill
from typing import Annotated

import typer


class Topic(StrEnum):
    LANGUAGE = "language"


def show_help(
    topic: Annotated[Topic, typer.Argument(help="What to list.", show_default=False)],
) -> None:
    """List the keywords and functions of the query language.

    cepheid help language
    """
    assert topic is Topic.LANGUAGE
    typer.echo("\n".join(_language()))


def _language() -> Iterator[str]:
    # Imported when needed, so that --help comes at once.
    from cepheid.algebra.aggregates import AGGREGATES
    from cepheid.algebra.functions import FUNCTIONS, LOWERED, OF_GROUPS, SYNONYMS
    from cepheid.language.names import CLAUSES, RESERVED

    yield "Clauses, after PATTERN in any order"
    yield _words(CLAUSES)
    yield "\nOther keywords; a name like a keyword is written in backticks"
    yield _words(sorted(RESERVED.difference(CLAUSES)))
    yield "\nFunctions"
    yield from _table((f"{f.name}({f.signature})", f.doc) for f in FUNCTIONS.values())
    yield "\nFunctions that are written with others"
    yield _words(LOWERED)
    yield "\nOther names"
    yield _words(f"{name} = {meant}" for name, meant in SYNONYMS.items())
    yield "\nAggregates, over a group b"
    yield from _table((f"{a.name}(b.x)", a.doc) for a in AGGREGATES.values())
    yield "\nOf groups and matches"
    yield from _table(OF_GROUPS.items())


def _words(words: Iterable[str]) -> str:
    return fill(", ".join(words), 88, initial_indent="  ", subsequent_indent="  ")


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    listed = list(rows)
    width = max(len(name) for name, _ in listed)
    return (f"  {name:{width}}  {doc}" for name, doc in listed)
