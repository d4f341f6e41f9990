"""Parses many query texts, most of them without the parser."""

from __future__ import annotations

from dataclasses import replace

from cepheid.language.diagnostics import Source
from cepheid.language.outline import Frame, Outline, outline
from cepheid.query.parsed_query import Query, deferred_query


class QueryTexts:
    """Parses one of the texts that differ only in their label and plain conditions. If that one is
    no query, it parses each of them, since findings have places."""

    def __init__(self) -> None:
        self._frames: dict[Frame, Frame] = {}

    def read(self, source: Source) -> tuple[Query, Outline | None]:
        """The query, and its outline if it has one. Raises QueryError if the text is no query."""
        apart = outline(source.text)
        if apart is None:
            return _parsed(source), None
        known = self._frames.get(apart.frame)
        query = _parsed(source) if known is None else deferred_query(source)
        frame = self._frames.setdefault(apart.frame, apart.frame)  # one object for all
        return query, replace(apart, frame=frame)


def _parsed(source: Source) -> Query:
    return Query(source.text, source.name, line=source.line, column=source.column)
