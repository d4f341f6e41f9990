"""Lowers expressions into the lines of a kernel: conditions, values, groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import assert_never

from cepheid.algebra.aggregates import AGGREGATES, FoldStep
from cepheid.algebra.expressions import (
    Accumulator,
    Aggregate,
    Attribute,
    Call,
    Constant,
    Every,
    Expr,
    MatchDuration,
    Previous,
    PreviousOr,
    Reduce,
    Some,
    TimeSpan,
    Whole,
    variables,
)
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import (
    START,
    TIME,
    KernelColumn,
    TextBytes,
    TextConstant,
    TextPlaces,
    as_column,
)
from cepheid.engine.lowering.folds import (
    FoldPart,
    Seen,
    accumulate,
    accumulate_distinct,
    finalized,
)
from cepheid.engine.lowering.operators import TEXTS, in_bytes, operate, operate_on_texts
from cepheid.engine.lowering.terms import (
    DOUBLES,
    Event,
    GroupPlace,
    Inputs,
    NotLowered,
    Place,
    Term,
    both,
    compare,
    zero,
)
from cepheid.kernels.code import Code


class KernelLowering:
    """Lowers expressions into the lines of one kernel, given where its variables are."""

    def __init__(self, inputs: Inputs, scope: dict[str, Place], prefix: str = "t") -> None:
        self.inputs = inputs
        self.scope = scope
        self.code = Code(prefix=prefix)
        self.carried: Mapping[Aggregate, FoldPart] = {}  # of the elements taken before
        self._accumulator: Term | None = None
        self.outer: list[str] = []
        self._outer_cache: dict[tuple[str, KernelColumn], Term] = {}
        self._cache: dict[tuple[str, KernelColumn], Term] = {}
        self._in_bytes = False  # whether texts are read as the places of their bytes

    # ── lines ──

    @property
    def inner(self) -> list[str]:
        """The lines that read what is searched for."""
        return self.code.lines

    @property
    def depth(self) -> int:
        """How deep they end."""
        return self.code.level

    def name(self) -> str:
        return self.code.name()

    def line(self, text: str) -> None:
        self.code.line(text)

    def let(self, source: str) -> str:
        return self.code.let(None, source)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A nested block; what is read inside isn't known after it."""
        kept = self._cache.copy()
        with self.code.block(head):
            yield
        self._cache = kept

    def require(self, predicates: Sequence[Expr]) -> None:
        """Go one `if` deeper for each predicate."""
        for predicate in predicates:
            self.require_source(self.true(predicate))

    def require_source(self, test: str) -> None:
        self.line(f"if {test}:")
        self.code.level += 1

    # ── conditions ──

    def true(self, expr: Expr) -> str:
        match expr:
            case Constant(value=value):
                return "True" if value is True else "False"
            case Call("and"):
                return self._join(" and ", map(self.true, expr.arguments))
            case Call("or"):
                return self._join(" or ", map(self.true, expr.arguments))
            case Call("not"):
                return self.false(expr.arguments[0])
            case Every() | Some():
                return self._quantified(expr)[0]
            case _:
                term = self.term(expr)
                return both(term.value, term.valid)

    def false(self, expr: Expr) -> str:
        match expr:
            case Constant(value=value):
                return "True" if value is False else "False"
            case Call("and"):
                return self._join(" or ", map(self.false, expr.arguments))
            case Call("or"):
                return self._join(" and ", map(self.false, expr.arguments))
            case Call("not"):
                return self.true(expr.arguments[0])
            case Every() | Some():
                return self._quantified(expr)[1]
            case _:
                term = self.term(expr)
                return both(f"(not {term.value})", term.valid)

    def _join(self, word: str, parts: Iterator[str]) -> str:
        return f"({word.join(list(parts))})"

    def _quantified(self, expr: Every | Some) -> tuple[str, str]:
        every = isinstance(expr, Every)
        true, false = self.let("True" if every else "False"), self.let(str(not every))
        with self._elements(expr.variable):
            if every:
                self.line(f"{true} = {true} and {self.true(expr.condition)}")
                self.line(f"{false} = {false} or {self.false(expr.condition)}")
            else:
                self.line(f"{true} = {true} or {self.true(expr.condition)}")
                self.line(f"{false} = {false} and {self.false(expr.condition)}")
        return true, false

    # ── values ──

    def term(self, expr: Expr) -> Term:
        column = as_column(expr)
        if column is not None:
            in_bytes = self._in_bytes and column.type in TEXTS
            read = TextPlaces(column) if in_bytes else column
            return self.read(next(iter(variables(expr))), read)
        match expr:
            case Constant(value=None):
                return Term(zero(expr.type), "False")
            case Constant(value=str() | bytes() as text) if self._in_bytes:
                return Term(f"c{self.inputs.column(TextConstant(text))}[0]")
            case Constant():
                return Term(self.inputs.param(expr))
            case Attribute():
                raise NotLowered(expr)
            case Previous():
                return self._previous(expr)
            case PreviousOr():
                return self._previous_or(expr)
            case Aggregate():
                return self._aggregate(expr)
            case Accumulator():
                assert self._accumulator is not None, "it stands in the step of reduce"
                return self._accumulator
            case Reduce():
                return self._reduce(expr)
            case TimeSpan():
                return self._span(expr)
            case Every() | Some():
                true, false = self._quantified(expr)
                return Term(true, f"({true} or {false})")
            case Call():
                return self._call(expr)
            case MatchDuration() | Whole():
                raise NotLowered(expr)
            case _:
                assert_never(expr)

    def read(self, variable: str, column: KernelColumn) -> Term:
        place = self.scope.get(variable)
        if isinstance(place, GroupPlace):
            # Only a key is read so: a run has events, and all of them agree on it.
            place = Event(f"{place.array}[{place.start}] - base", place.outer)
        if place is None:
            raise NotLowered(column)
        cache = self._outer_cache if place.outer else self._cache
        key = (variable, column)
        if key not in cache:
            n = self.inputs.column(column)
            lines = self.outer if place.outer else None
            value = self.name()
            row = place.row if place.present is None else f"{place.row} if {place.present} else 0"

            def write(text: str) -> None:
                if lines is None:
                    self.line(text)
                else:
                    lines.append(text)

            write(f"{value} = c{n}[u({row})]")
            valid = place.present
            if self.inputs.may_be_null(column):
                valid = self.name()
                known = f"v{n}[u({row})]"
                write(f"{valid} = {known if place.present is None else both(known, place.present)}")
            cache[key] = Term(value, valid)
        return cache[key]

    def _previous(self, expr: Previous) -> Term:
        group = self.scope.get(f"{expr.variable}…")
        if not isinstance(group, GroupPlace):
            raise NotLowered(expr)
        argument = Attribute(expr.variable, expr.name, expr.type)
        return self._element(group, argument, 0, FoldStep.LAST)

    def _previous_or(self, expr: PreviousOr) -> Term:
        group = self.scope.get(f"{expr.variable}…")
        if not isinstance(group, GroupPlace):
            raise NotLowered(expr)
        value, valid = self.let(zero(expr.type, self.inputs.objects)), self.let("False")
        with self.block(f"if {group.count} > 0:"):
            self._assign(value, valid, expr.value)
        with self.block("else:"):
            self._assign(value, valid, expr.default)
        return Term(value, valid)

    def _group(self, variable: str) -> GroupPlace:
        place = self.scope.get(f"{variable}…") or self.scope.get(variable)
        if not isinstance(place, GroupPlace):
            raise NotLowered(variable)
        return place

    def _element(self, group: GroupPlace, argument: Expr, offset: int, step: FoldStep) -> Term:
        """The argument at an element, counted from the first or the last; NULL if there is none."""
        value, valid = self.let(zero(argument.type, self.inputs.objects)), self.let("False")
        at = f"{group.start} + {offset}"
        if step is FoldStep.LAST:
            at = f"{group.start} + {group.count} - {offset + 1}"
        with self.block(f"if {group.count} > {offset}:"):
            row = self.let(f"{group.array}[{at}] - base")
            with self._bound(argument, row):
                term = self.term(argument)
                self.line(f"{value} = {term.value}")
                self.line(f"{valid} = {term.valid or 'True'}")
        return Term(value, valid)

    @contextmanager
    def _bound(self, argument: Expr | None, row: str) -> Iterator[None]:
        """Bare attributes of the group's variable read this row."""
        names = variables(argument) if argument is not None else frozenset()
        kept = self.scope
        groups = {f"{v}…": kept[v] for v in names if isinstance(kept.get(v), GroupPlace)}
        bound = {
            v: Event(row, False)
            for v in names
            if isinstance(kept.get(v), GroupPlace) or f"{v}…" in kept
        }
        cache = {k: t for k, t in self._cache.items() if k[0] not in bound}
        kept_cache, self._cache = self._cache, cache
        self.scope = {**kept, **groups, **bound}
        yield
        self.scope = kept
        self._cache = kept_cache

    @contextmanager
    def _elements(self, variable: str) -> Iterator[None]:
        """A loop over the group, with the variable bound to the element at hand."""
        group = self._group(variable)
        at = self.name()
        with self.block(f"for {at} in range({group.start}, {group.start} + {group.count}):"):
            row = self.let(f"{group.array}[{at}] - base")
            with self._bound(Attribute(variable, "", Type.NULL), row):
                yield

    def _aggregate(self, expr: Aggregate) -> Term:
        group = self._group(expr.variable)
        function, argument = AGGREGATES[expr.function], expr.argument
        if argument is None:
            return Term(f"({group.count})")
        match function.step:
            case FoldStep.FIRST | FoldStep.LAST:
                return self._element(group, argument, expr.offset, function.step)
            case FoldStep.APPEND:
                raise NotLowered(expr)
            case _:
                return self._fold(expr, argument)

    def _fold(self, expr: Aggregate, argument: Expr) -> Term:
        """An aggregate, by a loop over its group."""
        function, type_ = AGGREGATES[expr.function], argument.type
        text = type_ in TEXTS
        if text and function.chooses and not (self._in_bytes or self.inputs.objects):
            raise NotLowered(function)
        if expr in self.carried:
            return finalized(function, self.carried[expr])
        squares = self.let("0.0") if function.step is FoldStep.SPREAD else None
        total = self.let(zero(type_, self.inputs.objects))
        part = FoldPart(total, self.let("0"), squares)
        if not expr.distinct:
            with self._elements(expr.variable):
                accumulate(self, function, part, self.term(argument), type_)
            return finalized(function, part)
        size = self._group(expr.variable).count
        kind = "object" if text and self.inputs.objects else "np.int64"
        seen = Seen(
            self.let(f"np.empty(2 * {size} + 2, np.int64)"),
            self.let(f"np.empty({size} + 1, np.int64)"),
            self.let(f"np.empty({size} + 1, {'np.float64' if type_ in DOUBLES else kind})"),
        )
        number = self.let("0")
        with self._elements(expr.variable):
            value = self.term(argument)
            accumulate_distinct(self, function, part, value, type_, seen, number)
            self.line(f"{number} += 1")
        return finalized(function, part)

    def _reduce(self, expr: Reduce) -> Term:
        """From the start on, the step for one element after the other."""
        value, valid = self.let(zero(expr.type, self.inputs.objects)), self.let("False")
        self._assign(value, valid, expr.start)
        kept, self._accumulator = self._accumulator, Term(value, valid)
        with self._elements(expr.variable):
            term = self.term(expr.step)
            self.line(f"{value}, {valid} = {term.value}, {term.valid or 'True'}")
        self._accumulator = kept
        return Term(value, valid)

    def _span(self, expr: TimeSpan) -> Term:
        """The latest end minus the earliest start."""
        latest, earliest = self.let(str(-(1 << 62))), self.let(str(1 << 62))
        end, start = self.inputs.column(TIME), self.inputs.column(START)

        def widen(row: str) -> None:
            self.line(f"{latest} = max({latest}, c{end}[u({row})])")
            self.line(f"{earliest} = min({earliest}, c{start}[u({row})])")

        for variable in expr.variables:
            match self.scope.get(variable):
                case Event(row=row):
                    widen(row)
                case GroupPlace() as group:
                    at = self.name()
                    span = f"range({group.start}, {group.start} + {group.count})"
                    with self.block(f"for {at} in {span}:"):
                        widen(f"{group.array}[{at}] - base")
                case None:
                    raise NotLowered(expr)
        return Term(f"({latest} - {earliest})", f"({latest} >= {earliest})")

    # ── operators ──

    def _call(self, expr: Call) -> Term:
        if expr.type is Type.BOOLEAN and expr.operator in ("and", "or", "not"):
            true, false = self.let(self.true(expr)), self.let(self.false(expr))
            return Term(true, f"({true} or {false})")
        match expr.operator:
            case "is_null":
                term = self.term(expr.arguments[0])
                return Term("False" if term.valid is None else f"(not {term.valid})")
            case "case":
                return self._case(expr)
            case "coalesce":
                return self._coalesce(expr)
            case "in":
                equal = tuple(
                    Call("=", (expr.arguments[0], option), Type.BOOLEAN)
                    for option in expr.arguments[1:]
                )
                either = Call("or", equal, Type.BOOLEAN) if len(equal) > 1 else equal[0]
                true, false = self.let(self.true(either)), self.let(self.false(either))
                return Term(true, f"({true} or {false})")
        if in_bytes(expr) and not self.inputs.objects:
            return self._of_bytes(expr)
        return operate(self, expr, [self.term(a) for a in expr.arguments])

    def _of_bytes(self, expr: Call) -> Term:
        """What the bytes of texts decide: their order, and what is part of what."""
        terms = [self.place(a) for a in expr.arguments]
        return operate_on_texts(expr, terms, self._heap())

    def place(self, text: Expr) -> Term:
        """A text, as the place of its bytes."""
        kept, self._in_bytes = self._in_bytes, True
        term = self.term(text)
        self._in_bytes = kept
        return term

    def precedes(self, operator: str, x: Term, y: Term, type_: Type) -> str:
        """A comparison by order; texts are places, or Python's."""
        if type_ not in TEXTS or self.inputs.objects:
            return compare(operator, x, y, type_)
        if not self._in_bytes:
            raise NotLowered(type_)
        return f"(text_order({self._heap()}, {x.value}, {y.value}) {operator} 0)"

    def _heap(self) -> str:
        return f"c{self.inputs.column(TextBytes())}"

    def _case(self, expr: Call) -> Term:
        value, valid = self.let(zero(expr.type, self.inputs.objects)), self.let("False")
        *branches, default = expr.arguments
        level = self.code.level
        kept = self._cache.copy()
        for condition, result in zip(branches[::2], branches[1::2], strict=True):
            with self.block(f"if {self.true(condition)}:"):
                self._assign(value, valid, result)
            self.line("else:")
            self.code.level += 1
        self._assign(value, valid, default)
        self.code.level = level
        self._cache = kept
        return Term(value, valid)

    def _coalesce(self, expr: Call) -> Term:
        value, valid = self.let(zero(expr.type, self.inputs.objects)), self.let("False")
        for argument in expr.arguments:
            with self.block(f"if not {valid}:"):
                self._assign(value, valid, argument)
        return Term(value, valid)

    def _assign(self, value: str, valid: str, expr: Expr) -> None:
        term = self.term(expr)
        self.line(f"{value} = {term.value}")
        self.line(f"{valid} = {term.valid or 'True'}")
