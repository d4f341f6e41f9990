"""The help of a command, written in a docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable


def help_of(command: Callable[..., object]) -> str:
    """The docstring with each paragraph on one line, which is then broken where the terminal ends.
    Indented lines are commands, and stay."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(p if p.startswith(" ") else p.replace("\n", " ") for p in paragraphs)
