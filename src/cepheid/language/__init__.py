"""The query language: text, AST, canonical text, and what is said about wrong text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.language.diagnostics import Diagnostic, Source, nearest
from cepheid.language.names import quoted
from cepheid.language.render import render, render_expression, render_pattern

if TYPE_CHECKING:
    from cepheid.language.parser import parse, parse_expression, parse_pattern, parse_source

__all__ = [
    "Diagnostic",
    "Source",
    "nearest",
    "parse",
    "parse_expression",
    "parse_pattern",
    "parse_source",
    "quoted",
    "render",
    "render_expression",
    "render_pattern",
]


def __getattr__(name: str) -> object:
    """The parser is loaded when first used: workers need the AST's names, but never parse."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cepheid.language import parser

    return getattr(parser, name)
