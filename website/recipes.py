"""The recipes of the cookbook: its code is run, and what it passes to `cep.match` is kept."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pandas as pd
import pyarrow as pa

import cepheid as cep

COOKBOOK = Path(__file__).parents[1] / "docs" / "cookbook.md"

_BLOCK = re.compile(
    r"^(?:## (?P<title>[^\n]+)|```python\n(?P<code>.*?)^```)$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Recipe:
    """A heading of the page, and the query and events that it runs."""

    title: str
    query: str
    events: pd.DataFrame
    options: dict[str, Any]

    @property
    def timeline(self) -> cep.Timeline:
        return cep.timeline(self.events, self.query, **self.options)

    @property
    def table(self) -> pa.Table:
        """The events with the columns `ts` and `type`; without types they are all `event`."""
        table = pa.Table.from_pandas(self.events, preserve_index=False)
        if "type" not in self.options:
            table = table.append_column("type", pa.array(["event"] * table.num_rows))
        return table


def recipes(page: str) -> Iterator[Recipe]:
    """Those of a page's text, in its order."""
    names: dict[str, Any] = {}
    title, kept = "", list[Recipe]()
    match = cep.match

    def keeping(events: Any, query: str, **options: Any) -> Any:
        kept.append(Recipe(title, dedent(query).strip("\n"), events, options))
        return match(events, query, **options)

    names["_match"] = keeping
    for block in _BLOCK.finditer(page):
        if block["title"]:
            title = block["title"]
            continue
        code = block["code"].replace("cep.match(", "_match(")
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, "cookbook", "exec"), names)
        yield from kept
        kept.clear()


def snippets_text(page: str) -> str:
    """The recipes as the lab's package has them."""
    from cepheid.lab.situations.notation import write_events

    parts = ["The recipes of the cookbook; `pytest tests/lab --regen` writes this file."]
    for recipe in recipes(page):
        kind = "events" if "type" in recipe.options else "events without types"
        parts.append(
            f"== {recipe.title}\n{recipe.query}\n-- {kind}\n{write_events(recipe.table)}\n"
        )
    return "\n".join(parts)


if __name__ == "__main__":
    print(snippets_text(COOKBOOK.read_text(encoding="utf-8")), end="")
