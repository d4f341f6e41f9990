"""How large a query may be. A larger one is refused at once: what works on a query takes longer
with every word, and calls itself for what is nested, which Python allows only so often."""

from __future__ import annotations

from itertools import islice

from lark import Token, Tree

from cepheid.language.ast import Span
from cepheid.language.lark_tree import Mistake, Node, span_of
from cepheid.language.words import words_of

MOST_WORDS = 15_000
MOST_LEVELS = 100
MOST_EVENTS = 100


def check_length(text: str) -> None:
    """A word is at least a character, so short texts need not be read for it."""
    if len(text) <= MOST_WORDS:
        return
    first_too_many = next(islice(words_of(text), MOST_WORDS, None), None)
    if first_too_many is not None:
        raise Mistake(
            "CEP117",
            f"this text has more than {MOST_WORDS:,} words and symbols",
            first_too_many.span,
            "write it as several queries",
        )


def check_characters(text: str) -> None:
    """Half of a pair of surrogates is no character: it can't be printed or stored. It comes from
    bytes of another encoding."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Mistake(
            "CEP108",
            "this is not a character of Unicode",
            Span(error.start, error.start + 1),
            "save the text as UTF-8",
        ) from None


def check_size(tree: Node) -> None:
    """Without recursion, so that any depth can be measured. Each operator of `x + y + z` is a
    level, since the sum is folded to the left; conditions joined with AND or OR are side by
    side."""
    waiting, events = [(tree, 1)], 0
    while waiting:
        node, level = waiting.pop()
        events += node.data in ("type", "any_of")
        if events > MOST_EVENTS:
            raise Mistake(
                "CEP118",
                f"this pattern has more than {MOST_EVENTS} events",
                span_of(node),
                "write ANY(A, B) for one of several types, A{5} for several of one type, or split "
                "the query with INTO",
            )
        if level > MOST_LEVELS:
            raise Mistake(
                "CEP116",
                f"this is nested more than {MOST_LEVELS} levels deep",
                span_of(node),
                "split it into several conditions or queries",
            )
        inner = level + _levels(node)
        children = [child for child in reversed(node.children) if isinstance(child, Tree)]
        waiting += [(child, inner) for child in children if child.children]


def _levels(node: Node) -> int:
    if node.data != "chain":
        return 1
    operator = node.children[1]
    assert isinstance(operator, Token)
    return 1 if operator.type in ("AND", "OR") else len(node.children) // 2
