"""Colors and lines. One calm hue says where the cost is; a test checks that all can be read."""

from __future__ import annotations

import math
import unicodedata

INK = "#13202c"
LIGHT, DARK = ("#13202c", "#ffffff"), ("#dbe4ec", "#10161d")
"""Text and ground of a page of our own."""
SOFT = 0.8
"""How opaque the less important text of a page is."""
STYLE = f"""
svg:root {{ color: {LIGHT[0]}; background: {LIGHT[1]}; }}
.soft {{ fill: currentColor; opacity: {SOFT}; }}
@media (prefers-color-scheme: dark) {{
  svg:root {{ color: {DARK[0]}; background: {DARK[1]}; }}
}}
"""
"""Text outside of boxes has the color of the page around it. A drawing that is a file of its own is
such a page itself."""
FAINT = 0.78
"""How opaque the less important text of a box is."""
EDGE = "#8494a4"
OUTLINE = "#5f7f9f"
SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

_NOTHING = (244, 248, 251)
_ALL = (133, 184, 232)
_THINNEST, _THICKEST = 1.2, 10.0


def extent(text: str, size: float, bold: bool = False, mono: bool = False) -> float:
    """The pixels that a text takes at most in the fonts that are usual, since nobody knows which.

    >>> extent("ab", 10, mono=True) == 12.2 and extent("AB", 10, bold=True) == 16.0
    True
    """
    return size * sum(_letter(letter, bold, mono) for letter in text)


def _letter(letter: str, bold: bool, mono: bool) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.25
    if mono:
        return 0.61
    if letter.isupper():
        return 0.8 if bold else 0.72
    return 0.69 if bold else 0.6


def ground(part: float) -> str:
    """The color of a share of the cost.

    >>> ground(0.0), ground(1.0)
    ('#f4f8fb', '#85b8e8')
    """
    known = min(max(part, 0.0), 1.0) if math.isfinite(part) else 0.0
    mixed = (round(a + (b - a) * known) for a, b in zip(_NOTHING, _ALL, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def thickness(rows: float) -> float:
    """The line of so many rows, by their logarithm: ten times as many is as much thicker.

    >>> thickness(0), round(thickness(999), 1), thickness(1e30)
    (1.2, 4.5, 10.0)
    """
    if math.isnan(rows):
        return _THINNEST
    return min(_THINNEST + 1.1 * math.log10(1 + max(rows, 0.0)), _THICKEST)
