"""The caller's options: as one object, by name, or both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from cepheid.errors import DataError
from cepheid.language.diagnostics import nearest
from cepheid.options import Options


def options_of(options: object, named: Mapping[str, Any]) -> Options:
    """The options, as an object, by name, or some by name beside an object."""
    if options is not None and not isinstance(options, Options):
        hint = f": name it, as in time={options!r}" if isinstance(options, str) else ""
        raise DataError(f"expected Options, not {of_kind(options)}{hint}")
    known = [option.name for option in fields(Options)]
    for name in named:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean `{close}`?" if close else f"there are {', '.join(known)}"
            raise DataError(f"there is no option `{name}`; {hint}")
    if isinstance(options, Options):
        return replace(options, **named)
    if "time" not in named:
        raise DataError("say which column holds the event time: time='ts'")
    return Options(**named)


def of_kind(value: object) -> str:
    name = type(value).__name__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"
