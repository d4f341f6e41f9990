"""Patterns and expressions with names and types resolved, and the binding that makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.algebra.query import BoundQuery, Clock, Conjunct, Kind, Role, Variable, Window
from cepheid.algebra.types import STREAM_COLUMN, Schema, Type

if TYPE_CHECKING:
    from cepheid.algebra.binding.binder import bind

__all__ = [
    "STREAM_COLUMN",
    "BoundQuery",
    "Clock",
    "Conjunct",
    "Kind",
    "Role",
    "Schema",
    "Type",
    "Variable",
    "Window",
    "bind",
]


def __getattr__(name: str) -> object:
    """Binding is loaded when first used: workers run what is bound already."""
    if name != "bind":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cepheid.algebra.binding.binder import bind

    return bind
