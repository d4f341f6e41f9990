"""What planning decided and what a run did, for people: text, JSON, SVG and HTML."""

from cepheid.explain.explanation import Explanation

__all__ = ["Explanation"]
