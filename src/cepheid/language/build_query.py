"""From Lark's tree to the AST: the query and its pattern.

The grammar decides what is a query; here are only the checks that a grammar can't make
(`{3,2}`, a window of zero, a clause given twice). A node's span is the text of the node without
parentheses around it; the span of what holds it covers them.
"""

from __future__ import annotations

from collections.abc import Callable

from lark import Token

from cepheid.language.ast import (
    AfterMatch,
    AnyOf,
    Atom,
    Between,
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Duration,
    EventCount,
    Exactly,
    Expression,
    MatchLimit,
    Mode,
    Negation,
    Optional,
    Pattern,
    Quantifier,
    Query,
    ReturnItem,
    Sequence,
    SequenceOperator,
    Skip,
    Span,
    Strategy,
    Unless,
)
from cepheid.language.build_expression import (
    LONGEST_NUMBER,
    build_duration,
    build_expression,
    build_number,
    positive,
)
from cepheid.language.group_clause import GroupBy, GroupWindow, WindowKind
from cepheid.language.lark_tree import (
    Mistake,
    Node,
    as_token,
    as_tree,
    child,
    name_of,
    only_name,
    parameter,
    slots,
    span_of,
    tokens,
    trees,
)

_STRATEGIES = {
    "any_match": Strategy.ANY,
    "next_match": Strategy.NEXT,
    "contiguity": Strategy.STRICT,
}
_SKIPS = {
    "no_skip": Skip.NONE,
    "to_next_event": Skip.TO_NEXT_EVENT,
    "past_last_event": Skip.PAST_LAST_EVENT,
    "to_first": Skip.TO_FIRST,
    "to_last": Skip.TO_LAST,
    "skip_for": Skip.FOR,
}


def build_query(tree: Node) -> Query:
    into, pattern, *clauses = slots(tree)
    given = _clauses([as_tree(c) for c in clauses])
    relational = tree.data == "relational"
    build = _combination if relational else build_pattern
    return Query(
        pattern=build(as_tree(pattern)),
        into=None if into is None else only_name(as_tree(into)),
        streams=tuple(map(name_of, tokens(given["from"]))) if "from" in given else (),
        where=build_expression(child(given["where"])) if "where" in given else None,
        having=build_expression(child(given["having"])) if "having" in given else None,
        within=_window(child(given["within"])) if "within" in given else None,
        using=_STRATEGIES[child(given["using"]).data] if "using" in given else None,
        after_match=_after_match(given["after_match"]) if "after_match" in given else None,
        group_by=_group_by(given) if "group_by" in given else None,
        returns=tuple(map(_return_item, trees(given["return"]))) if "return" in given else (),
        limit=_limit(given["limit"]) if "limit" in given else None,
        relational=relational,
        span=span_of(tree),
    )


_GROUP_HAVING = "group having"
"""A HAVING after GROUP BY: there may be another one before it."""


def _clauses(clauses: list[Node]) -> dict[str, Node]:
    given: dict[str, Node] = {}
    for clause in clauses:
        name = clause.data
        if name == "having" and "group_by" in given:
            name = _GROUP_HAVING
        if name in given:
            keyword = clause.data.replace("_", " ").upper()
            start = span_of(clause).start
            raise Mistake(
                "CEP112",
                f"{keyword} is given twice",
                Span(start, start + len(keyword)),
                "join the conditions with AND" if keyword in ("WHERE", "HAVING") else "keep one",
            )
        given[name] = clause
    return given


def _combination(tree: Node) -> Pattern:
    """`FROM A a, B b` without PATTERN: one event of each, in any order."""
    items: list[Pattern] = []
    for source in trees(tree):
        name, alias = slots(source)
        named = None if alias is None else name_of(as_token(alias))
        items.append(Atom(name_of(as_token(name)), named, span_of(source)))
    return items[0] if len(items) == 1 else Conjunction(tuple(items), span_of(tree))


def _group_by(given: dict[str, Node]) -> GroupBy:
    expressions: list[Expression] = []
    window: GroupWindow | None = None
    for item in trees(given["group_by"]):
        if item.data.upper() not in WindowKind.__members__:
            expressions.append(build_expression(item))
            continue
        if window is not None:
            message = "GROUP BY has one window, this is one too many"
            raise Mistake("CEP121", message, span_of(item), "keep one")
        window = _group_window(item)
    having = given.get(_GROUP_HAVING)
    return GroupBy(
        tuple(expressions),
        window,
        None if having is None else build_expression(child(having)),
        span_of(given["group_by"]),
    )


def _group_window(tree: Node) -> GroupWindow:
    kind = WindowKind(tree.data.upper())
    *slide, size = map(build_duration, trees(tree))
    return GroupWindow(kind, size, slide[0] if slide else None, span_of(tree))


def _window(tree: Node) -> Duration | EventCount:
    if tree.data == "duration":
        return positive(build_duration(tree), "window")
    return _count(tree, "CEP110", "a window of events")


def _count(tree: Node, code: str, what: str) -> EventCount:
    number = tokens(tree)[0]
    if number.type == "PARAMETER":
        return EventCount(parameter(number), span_of(tree))
    amount = build_number(number)
    if not isinstance(amount, int) or amount < 1:
        raise Mistake(code, f"{what} is a whole number, at least 1", span_of(number))
    return EventCount(amount, span_of(tree))


def _limit(tree: Node) -> MatchLimit:
    most = _count(tree, "CEP120", "a LIMIT")
    return MatchLimit(most, bool(trees(tree)), span_of(tree))


def _after_match(tree: Node) -> AfterMatch:
    skip = child(tree)
    how = _SKIPS[skip.data]
    if how is Skip.FOR:
        return AfterMatch(how, None, build_duration(child(skip)), span_of(tree))
    variable = only_name(skip) if skip.children else None
    return AfterMatch(how, variable, None, span_of(tree))


def _return_item(tree: Node) -> ReturnItem:
    alias = next(map(name_of, tokens(tree)), None)
    return ReturnItem(build_expression(child(tree)), alias, span_of(tree))


# ── patterns ────────────────────────────────────────────────────────────────────


def build_pattern(tree: Node) -> Pattern:
    span = span_of(tree)
    match tree.data:
        case "atom":
            leaf, alias = slots(tree)
            return _leaf(as_tree(leaf), None if alias is None else as_token(alias), span)
        case "closure":
            return _closure(tree)
        case "sequence":
            operators = tuple(SequenceOperator(t.value) for t in tokens(tree))
            return Sequence(_patterns(tree), operators, span)
        case "seq_function":
            return _many(tree, _sequence)
        case "conjunction" | "and_function":
            return _many(tree, Conjunction)
        case "disjunction" | "or_function":
            return _many(tree, Disjunction)
        case "negation" | "not_function":
            return Negation(build_pattern(child(tree)), None, span)
        case "absence":
            absent, time = trees(tree)
            return Negation(build_pattern(absent), build_duration(time), span)
        case "unless":
            item, exception = _patterns(tree)
            return Unless(item, exception, span)
        case "delay":
            item_tree, duration = trees(tree)
            return Delay(build_pattern(item_tree), build_duration(duration), span)
    raise AssertionError(tree.data)


def _many(tree: Node, make: Callable[[tuple[Pattern, ...], Span], Pattern]) -> Pattern:
    """`SEQ(A)` is just A, as `(A)` is."""
    items = _patterns(tree)
    return items[0] if len(items) == 1 else make(items, span_of(tree))


def _sequence(items: tuple[Pattern, ...], span: Span) -> Sequence:
    return Sequence(items, (SequenceOperator.ANY,) * (len(items) - 1), span)


def _patterns(tree: Node) -> tuple[Pattern, ...]:
    return tuple(map(build_pattern, trees(tree)))


def _leaf(tree: Node, alias: Token | None, span: Span) -> Atom | AnyOf:
    name = None if alias is None else name_of(alias)
    if tree.data == "type":
        return Atom(only_name(tree), name, span)
    types = tuple(name_of(t) for t in tokens(tree) if t.type == "NAME")
    return AnyOf(types, name, span)


def _closure(tree: Node) -> Closure:
    """Alias and modes may stand in either order, so parts are distinguished by their kind."""
    first = trees(tree)[0]
    alias = next(iter(tokens(tree)), None)
    modes: list[Token] = []
    quantifier: Quantifier | None = None
    until: Expression | None = None
    for part in trees(tree)[1:]:
        match part.data:
            case "quantifier":
                quantifier = _quantifier(tokens(part)[0])
            case "modes":
                modes.extend(tokens(part))
            case "until":
                until = build_expression(child(part))
    assert quantifier is not None
    mode, strict = _modes(modes)
    item: Pattern
    if first.data in ("type", "any_of"):
        leaf_span = span_of(first)
        # `B b+` has its alias inside the item's text, `B+ b` outside.
        inside = alias is not None and tree.children[1] is alias
        item = _leaf(first, alias, leaf_span.to(span_of(alias)) if alias and inside else leaf_span)
    else:
        item = build_pattern(first)
    return Closure(item, quantifier, mode, strict, until, span_of(tree))


def _modes(words: list[Token]) -> tuple[Mode, bool]:
    modes = [w for w in words if w.upper() != "STRICT"]
    stricts = [w for w in words if w.upper() == "STRICT"]
    for repeated in (modes[1:], stricts[1:]):
        if repeated:
            raise Mistake(
                "CEP113",
                f"a closure has one mode, {repeated[0].upper()} is one too many",
                span_of(repeated[0]),
                "one of PREFIXES, SUBSETS or RUNS, and STRICT once",
            )
    return Mode(modes[0].upper()) if modes else Mode.MAXIMAL, bool(stricts)


def _quantifier(token: Token) -> Quantifier:
    text = token.value
    match text:
        case "+":
            return Between(1, None)
        case "*":
            return Between(0, None)
        case "?":
            return Optional()
    bounds = [bound.strip() for bound in text[1:-1].split(",")]
    if len(bounds) > 2 or not _is_count(bounds[0]) or not all(map(_is_count, filter(None, bounds))):
        raise Mistake(
            "CEP111",
            f"`{text}` is no quantifier",
            span_of(token),
            "write `{n}`, `{n,m}` or `{n,}` with whole numbers",
        )
    low = int(bounds[0])
    if len(bounds) == 2 and not bounds[1]:
        return Between(low, None)
    high = int(bounds[-1])
    if high == 0:
        raise Mistake("CEP111", f"`{text}` takes no event at all", span_of(token))
    if high < low:
        raise Mistake(
            "CEP111",
            f"`{text}` has its bounds the wrong way round",
            span_of(token),
            f"did you mean `{{{high},{low}}}`?",
        )
    return Exactly(low) if len(bounds) == 1 else Between(low, high)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < LONGEST_NUMBER
