"""Where the time of a run went, as a bar: in the operators, and outside of them.

As in the boxes, shares are of the time without that in which kernels are made ready, which happens
once and would hide all else in a short run; the line above the bar says it.
"""

from __future__ import annotations

from collections.abc import Sequence

from cepheid.explain.markup import element, escape
from cepheid.explain.paint import OUTLINE, extent, ground
from cepheid.explain.shown_tree import Shown
from cepheid.plan.amounts import duration, share
from cepheid.plan.profile import Profile

_BAR, _LINE, _SIZE = 12.0, 18.0, 12
_ABOVE = 6.0
OTHER = "reading, storing, returning"


def time_parts(nodes: Sequence[Shown], profile: Profile) -> list[tuple[str, float]]:
    """The seconds of a run by what they were for, from the operators down to the rest."""
    seen = {id(node.actual): node.actual.seconds for node in nodes if node.actual is not None}
    known = [("operators", sum(seen.values())), ("gathering statistics", profile.sampling)]
    rest = profile.seconds - profile.compiling - sum(seconds for _, seconds in known)
    return [(name, seconds) for name, seconds in (*known, (OTHER, rest)) if seconds > 0]


def time_bar(nodes: Sequence[Shown], profile: Profile, width: float) -> tuple[str, float]:
    """The bar in a given width with its words around it, and its height."""
    parts = time_parts(nodes, profile)
    total = sum(seconds for _, seconds in parts)
    if not total:
        return "", 0.0
    said = f"{duration(total * 1e9)} in the engine"
    if profile.compiling:
        said += f", and {duration(profile.compiling * 1e9)} to make kernels ready"
    drawn = [element("text", escape(said), x=0, y=_ABOVE + 14, class_="soft")]
    at, x, y = 0.0, 0.0, _ABOVE + _LINE + _BAR + 20
    for n, (name, seconds) in enumerate(parts):
        fill = ground(1 - n / 2)
        wide = width * seconds / total
        place = {"x": at, "y": _ABOVE + _LINE + 4, "width": wide, "height": _BAR}
        drawn.append(element("rect", fill=fill, stroke=OUTLINE, **place))
        at += wide
        text = f"{name} {share(seconds / total)}"
        room = 22 + extent(text, _SIZE)
        if x and x + room > width:
            x, y = 0.0, y + _LINE
        drawn.append(element("rect", x=x, y=y - 10, width=14, height=10, fill=fill, stroke=OUTLINE))
        drawn.append(element("text", escape(text), x=x + 20, y=y, class_="soft"))
        x += room + 16
    return "".join(drawn), y + 8
