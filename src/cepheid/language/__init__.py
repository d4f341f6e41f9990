"""The query language: text, AST, canonical text, and what is said about wrong text."""

from cepheid.language.diagnostics import Diagnostic, Source, nearest
from cepheid.language.names import quoted
from cepheid.language.parser import parse, parse_expression, parse_pattern
from cepheid.language.render import render, render_expression, render_pattern

__all__ = [
    "Diagnostic",
    "Source",
    "nearest",
    "parse",
    "parse_expression",
    "parse_pattern",
    "quoted",
    "render",
    "render_expression",
    "render_pattern",
]
