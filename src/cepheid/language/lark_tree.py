"""Reading Lark's tree: its parts, their spans, their names; and the mistakes found on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lark import Token, Tree

from cepheid.language.ast import Parameter, Span

Node: TypeAlias = Tree[Token]
Part: TypeAlias = Node | Token


@dataclass
class Mistake(Exception):
    """A finding without its source text, which only the parser knows."""

    code: str
    message: str
    span: Span
    hint: str = ""


def span_of(part: Part) -> Span:
    if isinstance(part, Token):
        assert part.start_pos is not None and part.end_pos is not None
        return Span(part.start_pos, part.end_pos)
    return Span(part.meta.start_pos, part.meta.end_pos)


def extent(tree: Node) -> Span:
    """The span with the parentheses around it, which Lark calls the container."""
    meta = vars(tree.meta)  # Lark doesn't declare these two
    return Span(meta["container_start_pos"], meta["container_end_pos"])


def trees(tree: Node) -> list[Node]:
    return [c for c in tree.children if isinstance(c, Tree)]


def tokens(tree: Node) -> list[Token]:
    return [c for c in tree.children if isinstance(c, Token)]


def slots(tree: Node) -> list[Part | None]:
    """All children; an optional part that isn't there is None."""
    return [*tree.children]


def as_tree(part: Part | None) -> Node:
    assert isinstance(part, Tree)
    return part


def as_token(part: Part | None) -> Token:
    assert isinstance(part, Token)
    return part


def child(tree: Node) -> Node:
    (child,) = trees(tree)
    return child


def has(tree: Node, terminal: str) -> bool:
    return any(t.type == terminal for t in tokens(tree))


def parameter(token: Token) -> Parameter:
    return Parameter(token.value[1:], span_of(token))


def name_of(token: Token) -> str:
    return unquoted(token.value) if token.value.startswith("`") else token.value


def only_name(tree: Node) -> str:
    (token,) = tokens(tree)
    return name_of(token)


def unquoted(text: str) -> str:
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)
