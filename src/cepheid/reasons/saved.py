"""Saving a report as what its name says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from cepheid.errors import DataError


def save(path: str | Path, forms: Mapping[str, Callable[[], str]]) -> None:
    """Write the form that the suffix names."""
    target = Path(path)
    form = forms.get(target.suffix.lower())
    if form is None:
        *known, last = forms
        raise DataError(
            f"it can be saved as {', '.join(known)} or {last}, not as "
            f"{target.suffix or 'a file without a suffix'!r}: {target.name}"
        )
    target.write_text(form(), encoding="utf-8")
