"""What rules may have to do with others of their set: labels that are read, and carried columns.

Sets that are joined have been checked, each by itself. If nothing of one concerns the other, their
rules needn't be looked at again: a thousand joins take a thousand small steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from cepheid.rules.load.readers import named_in
from cepheid.rules.template import Template


@dataclass(frozen=True)
class Relations:
    """The labels of a set, the names that its patterns have, and the types of carried columns."""

    labels: frozenset[str]
    named: frozenset[str]
    carried: Mapping[str, pa.DataType]

    def beside(self, other: Relations) -> Relations | None:
        """Those of both sets together; None if one may concern the other."""
        read = (self.labels & other.named) | (other.labels & self.named)
        both = self.labels & other.labels
        if read or both & (self.named | other.named):
            return None
        if any(self.carried.get(name, type_) != type_ for name, type_ in other.carried.items()):
            return None
        labels, named = self.labels | other.labels, self.named | other.named
        return Relations(labels, named, {**self.carried, **other.carried})


def relations_of(templates: Iterable[Template]) -> Relations:
    labels: set[str] = set()
    named: dict[object, frozenset[str]] = {}
    carried: dict[str, pa.DataType] = {}
    for template in templates:
        if template.label is not None:
            labels.add(template.label)
        frame = id(template) if template.outline is None else template.outline.frame
        if frame not in named:  # queries that differ in constants name the same
            query = template.query
            named[frame] = frozenset(n for n, _ in named_in(query.syntax, query.source, True))
        # Types that differ have been found to fit each other, and are looked at again.
        carried |= {field.name: field.type for field in template.carried_schema}
    return Relations(frozenset(labels), frozenset[str]().union(*named.values()), carried)
