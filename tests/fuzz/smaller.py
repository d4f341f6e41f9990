"""The shortest text that still goes wrong in the same way, or one that is short enough."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

_WORD = re.compile(r"\s*(?:\w+|->|=>|.)", re.DOTALL)


def smaller(text: str, wrong: Callable[[str], bool], seconds: float = 20.0) -> str:
    """Words are left out in ever shorter stretches, then characters."""
    end = time.monotonic() + seconds
    for split in (_WORD.findall, list):
        parts: list[str] = split(text)
        length = len(parts) // 2
        while length and time.monotonic() < end:
            start, shrunk = 0, False
            while start < len(parts) and time.monotonic() < end:
                candidate = parts[:start] + parts[start + length :]
                if wrong("".join(candidate)):
                    parts, shrunk = candidate, True
                else:
                    start += length
            if not shrunk or length > 1:
                length = length // 2 if length > 1 or not shrunk else 1
        text = "".join(parts)
    return text
