"""What a condition claims of a value, in a form in which claims can be compared.

`a.x > 5`, `a.x IN (1, 2)`, `a.x IS NULL` are claims of one term, `a.x < b.x` is one of two. A
term is any expression that isn't constant: it has one value wherever the condition is checked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from cepheid.algebra.expressions import FLIPPED, Call, Constant, Expr, Value
from cepheid.algebra.text import expression_text
from cepheid.algebra.types import Type
from cepheid.rewrites.conditions.constant_values import COMPARISONS, compare, contains

WHOLE = (Type.INTEGER, Type.DATE, Type.TIMESTAMP, Type.DURATION)
"""Types with nothing between a value and the next one."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The value compares with a constant in one of these ways (see `COMPARISONS`)."""

    outcomes: frozenset[int]
    value: Value


@dataclass(frozen=True, slots=True)
class Among:
    """The value is one of the constants; `negated`: it is none of them."""

    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Null:
    """The value is NULL, or not."""

    is_null: bool


@dataclass(frozen=True, slots=True)
class Related:
    """The two values compare in one of these ways."""

    outcomes: frozenset[int]


Test = Compared | Among | Null | Related


@dataclass(frozen=True, slots=True)
class Claim:
    terms: tuple[Expr, ...]
    test: Test


@lru_cache(maxsize=1024)
def claim_of(expr: Expr) -> Claim | None:
    """The claim that the expression makes, if it is of a known form. Rules compute it for every two
    conditions, again after each step."""
    match expr:
        case Call(operator, (left, right)) if operator in COMPARISONS:
            return _comparison(operator, left, right)
        case Call("in", (term, *options)) if not isinstance(term, Constant):
            return _among(term, options, negated=False)
        case Call("not", (Call("in", (term, *options)),)) if not isinstance(term, Constant):
            return _among(term, options, negated=True)
        case Call("is_null", (term,)) if not isinstance(term, Constant):
            return Claim((term,), Null(True))
        case Call("not", (Call("is_null", (term,)),)) if not isinstance(term, Constant):
            return Claim((term,), Null(False))
        case _:
            return None


def _comparison(operator: str, left: Expr, right: Expr) -> Claim | None:
    if isinstance(left, Constant):
        return None if isinstance(right, Constant) else _comparison(FLIPPED[operator], right, left)
    if isinstance(right, Constant):
        if right.value is None:
            return None
        return Claim((left,), Compared(COMPARISONS[operator], right.value))
    if expression_text(left) > expression_text(right):
        left, right, operator = right, left, FLIPPED[operator]
    return Claim((left, right), Related(COMPARISONS[operator]))


def _among(term: Expr, options: Sequence[Expr], negated: bool) -> Claim | None:
    values = [o.value for o in options if isinstance(o, Constant)]
    if len(values) < len(options) or (negated and None in values):
        return None
    return Claim((term,), Among(tuple(v for v in values if v is not None), negated))


def implies(test: Test, other: Test) -> bool:
    """Whether every value of which the first holds satisfies the second."""
    if test == other:
        return True
    match test, other:
        case Related(mine), Related(theirs):
            return mine <= theirs
        case ((Compared() | Among()), Null(is_null)):
            return not is_null
        case ((Compared() | Among()), (Compared() | Among())):
            return _implies(test, other)
        case _:
            return False


def _implies(test: Compared | Among, other: Compared | Among) -> bool:
    values = finite(test)
    if values is not None:
        return all(allows(other, v) for v in values)
    excluded = _excluded(other)
    if excluded is not None:
        mine = _excluded(test)
        if mine is not None:
            return all(contains(mine, v) for v in excluded)
        return not any(allows(test, v) for v in excluded)
    if isinstance(test, Compared) and isinstance(other, Compared):
        if 1 in test.outcomes and -1 in test.outcomes:
            return False
        direction = 1 if 1 in test.outcomes else -1
        if direction not in other.outcomes or -direction in other.outcomes:
            return False
        between = compare(test.value, other.value) * direction
        return between > 0 or (between == 0 and test.outcomes <= other.outcomes)
    return False


def allows(test: Compared | Among, value: Value) -> bool:
    match test:
        case Compared(outcomes, constant):
            return compare(value, constant) in outcomes
        case Among(values, negated):
            return contains(values, value) is not negated


def finite(test: Test) -> tuple[Value, ...] | None:
    """The values of which it holds, if they can be listed."""
    match test:
        case Compared(outcomes, value) if outcomes == COMPARISONS["="]:
            return (value,)
        case Among(values, negated=False):
            return values
        case _:
            return None


def _excluded(test: Test) -> tuple[Value, ...] | None:
    """The values of which it doesn't hold, if it holds of all others."""
    match test:
        case Compared(outcomes, value) if outcomes == COMPARISONS["<>"]:
            return (value,)
        case Among(values, negated=True):
            return values
        case _:
            return None


def contradiction(tests: Sequence[Test], type_: Type) -> tuple[int, ...] | None:
    """Which of the tests of one value (of two, if they are `Related`) can't hold together."""
    for place, test in enumerate(tests):
        if _never(test):
            return (place,)
    for first, second in combinations(range(len(tests)), 2):
        if _exclude(tests[first], tests[second], type_):
            return (first, second)
    listed = next((v for t in tests if (v := finite(t)) is not None), None)
    single = [t for t in tests if isinstance(t, Compared | Among)]
    if listed is not None and not any(all(allows(t, v) for t in single) for v in listed):
        return tuple(p for p, t in enumerate(tests) if isinstance(t, Compared | Among))
    return None


def _never(test: Test) -> bool:
    match test:
        case Compared(outcomes, float() as value) if math.isnan(value):
            return outcomes == COMPARISONS[">"]
        case Among((), negated=False):
            return True
        case _:
            return False


def _exclude(first: Test, second: Test, type_: Type) -> bool:
    match first, second:
        case Related(mine), Related(theirs):
            return not mine & theirs
        case Null(mine), Null(theirs):
            return mine is not theirs
        case Null(is_null), _:
            return is_null
        case _, Null(is_null):
            return is_null
        case ((Compared() | Among()), (Compared() | Among())):
            for listing, asking in ((first, second), (second, first)):
                values = finite(listing)
                if values is not None:
                    return not any(allows(asking, v) for v in values)
            if isinstance(first, Compared) and isinstance(second, Compared):
                return _apart(first, second, type_) or _apart(second, first, type_)
            return False
        case _:
            return False


def _apart(low: Compared, high: Compared, type_: Type) -> bool:
    """A lower bound that lies above an upper one."""
    if -1 in low.outcomes or 1 in high.outcomes:
        return False
    between = compare(low.value, high.value)
    if between >= 0:
        return between > 0 or not (0 in low.outcomes and 0 in high.outcomes)
    if type_ not in WHOLE or not isinstance(low.value, int) or not isinstance(high.value, int):
        return False
    return low.value + (0 not in low.outcomes) > high.value - (0 not in high.outcomes)
