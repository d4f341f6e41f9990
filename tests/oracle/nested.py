"""Paths into nested values: `request.ip`, `tags[0]`, `headers['x']`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cepheid.language.attribute_paths import AttributePath, Element

from .events import Event


def with_paths(event: Event, paths: Mapping[str, AttributePath]) -> Event:
    """The event with an attribute for every path that a query reads."""
    found = {name: value_at(event.values.get(p.column), p) for name, p in paths.items()}
    return replace(event, values={**event.values, **found}) if found else event


def value_at(value: Any, path: AttributePath) -> Any:
    """An index out of range, or a key that is missing, is NULL."""
    for step in path.steps:
        key = step.key if isinstance(step, Element) else step.name
        match value:
            case dict():
                value = value.get(key)
            case list() if isinstance(key, int):
                value = value[key] if key < len(value) else None
            case list():
                value = [None if struct is None else struct.get(key) for struct in value]
            case _:
                value = None
    return value
