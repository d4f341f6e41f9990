"""Which rules of a set never fired, and how far they got."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.engine.attribution.json_rows import RULE
from cepheid.explain.markup import element, escape
from cepheid.explain.page import STYLE, document, section
from cepheid.plan.amounts import count
from cepheid.reasons.columns_of_text import columns
from cepheid.reasons.funnel import Funnel, figures
from cepheid.reasons.saved import save
from cepheid.reasons.why.report_page import table

MOST_RULES = 20
"""Rules whose funnels are made, if the caller doesn't say."""


@dataclass(frozen=True)
class SetFunnels:
    """How often each rule fired, and the funnels of rules that never did: print it, or save it as
    .txt, .json or .html.

    matches  how many matches each rule has
    funnels  those of rules without a match, by name; the first of them if there are many
    """

    matches: Mapping[str, int]
    funnels: Mapping[str, Funnel]

    @property
    def silent(self) -> tuple[str, ...]:
        """The rules that never fired."""
        return tuple(name for name, matches in self.matches.items() if not matches)

    def __str__(self) -> str:
        head, rows = self._cells()
        if not rows:
            return self._words
        lines = columns([head, *rows], right=figures(head))
        return "\n".join((self._words, "", *lines, *self._left_out))

    def __repr__(self) -> str:
        return f"SetFunnels({self._words})"

    def to_dict(self) -> dict[str, Any]:
        funnels = {name: asdict(funnel) for name, funnel in self.funnels.items()}
        silent = list(self.silent)
        return {"version": 1, "matches": dict(self.matches), "silent": silent, "funnels": funnels}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_arrow(self) -> pa.Table:
        """A row per rule and step."""
        tables = [
            funnel.to_arrow().add_column(0, RULE, pa.array([name] * len(funnel.steps), pa.string()))
            for name, funnel in self.funnels.items()
        ]
        return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})

    def to_html(self) -> str:
        """A page that needs nothing else."""
        return document("Rules that never fired", self._repr_html_())

    def _repr_html_(self) -> str:
        head, rows = self._cells()
        words = "".join(element("p", escape(text)) for text in (self._words, *self._left_out[1:]))
        return element(
            "div",
            element("style", STYLE),
            section("Funnels", words + table(head, rows, figures(head) if rows else ())),
            class_="cepheid",
        )

    def save(self, path: str | Path) -> None:
        """Write it as what the name says: .txt, .json or .html."""
        save(path, {".txt": lambda: f"{self}\n", ".json": self.to_json, ".html": self.to_html})

    @property
    def _words(self) -> str:
        return f"{count(len(self.silent))} of {count(len(self.matches))} rules never fired"

    @property
    def _left_out(self) -> tuple[str, ...]:
        more = len(self.silent) - len(self.funnels)
        return ("", f"and {count(more)} more: most={len(self.silent)} shows all") if more else ()

    def _cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        head: tuple[str, ...] = ()
        rows: list[tuple[str, ...]] = []
        for name, funnel in self.funnels.items():
            head, lines = funnel.cells()
            rows += [(name, *line) for line in lines]
        return (RULE, *head), rows
