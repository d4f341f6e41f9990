"""Patterns and expressions with names and types resolved, and the binding that makes them."""

from cepheid.algebra.binding import bind
from cepheid.algebra.query import BoundQuery, Clock, Conjunct, Kind, Role, Variable, Window
from cepheid.algebra.types import STREAM_COLUMN, Schema, Type

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
