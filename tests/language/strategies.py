"""Random syntax trees, every node type, names that need quoting among them.

`queries()`, `patterns()` and `expressions()` give what the parser can give: numbers are not
negative (`-5` is a `Unary`), decimals have a fraction, `*` stands only where the grammar has it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TypeVar

from hypothesis import strategies as st

from cepheid.language import ast
from cepheid.language.group_clause import GroupBy, GroupWindow, WindowKind
from cepheid.language.names import RESERVED

T = TypeVar("T")

_ODD = ["unit price", "a`b", "1st", "ünïts", "x-y", "li\u212ae", "'", "first", "day", "min", "seq"]


def names() -> st.SearchStrategy[str]:
    plain = st.sampled_from(["a", "b", "c", "A", "B", "IBM", "T1", "price", "_x", "value", "type"])
    keywords = st.sampled_from(sorted(RESERVED)).flatmap(
        lambda word: st.sampled_from([word, word.lower(), word.title()])
    )
    return st.one_of(plain, plain, keywords, st.sampled_from(_ODD), st.text(min_size=1, max_size=4))


def parameters() -> st.SearchStrategy[ast.Parameter]:
    return st.builds(ast.Parameter, st.sampled_from(["p", "limit", "_w", "where"]))


def decimals() -> st.SearchStrategy[Decimal]:
    return st.decimals(min_value=0, max_value=10**12, places=3)


def durations(smallest: int = 0) -> st.SearchStrategy[ast.Duration]:
    amounts = st.one_of(
        st.integers(smallest, 10**15), decimals().filter(lambda d: d >= smallest), parameters()
    )
    return st.builds(ast.Duration, amounts, st.sampled_from(ast.Unit))


def literals() -> st.SearchStrategy[ast.Literal]:
    return st.builds(
        ast.Literal,
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(0, 10**20),
            decimals(),
            st.floats(0, allow_infinity=False).map(abs),
            st.text(max_size=6),
            st.sampled_from(["it's", '"', "--", "/*", "a%", ":p"]),
        ),
    )


def expressions() -> st.SearchStrategy[ast.Expression]:
    leaves = st.one_of(
        literals(),
        parameters(),
        durations(),
        st.builds(ast.Name, names()),
        st.builds(ast.Attribute, names(), names()),
        st.builds(ast.KeyTest, names()),
        st.builds(ast.OccursWithin, _some(names()), durations(1)),
    )
    return st.recursive(leaves, _larger_expressions, max_leaves=12)


def _larger_expressions(
    inner: st.SearchStrategy[ast.Expression],
) -> st.SearchStrategy[ast.Expression]:
    stars = st.builds(ast.Star, st.none() | names())
    functions = st.one_of(
        st.sampled_from(["sum", "count", "prev", "all", "duration", "contains", "first"]),
        names().filter(lambda n: n == n.lower()),
    )
    likes = st.sampled_from(["LIKE", "ILIKE", "RLIKE", "CONTAINS"])
    return st.one_of(
        st.builds(ast.Unary, st.sampled_from(["-", "+", "NOT"]), inner),
        st.builds(ast.Binary, st.sampled_from(["+", "-", "*", "/", "%", "||"]), inner, inner),
        st.builds(
            ast.Logical,
            st.sampled_from(["AND", "OR"]),
            st.lists(inner, min_size=2, max_size=3).map(tuple),
        ),
        _comparisons(inner),
        st.builds(ast.InRange, inner, inner, inner, st.booleans()),
        st.builds(ast.InList, inner, _some(inner), st.booleans()),
        st.builds(ast.Like, inner, inner, likes, st.booleans()),
        st.builds(ast.IsNull, inner, st.booleans()),
        st.builds(ast.IsDistinct, inner, inner, st.booleans()),
        st.builds(ast.Case, st.none() | inner, _some(st.tuples(inner, inner)), st.none() | inner),
        st.builds(ast.Cast, inner, st.sampled_from(["double", "date"])),
        st.builds(ast.Call, functions, st.just(()) | _some(inner)),
        st.builds(ast.Call, functions, _some(inner | stars), st.booleans()),
        st.builds(ast.Call, functions, st.tuples(inner, st.builds(ast.Step, names(), inner))),
        st.builds(ast.KeyTest, names(), inner),
    )


@st.composite
def _comparisons(draw: st.DrawFn, inner: st.SearchStrategy[ast.Expression]) -> ast.Comparison:
    operands = draw(st.lists(inner, min_size=2, max_size=3))
    sign = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    operators = draw(st.lists(sign, min_size=len(operands) - 1, max_size=len(operands) - 1))
    return ast.Comparison(tuple(operands), tuple(operators))


def quantifiers() -> st.SearchStrategy[ast.Quantifier]:
    bounded = st.tuples(st.integers(0, 5), st.integers(1, 9)).map(
        lambda b: ast.Between(min(b), max(b))
    )
    return st.one_of(
        st.builds(ast.Between, st.integers(0, 9), st.none()),
        bounded,
        st.builds(ast.Exactly, st.integers(1, 9)),
        st.just(ast.Optional()),
    )


def patterns() -> st.SearchStrategy[ast.Pattern]:
    leaves = st.one_of(
        st.builds(ast.Atom, names(), st.none() | names()),
        st.builds(ast.AnyOf, _some(names()), st.none() | names()),
    )
    return st.recursive(leaves, _larger_patterns, max_leaves=8)


def _larger_patterns(inner: st.SearchStrategy[ast.Pattern]) -> st.SearchStrategy[ast.Pattern]:
    items = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        _sequences(inner),
        st.builds(ast.Conjunction, items),
        st.builds(ast.Disjunction, items),
        st.builds(ast.Negation, inner, st.none() | durations(1)),
        st.builds(ast.Unless, inner, inner),
        st.builds(ast.Delay, inner, durations()),
        st.builds(
            ast.Closure,
            inner,
            quantifiers(),
            st.sampled_from(ast.Mode),
            st.booleans(),
            st.none() | expressions(),
        ),
    )


@st.composite
def _sequences(draw: st.DrawFn, inner: st.SearchStrategy[ast.Pattern]) -> ast.Sequence:
    items = draw(st.lists(inner, min_size=2, max_size=4))
    operator = st.sampled_from(ast.SequenceOperator)
    operators = draw(st.lists(operator, min_size=len(items) - 1, max_size=len(items) - 1))
    return ast.Sequence(tuple(items), tuple(operators))


def queries() -> st.SearchStrategy[ast.Query]:
    counts = st.builds(ast.EventCount, st.integers(1, 10**6) | parameters())
    skips = st.one_of(
        st.builds(
            ast.AfterMatch,
            st.sampled_from([ast.Skip.NONE, ast.Skip.TO_NEXT_EVENT, ast.Skip.PAST_LAST_EVENT]),
        ),
        st.builds(ast.AfterMatch, st.sampled_from([ast.Skip.TO_FIRST, ast.Skip.TO_LAST]), names()),
        st.builds(ast.AfterMatch, st.just(ast.Skip.FOR), st.none(), durations(1)),
    )
    items = st.one_of(
        st.builds(ast.ReturnItem, st.builds(ast.Star, st.none() | names())),
        st.builds(ast.ReturnItem, expressions(), st.none() | names()),
    )
    atoms = st.builds(ast.Atom, names(), st.none() | names())
    combinations = st.lists(atoms, min_size=2, max_size=3).map(tuple).map(ast.Conjunction)
    return st.one_of(
        _queries(patterns(), st.just(()) | _some(names()), st.just(False), skips, items, counts),
        _queries(atoms | combinations, st.just(()), st.just(True), skips, items, counts),
    )


def groups() -> st.SearchStrategy[GroupBy]:
    one = [kind for kind in WindowKind if kind is not WindowKind.HOP]
    windows = st.one_of(
        st.builds(GroupWindow, st.sampled_from(one), durations(1)),
        st.builds(GroupWindow, st.just(WindowKind.HOP), durations(1), durations(1)),
    )
    having = st.none() | expressions()
    return st.one_of(
        st.builds(GroupBy, _some(expressions()), st.none() | windows, having),
        st.builds(GroupBy, st.just(()), windows, having),
    )


def _queries(
    pattern: st.SearchStrategy[ast.Pattern],
    streams: st.SearchStrategy[tuple[str, ...]],
    relational: st.SearchStrategy[bool],
    skips: st.SearchStrategy[ast.AfterMatch],
    items: st.SearchStrategy[ast.ReturnItem],
    counts: st.SearchStrategy[ast.EventCount],
) -> st.SearchStrategy[ast.Query]:
    return st.builds(
        ast.Query,
        pattern=pattern,
        into=st.none() | names(),
        streams=streams,
        relational=relational,
        group_by=st.none() | groups(),
        where=st.none() | expressions(),
        having=st.none() | expressions(),
        within=st.none() | durations(1) | counts,
        using=st.none() | st.sampled_from(ast.Strategy),
        after_match=st.none() | skips,
        returns=st.just(()) | _some(items),
        limit=st.none() | st.builds(ast.MatchLimit, counts, st.booleans()),
    )


def _some(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(strategy, min_size=1, max_size=3).map(tuple)
