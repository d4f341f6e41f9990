"""The fenced blocks of a Markdown page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """`kind` is what stands after the fence; `place` is `page:line`."""

    kind: str
    text: str
    place: str

    def __str__(self) -> str:
        return self.place


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text()
    return [
        Block(m[2].strip(), dedent(m[3]), f"{page}:{text.count(chr(10), 0, m.start()) + 1}")
        for m in _FENCE.finditer(text)
    ]
