"""`docs/explain.md` shows what explanations are."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.docs.blocks import ROOT, blocks
from tests.explain.cases import documented

PAGE = "docs/explain.md"
NAMED_BY_THE_USER = ("rates", "selectivities", "distinct")


def test_the_text_is_the_text() -> None:
    shown = [block.text for block in blocks(PAGE) if "per window" in block.text]
    assert shown == [f"{documented()}\n"]


def test_the_drawing_is_the_drawing() -> None:
    assert (ROOT / "docs/explain.svg").read_text("utf-8") == documented().to_svg()


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield name
            if name not in NAMED_BY_THE_USER:
                yield from keys(part)
    elif isinstance(value, list):
        for part in value:
            yield from keys(part)


def test_every_key_of_the_json_is_described() -> None:
    text = (ROOT / PAGE).read_text("utf-8").split("## JSON")[1]
    found = set(keys(json.loads(documented().to_json())))
    assert len(found) > 30
    assert [key for key in sorted(found) if f"`{key}`" not in text] == []
