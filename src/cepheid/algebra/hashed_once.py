"""Nodes that are compared by structure, and remember their hash.

To hash a tree is to walk it. A planner that looks up every node of every tree that it compares
would walk each as often as it has nodes.
"""

from __future__ import annotations

from typing import Any, TypeVar

Node = TypeVar("Node")


class HashedOnce:
    """The base of frozen nodes with slots that `hashed_once` decorates."""

    __slots__ = ("_hash",)


def hashed_once(node_class: type[Node]) -> type[Node]:
    """Compute the hash of each node once. It isn't pickled: texts hash differently elsewhere."""
    compute = node_class.__hash__

    def remembered(self: Any) -> int:
        try:
            known: int = self._hash
        except AttributeError:
            known = compute(self)
            object.__setattr__(self, "_hash", known)
        return known

    node_class.__hash__ = remembered  # type: ignore[method-assign]
    return node_class
