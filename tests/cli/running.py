"""The command line as a user calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cepheid.cli import main


def run(*arguments: str | Path) -> int:
    """The exit code."""
    with pytest.raises(SystemExit) as exit:
        main([*map(str, arguments)])
    return int(exit.value.code or 0)


def unwrapped(text: str) -> str:
    """What stands in a box, on one line."""
    return " ".join(text.replace("│", " ").split())
