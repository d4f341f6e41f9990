"""XML, written so that whatever stands in a query can't break it."""

from __future__ import annotations

import html
import re

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold, not even escaped."""


def escape(text: str) -> str:
    """
    >>> escape("a.x < 'b' & \\x00")
    'a.x &lt; &#x27;b&#x27; &amp; �'
    """
    return html.escape(_ILLEGAL.sub("\ufffd", text))


def element(name: str, *content: str, **attributes: str | float) -> str:
    """An element; the content is markup. An underscore in an attribute's name is a hyphen.

    >>> element("text", escape("a < b"), x=1.5, font_size=12, class_="name")
    '<text x="1.5" font-size="12" class="name">a &lt; b</text>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
    )
    inner = "".join(content)
    return f"<{name}{written}>{inner}</{name}>" if inner else f"<{name}{written}/>"


def shorten(text: str, room: int) -> str:
    """
    >>> shorten("a.price > b.price", 10)
    'a.price >…'
    """
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _value(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else f"{round(value, 2):g}"
