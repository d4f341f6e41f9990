"""Columns of text, as wide as their longest cell."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from cepheid.language.diagnostics import printable


def columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """Values may hold characters that a terminal obeys; these are replaced.

    >>> list(columns([("step", "reached"), ("A a", "12")], right=(1,)))
    ['step  reached', 'A a        12']
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        cells = (
            cell.rjust(width) if n in right else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()
