"""The idioms of other systems: the reference evaluator and the engine find what the tables say."""

from __future__ import annotations

import re

import pytest

from tests.corpus.reader import Case, bound, case_of, show
from tests.docs.blocks import ROOT
from tests.engine.harness import Setup, multiset, run
from tests.oracle import matches

PAGE = "docs/migration.md"
_ROW = re.compile(r"^\| (.+?) \| `(PATTERN .+?)` \| `(.+?)` \| `(.+?)` \|$", re.MULTILINE)


def idioms() -> list[Case]:
    text = (ROOT / PAGE).read_text()
    rows = [line for line in text.splitlines() if "`PATTERN " in line]
    cases = [
        case_of(
            {"name": name, "query": query, "events": events, "matches": expected},
            PAGE,
        )
        for name, query, events, expected in _ROW.findall(text.replace(r"\|", "\N{DIVIDES}"))
        for expected in [expected.replace("\N{DIVIDES}", "|")]
    ]
    assert len(cases) == len(rows) > 20
    return cases


@pytest.mark.parametrize("idiom", idioms(), ids=lambda idiom: idiom.name)
def test_an_idiom_matches_as_written(idiom: Case) -> None:
    query = bound(idiom)
    by_oracle = matches(query, idiom.events)
    expected = sorted(show(idiom, [e]) for e in idiom.expected)
    assert sorted(show(idiom, [m.bindings]) for m in by_oracle) == expected
    by_engine = run(query, idiom.events, Setup(engine="auto"))
    assert multiset(query, by_engine) == multiset(query, by_oracle)
