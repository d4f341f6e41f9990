"""Where Cepheid keeps what it has made for this machine: compiled kernels, the tables of its
grammar, and what starts Java."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """`$CEPHEID_CACHE`, or else `cepheid` in `$XDG_CACHE_HOME`, or else in `~/.cache`. It needn't
    exist. Raises an error if it isn't named and there is no home."""
    if chosen := os.environ.get("CEPHEID_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cepheid"
