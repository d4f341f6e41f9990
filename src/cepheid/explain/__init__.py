"""Explains the plan and the run of a query to people: text, JSON, SVG and HTML."""

from cepheid.explain.explanation import Explanation

__all__ = ["Explanation"]
