r"""NEXT's core operators as values (NEXT 3.4), to be costed, rewritten and placed.

They are NEXT's, not this language's: its next takes the first successor in its complete history,
and its exception is looked for after the left side has been detected. Conditions are texts: the
cost model ignores them, and only equal ones make operators equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never


@dataclass(frozen=True, slots=True)
class Source:
    """A stream of primitive events."""

    name: str


@dataclass(frozen=True, slots=True)
class Filter:
    """Those that satisfy the condition."""

    item: Operator
    condition: str


@dataclass(frozen=True, slots=True)
class Union:
    """Events of either side. Commutative: equal unions are equal values once `canonical`."""

    left: Operator
    right: Operator


@dataclass(frozen=True, slots=True)
class Next:
    """The second that comes next after each first."""

    first: Operator
    second: Operator


@dataclass(frozen=True, slots=True)
class Unless:
    r"""NEXT's exception, `item \ exception`."""

    item: Operator
    exception: Operator


@dataclass(frozen=True, slots=True)
class Delay:
    """NEXT's time operator: an event so many seconds after each."""

    item: Operator
    seconds: float


@dataclass(frozen=True, slots=True)
class Iteration:
    """One or more. It can be written and compared, but has no bounded cost."""

    item: Operator


Operator: TypeAlias = Source | Filter | Union | Next | Unless | Delay | Iteration


def inputs(operator: Operator) -> tuple[Operator, ...]:
    match operator:
        case Source():
            return ()
        case Filter(item) | Delay(item) | Iteration(item):
            return (item,)
        case Union(left, right):
            return (left, right)
        case Next(first, second):
            return (first, second)
        case Unless(item, exception):
            return (item, exception)
        case _:
            assert_never(operator)


def canonical(operator: Operator) -> Operator:
    """The same, with the sides of every union in one order.

    Associativity is left alone: other parentheses are other operators, until `rewrite` has chosen.

    >>> a, b = Source("a"), Source("b")
    >>> canonical(Union(b, a)) == canonical(Union(a, b))
    True
    """
    match operator:
        case Source():
            return operator
        case Filter(item, condition):
            return Filter(canonical(item), condition)
        case Union(left, right):
            return Union(*sorted((canonical(left), canonical(right)), key=text))
        case Next(first, second):
            return Next(canonical(first), canonical(second))
        case Unless(item, exception):
            return Unless(canonical(item), canonical(exception))
        case Delay(item, seconds):
            return Delay(canonical(item), seconds)
        case Iteration(item):
            return Iteration(canonical(item))
        case _:
            assert_never(operator)


def text(operator: Operator) -> str:
    r"""As the paper writes it, with all parentheses; different operators have different texts.

    >>> text(Unless(Next(Source("a"), Source("b")), Filter(Source("c"), "x > 1")))
    '((a ; b) \\ c[x > 1])'
    """
    match operator:
        case Source(name):
            return name
        case Filter(item, condition):
            return f"{text(item)}[{condition}]"
        case Union(left, right):
            return f"({text(left)} | {text(right)})"
        case Next(first, second):
            return f"({text(first)} ; {text(second)})"
        case Unless(item, exception):
            return f"({text(item)} \\ {text(exception)})"
        case Delay(item, seconds):
            return f"{text(item)}@{seconds:.15g}"
        case Iteration(item):
            return f"{text(item)}+"
        case _:
            assert_never(operator)
