"""Each construct of the language and the tree that it means."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest

from cepheid.errors import QueryError
from cepheid.language import ast, parse, parse_expression, parse_pattern
from cepheid.language.ast import (
    AfterMatch,
    AnyOf,
    Atom,
    Attribute,
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Closure,
    Comparison,
    Conjunction,
    Delay,
    Disjunction,
    Duration,
    EventCount,
    Exactly,
    Expression,
    InList,
    InRange,
    IsDistinct,
    IsNull,
    KeyTest,
    Like,
    Literal,
    Logical,
    MatchLimit,
    Mode,
    Name,
    Negation,
    OccursWithin,
    Optional,
    Parameter,
    Pattern,
    ReturnItem,
    Sequence,
    SequenceOperator,
    Skip,
    Span,
    Star,
    Step,
    Strategy,
    Unary,
    Unit,
    Unless,
)

A, B, C, D = Atom("A"), Atom("B"), Atom("C"), Atom("D")
a, b, c = Atom("A", "a"), Atom("B", "b"), Atom("C", "c")
THEN, NEXT, STRICT = SequenceOperator.ANY, SequenceOperator.NEXT, SequenceOperator.STRICT
PLUS = Between(1, None)
ax, bx, cx = Attribute("a", "x"), Attribute("b", "x"), Attribute("c", "x")


def number(value: int | float | str) -> Literal:
    return Literal(Decimal(value) if isinstance(value, str) else value)


def compare(left: Expression, operator: str, right: Expression) -> Comparison:
    return Comparison((left, right), (operator,))


PATTERNS: list[tuple[str, Pattern]] = [
    ("A", A),
    ("A a", a),
    ("`my type` `my alias`", Atom("my type", "my alias")),
    ("`a``b`", Atom("a`b")),
    # sequences: one node per chain as written, parentheses nest
    ("A ; B ; C", Sequence((A, B, C), (THEN, THEN))),
    ("A;B->C=>D", Sequence((A, B, C, D), (THEN, NEXT, STRICT))),
    ("(A ; B) ; C", Sequence((Sequence((A, B), (THEN,)), C), (THEN,))),
    ("A -> (B -> C)", Sequence((A, Sequence((B, C), (NEXT,))), (NEXT,))),
    # precedence: sequence, |, &, \, !, postfix
    ("A ; B | C", Sequence((A, Disjunction((B, C))), (THEN,))),
    ("A | B & C", Disjunction((A, Conjunction((B, C))))),
    ("A & B | C & D", Disjunction((Conjunction((A, B)), Conjunction((C, D))))),
    ("A & B & C", Conjunction((A, B, C))),
    ("A | B | C", Disjunction((A, B, C))),
    ("A | (B | C)", Disjunction((A, Disjunction((B, C))))),
    (r"A & B \ C", Conjunction((A, Unless(B, C)))),
    (r"A \ B \ C", Unless(Unless(A, B), C)),
    ("A UNLESS B", Unless(A, B)),
    (r"!A \ !B", Unless(Negation(A), Negation(B))),
    ("!!A", Negation(Negation(A))),
    ("!B+ b", Negation(Closure(b, PLUS))),
    ("A a ; !B b ; C c", Sequence((a, Negation(b), c), (THEN, THEN))),
    ("A => !B", Sequence((A, Negation(B)), (STRICT,))),
    # functions
    ("SEQ(A a, !B b, C c)", Sequence((a, Negation(b), c), (THEN, THEN))),
    ("seq (A)", A),
    ("SEQ(A, B) ; C", Sequence((Sequence((A, B), (THEN,)), C), (THEN,))),
    ("SEQ(A -> B, C)", Sequence((Sequence((A, B), (NEXT,)), C), (THEN,))),
    ("AND(A, B, C)", Conjunction((A, B, C))),
    ("OR(A, SEQ(B, C))", Disjunction((A, Sequence((B, C), (THEN,))))),
    ("NOT(B b)", Negation(b)),
    ("SEQ(A, B)+", Closure(Sequence((A, B), (THEN,)), PLUS)),
    ("ANY(A, B) x", AnyOf(("A", "B"), "x")),
    ("ANY(A)", AnyOf(("A",))),
    ("ANY(A, B)+ x", Closure(AnyOf(("A", "B"), "x"), PLUS)),
    ("Any a ; seq s", Sequence((Atom("Any", "a"), Atom("seq", "s")), (THEN,))),
    # quantifiers, after the type or after the alias
    ("B+ b", Closure(b, PLUS)),
    ("B b+", Closure(b, PLUS)),
    ("B+", Closure(B, PLUS)),
    ("B* b", Closure(b, Between(0, None))),
    ("B? b", Closure(b, Optional())),
    ("B{3} b", Closure(b, Exactly(3))),
    ("B b{ 2 , 5 }", Closure(b, Between(2, 5))),
    ("B{2,} b", Closure(b, Between(2, None))),
    ("B{0,1}", Closure(B, Between(0, 1))),
    ("(A ; B){2}", Closure(Sequence((A, B), (THEN,)), Exactly(2))),
    ("(B+ b)*", Closure(Closure(b, PLUS), Between(0, None))),
    # modes, before or after the alias
    ("B+ b PREFIXES", Closure(b, PLUS, Mode.PREFIXES)),
    ("B+ prefixes b", Closure(b, PLUS, Mode.PREFIXES)),
    ("B b+ SUBSETS", Closure(b, PLUS, Mode.SUBSETS)),
    ("B+ RUNS b STRICT", Closure(b, PLUS, Mode.RUNS, True)),
    ("B+ STRICT", Closure(B, PLUS, strict=True)),
    ("(A ; B)+ RUNS", Closure(Sequence((A, B), (THEN,)), PLUS, Mode.RUNS)),
    ("runs strict", Atom("runs", "strict")),
    (
        "B+ b UNTIL (b.x > 3)",
        Closure(b, PLUS, until=compare(bx, ">", number(3))),
    ),
    (
        "B+ b RUNS STRICT UNTIL (sum(b.x) > 3) ; C",
        Sequence(
            (
                Closure(b, PLUS, Mode.RUNS, True, compare(Call("sum", (bx,)), ">", number(3))),
                C,
            ),
            (THEN,),
        ),
    ),
    # delays
    ("A a @ 5 min", Delay(a, Duration(5, Unit.MINUTES))),
    ("A @ 5 ; B", Sequence((Delay(A, Duration(5, Unit.UNITS)), B), (THEN,))),
    ("!A @ :d secs", Negation(Delay(A, Duration(Parameter("d"), Unit.SECONDS)))),
    (
        "B+ @ 1 h @ 2 h",
        Delay(Delay(Closure(B, PLUS), Duration(1, Unit.HOURS)), Duration(2, Unit.HOURS)),
    ),
    # comments
    ("A -- the first\n ; /* then\n */ B", Sequence((A, B), (THEN,))),
]


@pytest.mark.parametrize(("text", "tree"), PATTERNS)
def test_patterns(text: str, tree: Pattern) -> None:
    assert parse_pattern(text) == tree


p, q, r = Name("p"), Name("q"), Name("r")

EXPRESSIONS: list[tuple[str, Expression]] = [
    # literals
    ("5", number(5)),
    ("5.50", number("5.50")),
    (".5", number("0.5")),
    ("5e2", number(500.0)),
    ("'it''s'", Literal("it's")),
    ('"say ""hi"""', Literal('say "hi"')),
    ("true", Literal(True)),
    ("FALSE", Literal(False)),
    ("null", Literal(None)),
    (":limit", Parameter("limit")),
    ("5 minutes", Duration(5, Unit.MINUTES)),
    ("1.5h", Duration(Decimal("1.5"), Unit.HOURS)),
    (":n days", Duration(Parameter("n"), Unit.DAYS)),
    ("5 /* about */ secs", Duration(5, Unit.SECONDS)),
    # percentages and remainders
    ("20%", number("0.20")),
    ("(1 + 20%) * a.x", Binary("*", Binary("+", number(1), number("0.20")), ax)),
    ("a.x > 2.5% AND p", Logical("AND", (compare(ax, ">", number("0.025")), p))),
    ("20% - 3", Binary("-", number("0.20"), number(3))),
    ("20%\nTHEN_", Binary("%", number(20), Name("THEN_"))),
    ("a.x % 3", Binary("%", ax, number(3))),
    ("20 % 3", Binary("%", number(20), number(3))),
    ("20%3", Binary("%", number(20), number(3))),
    ("20% a.x", Binary("%", number(20), ax)),
    ("20%(3)", Binary("%", number(20), number(3))),
    ("20% :m", Binary("%", number(20), Parameter("m"))),
    # names: words of the language are free after a dot, and most are elsewhere
    ("a.first", Attribute("a", "first")),
    ("a.day", Attribute("a", "day")),
    ("a.where", Attribute("a", "where")),
    ("a.end", Attribute("a", "end")),
    ("a.`unit price`", Attribute("a", "unit price")),
    ("time + min + value", Binary("+", Binary("+", Name("time"), Name("min")), Name("value"))),
    ("last.count", Attribute("last", "count")),
    # arithmetic
    ("p + q * r", Binary("+", p, Binary("*", q, r))),
    ("p - q - r", Binary("-", Binary("-", p, q), r)),
    ("p - (q - r)", Binary("-", p, Binary("-", q, r))),
    ("p / q % r", Binary("%", Binary("/", p, q), r)),
    ("p || q || r", Binary("||", Binary("||", p, q), r)),
    ("-p * q", Binary("*", Unary("-", p), q)),
    ("-5", Unary("-", number(5))),
    ("- +p", Unary("-", Unary("+", p))),
    # comparisons
    ("p = q", compare(p, "=", q)),
    ("p == q", compare(p, "=", q)),
    ("p <> q", compare(p, "<>", q)),
    ("p != q", compare(p, "<>", q)),
    ("p<=q", compare(p, "<=", q)),
    ("p>-1", compare(p, ">", Unary("-", number(1)))),
    ("a.x = b.x = c.x", Comparison((ax, bx, cx), ("=", "="))),
    ("1 < p <= 5", Comparison((number(1), p, number(5)), ("<", "<="))),
    ("(p = q) = r", compare(compare(p, "=", q), "=", r)),
    # predicates
    ("p BETWEEN 1 AND 2 AND q", Logical("AND", (InRange(p, number(1), number(2)), q))),
    ("p NOT BETWEEN q + 1 AND r", InRange(p, Binary("+", q, number(1)), r, True)),
    ("p IN (1, 'x', q OR r)", InList(p, (number(1), Literal("x"), Logical("OR", (q, r))))),
    ("p not in (1)", InList(p, (number(1),), True)),
    ("p LIKE 'a%'", Like(p, Literal("a%"))),
    ("p NOT LIKE q || '%'", Like(p, Binary("||", q, Literal("%")), negated=True)),
    ("p CONTAINS 'b'", Like(p, Literal("b"), "CONTAINS")),
    ("p NOT CONTAINS :w", Like(p, Parameter("w"), "CONTAINS", True)),
    ("p ILIKE 'A%'", Like(p, Literal("A%"), "ILIKE")),
    ("p NOT RLIKE 'b+'", Like(p, Literal("b+"), "RLIKE", True)),
    ("p ~ q", Like(p, q, "RLIKE")),
    ("p IN :list", InList(p, (Parameter("list"),))),
    ("p NOT IN :list", InList(p, (Parameter("list"),), True)),
    (
        "CAST(p + 1 AS Double) > 2",
        compare(Cast(Binary("+", p, number(1)), "double"), ">", number(2)),
    ),
    ("extract(HOUR FROM p)", Call("date_part", (Literal("hour"), p))),
    ("p IS NULL", IsNull(p)),
    ("p IS DISTINCT FROM q + p", IsDistinct(p, Binary("+", q, p))),
    ("p IS NOT DISTINCT FROM q", IsDistinct(p, q, True)),
    ("p + q IS NOT NULL", IsNull(Binary("+", p, q), True)),
    ("(a, b) OCCURS WITHIN 12 hours", OccursWithin(("a", "b"), Duration(12, Unit.HOURS))),
    ("(a) OCCURS WITHIN 3", OccursWithin(("a",), Duration(3, Unit.UNITS))),
    (
        "p AND (a, b, c) occurs within 1 min OR q",
        Logical(
            "OR",
            (Logical("AND", (p, OccursWithin(("a", "b", "c"), Duration(1, Unit.MINUTES)))), q),
        ),
    ),
    # logic
    ("p OR q AND NOT r", Logical("OR", (p, Logical("AND", (q, Unary("NOT", r)))))),
    ("NOT p = q", Unary("NOT", compare(p, "=", q))),
    ("NOT NOT p", Unary("NOT", Unary("NOT", p))),
    ("NOT(p) AND q", Logical("AND", (Unary("NOT", p), q))),
    ("p or (q or r)", Logical("OR", (p, Logical("OR", (q, r))))),
    # keys
    ("[id]", KeyTest("id")),
    ("[id = 'x']", KeyTest("id", Literal("x"))),
    ("[id, `a b`]", Logical("AND", (KeyTest("id"), KeyTest("a b")))),
    (
        "[where] AND [`a b` == 1 + 2]",
        Logical("AND", (KeyTest("where"), KeyTest("a b", Binary("+", number(1), number(2))))),
    ),
    # functions, aggregates
    ("duration() > 5 minutes", compare(Call("duration", ()), ">", Duration(5, Unit.MINUTES))),
    ("ALL(b.x) <> c.x", compare(Call("all", (bx,)), "<>", cx)),
    ("b.x > PREV(b.x)", compare(bx, ">", Call("prev", (bx,)))),
    ("first(b.x) + LAST(b.x)", Binary("+", Call("first", (bx,)), Call("last", (bx,)))),
    ("count(*)", Call("count", (Star(),))),
    ("count(b)", Call("count", (Name("b"),))),
    ("collect(b.*)", Call("collect", (Star("b"),))),
    ("count(DISTINCT b.x)", Call("count", (bx,), True)),
    (
        "reduce(b, 0, acc -> acc + b.x)",
        Call("reduce", (Name("b"), number(0), Step("acc", Binary("+", Name("acc"), bx)))),
    ),
    ("min(p, q + 1)", Call("min", (p, Binary("+", q, number(1))))),
    ("contains(p, 'y')", Call("contains", (p, Literal("y")))),
    # CASE
    ("CASE WHEN p THEN 1 END", Case(None, ((p, number(1)),))),
    (
        "CASE p WHEN 1 THEN q WHEN 2 THEN r ELSE 20% END",
        Case(p, ((number(1), q), (number(2), r)), number("0.20")),
    ),
]


@pytest.mark.parametrize(("text", "tree"), EXPRESSIONS)
def test_expressions(text: str, tree: Expression) -> None:
    found = parse_expression(text)
    assert found == tree
    assert repr(found) == repr(tree)  # 1 is not TRUE, 500 not 500.0


UNITS = {
    Unit.UNITS: ["", "unit", "units", "UNITS"],
    Unit.MICROSECONDS: ["us", "usec", "usecs", "microsecond", "microseconds"],
    Unit.MILLISECONDS: ["ms", "msec", "msecs", "millisecond", "milliseconds"],
    Unit.SECONDS: ["s", "sec", "secs", "second", "seconds", "SEC", "Secs"],
    Unit.MINUTES: ["min", "mins", "minute", "minutes"],
    Unit.HOURS: ["h", "hr", "hrs", "hour", "hours", "HOURS"],
    Unit.DAYS: ["day", "days"],
    Unit.WEEKS: ["week", "weeks"],
}


@pytest.mark.parametrize(("unit", "word"), [(u, w) for u, words in UNITS.items() for w in words])
def test_units(unit: Unit, word: str) -> None:
    assert parse(f"PATTERN A WITHIN 10 {word}").within == Duration(10, unit)
    assert parse(f"PATTERN A WITHIN 10{word}").within == Duration(10, unit)


def test_windows() -> None:
    def window(text: str) -> Duration | EventCount | None:
        return parse(f"PATTERN A {text} RETURN *").within

    assert window("") is None
    assert window("WITHIN 1.5 hours") == Duration(Decimal("1.5"), Unit.HOURS)
    assert window("WITHIN 1e3") == Duration(1000, Unit.UNITS)
    assert window("WITHIN :w") == Duration(Parameter("w"), Unit.UNITS)
    assert window("WITHIN :w mins") == Duration(Parameter("w"), Unit.MINUTES)
    assert window("WITHIN 100 EVENTS") == EventCount(100)
    assert window("within 1 event") == EventCount(1)
    assert window("WITHIN :n EVENTS") == EventCount(Parameter("n"))


@pytest.mark.parametrize("strategy", Strategy)
def test_using(strategy: Strategy) -> None:
    assert parse(f"PATTERN A ; B USING {strategy.value.lower()} WITHIN 5").using is strategy


AFTER = [
    ("NO SKIP", AfterMatch(Skip.NONE)),
    ("SKIP TO NEXT EVENT", AfterMatch(Skip.TO_NEXT_EVENT)),
    ("skip past last event", AfterMatch(Skip.PAST_LAST_EVENT)),
    ("SKIP TO FIRST b", AfterMatch(Skip.TO_FIRST, "b")),
    ("SKIP TO LAST last", AfterMatch(Skip.TO_LAST, "last")),
    ("SKIP FOR 5 min", AfterMatch(Skip.FOR, None, Duration(5, Unit.MINUTES))),
    ("skip for :pause", AfterMatch(Skip.FOR, None, Duration(Parameter("pause"), Unit.UNITS))),
]


@pytest.mark.parametrize(("text", "after"), AFTER)
def test_after_match(text: str, after: AfterMatch) -> None:
    assert parse(f"PATTERN A AFTER MATCH {text} RETURN *").after_match == after


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("LIMIT 3", MatchLimit(EventCount(3))),
        ("limit :n per key", MatchLimit(EventCount(Parameter("n")), per_key=True)),
    ],
)
def test_limit(text: str, limit: MatchLimit) -> None:
    assert parse(f"PATTERN A {text}").limit == limit
    assert parse(f"PATTERN A RETURN A.limit {text}").limit == limit


def test_return() -> None:
    query = parse("PATTERN A a ; B+ b RETURN *, a.*, a, a.day d, sum(b.x) AS end, 20% AS `a b`")
    assert query.returns == (
        ReturnItem(Star()),
        ReturnItem(Star("a")),
        ReturnItem(Name("a")),
        ReturnItem(Attribute("a", "day"), "d"),
        ReturnItem(Call("sum", (bx,)), "end"),
        ReturnItem(number("0.20"), "a b"),
    )


def test_clauses_in_any_order_and_any_case() -> None:
    usual = parse(
        "INTO Out PATTERN A a ; B b FROM S, `my stream` WHERE p HAVING q WITHIN 5 "
        "USING STRICT CONTIGUITY AFTER MATCH NO SKIP RETURN a"
    )
    assert usual == ast.Query(
        pattern=Sequence((a, b), (THEN,)),
        into="Out",
        streams=("S", "my stream"),
        where=p,
        having=q,
        within=Duration(5, Unit.UNITS),
        using=Strategy.STRICT,
        after_match=AfterMatch(Skip.NONE),
        returns=(ReturnItem(Name("a")),),
    )
    assert usual == parse(
        "into Out pattern A a ; B b return a after match no skip using strict contiguity "
        "within 5 having q where p from S, `my stream`"
    )


def test_a_keyword_is_a_whole_word() -> None:
    for text in ("p ORDER", "p ANDq", "p IS NULLABLE"):
        with pytest.raises(QueryError):
            parse_expression(text)
    assert parse("PATTERN WITHINGS w").pattern == Atom("WITHINGS", "w")
    assert parse("PATTERN A notes WHERE notes.x").pattern == Atom("A", "notes")


def test_spans_leave_out_parentheses_and_comments_around() -> None:
    text = "PATTERN (A a ; B+ b) | C c -- or\nWHERE ((a.x) + 1) * :k > 2 -- so\nRETURN a.x AS y"

    def at(node: ast.Query | Pattern | Expression | ReturnItem) -> str:
        return text[node.span.start : node.span.end]

    query = parse(text)
    assert at(query) == text
    assert isinstance(query.pattern, Disjunction)
    assert at(query.pattern) == "(A a ; B+ b) | C c"
    left, right = query.pattern.items
    assert (at(left), at(right)) == ("A a ; B+ b", "C c")
    assert isinstance(left, Sequence)
    assert [at(item) for item in left.items] == ["A a", "B+ b"]
    assert isinstance(query.where, Comparison)
    product, two = query.where.operands
    assert at(query.where) == "((a.x) + 1) * :k > 2"
    assert (at(product), at(two)) == ("((a.x) + 1) * :k", "2")
    assert isinstance(product, Binary)
    assert (at(product.left), at(product.right)) == ("(a.x) + 1", ":k")
    assert isinstance(product.left, Binary)
    assert at(product.left.left) == "a.x"
    assert at(query.returns[0]) == "a.x AS y"
    assert query.returns[0].span == Span(len(text) - 8, len(text))


def test_spans_in_long_chains_and_of_closures() -> None:
    chain = parse_expression("(p) + q - (r)")
    assert chain.span == Span(0, 13)
    assert isinstance(chain, Binary)
    assert chain.left.span == Span(0, 7)
    before, after = parse_pattern("B+ b"), parse_pattern("B b+ STRICT")
    assert isinstance(before, Closure) and isinstance(after, Closure)
    assert (before.span, before.item.span) == (Span(0, 4), Span(0, 1))
    assert (after.span, after.item.span) == (Span(0, 11), Span(0, 3))


def test_long_conditions_and_deep_parentheses_are_read() -> None:
    condition = parse_expression(" AND ".join(["a.x > 1"] * 300))
    assert isinstance(condition, Logical)
    assert parse_pattern("(" * 3000 + "A" + ")" * 3000) == A


def test_a_typical_query_is_read_in_milliseconds() -> None:
    text = (
        "PATTERN T1 a ; !T2 b ; T3+ c WHERE a.name = b.name = c.name AND a.price > 10 "
        "AND b.price < 10 AND sum(c.volume) > 100 WITHIN 10 secs RETURN a, sum(c.volume) AS v"
    )
    parse(text)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        parse(text)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.01
