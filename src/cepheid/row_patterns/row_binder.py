"""Expressions of MEASURES and DEFINE: from syntax to plain expressions over leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from cepheid.algebra.aggregates import AGGREGATES, Operand
from cepheid.algebra.binding.expressions.coercion import cast, described
from cepheid.algebra.binding.expressions.expression_binder import ExpressionBinder
from cepheid.algebra.binding.expressions.resolution import WRONG, missing_step
from cepheid.algebra.binding.findings import did_you_mean
from cepheid.algebra.binding.scope import listed
from cepheid.algebra.expressions import Attribute, Expr
from cepheid.algebra.kinds import attribute_type
from cepheid.algebra.nested_columns import Missing, Reached, reach
from cepheid.algebra.types import Type
from cepheid.language import ast
from cepheid.language.attribute_paths import quoted_attribute, read_path
from cepheid.row_patterns.leaves import (
    CLASSIFIER,
    Labels,
    Leaf,
    MatchNumber,
    Navigation,
    RowAggregate,
    leaf_attribute,
)

_NAVIGATIONS = ("first", "last", "prev", "next")
_AGGREGATES = {
    **{name: name for name in ("count", "sum", "avg", "min", "max", "stddev")},
    **{"mean": "avg", "collect": "collect", "collect_list": "collect", "array_agg": "collect"},
}
_WITH_EXTENT = ("first", "last", *_AGGREGATES)
"""What RUNNING and FINAL may stand before."""
_OF_QUERIES = ("all", "some", "duration", "reduce")
"""Functions that the query language has for groups and matches."""
_SO_FAR = "the rows of a match so far are counted with `count(*)`"
_SOME = "CASE chooses what is counted: `count(CASE WHEN x > 1 THEN 1 END)`"
_OF_OTHERS = {
    "lag": "the row before is read with `PREV(x)`",
    "lead": "the row after is read with `NEXT(x)`",
    "first_value": "the first row is read with `FIRST(x)`",
    "last_value": "the last row is read with `LAST(x)`",
    **dict.fromkeys(("any_value", "arbitrary"), "the first row is read with `FIRST(x)`"),
    **dict.fromkeys(("match_sequence_number", "row_number"), _SO_FAR),
    **dict.fromkeys(("count_if", "countif"), _SOME),
    **dict.fromkeys(("bool_and", "every", "bool_or"), _SOME),
    "string_agg": "values are gathered with `array_agg(x)`",
    "listagg": "values are gathered with `array_agg(x)`",
}
"""Functions of other systems, or of windows, and what stands for them."""


@dataclass
class _Frame:
    """The labels that the argument of a navigation or an aggregate reads."""

    what: str
    read: set[Labels] = field(default_factory=set)


@dataclass(frozen=True)
class RowBinder(ExpressionBinder):
    """Lowers the expressions of MEASURES and of DEFINE (`defines`: of which label)."""

    sets: Mapping[str, frozenset[str]] = field(default_factory=dict)
    final: bool = False
    defines: str | None = None
    leaves: list[Leaf] = field(default_factory=list)
    _frames: list[_Frame] = field(default_factory=list)

    def lower(self, node: ast.Expression) -> Expr:
        match node:
            case ast.Name(name):
                return self._read(name, None, node.span)
            case ast.Attribute(variable, name) if self._is_struct(variable):
                return self._read(f"{quoted_attribute(variable)}.{name}", None, node.span)
            case ast.Attribute(variable, name):
                labels = self._labels(variable, node.span)
                return WRONG if labels is None else self._read(name, labels, node.span)
            case ast.Call(name) if name in _NAVIGATIONS:
                return self._navigation(node)
            case ast.Call(name) if name in _AGGREGATES:
                return self._aggregate(node)
            case ast.Call("running" | "final"):
                return self._extent(node)
            case ast.Call("classifier"):
                return self._classifier(node)
            case ast.Call("match_number"):
                if self._frames:
                    return self._nested(node)
                return self._leaf(MatchNumber())
            case ast.Call(name) if name in _OF_QUERIES:
                hint = f"aggregates are {', '.join(dict.fromkeys(_AGGREGATES.values()))}"
                message = f"MATCH_RECOGNIZE has no `{name}`"
                return self.wrong("CEP208", message, node.span, hint)
            case ast.Call(name) if name in _OF_OTHERS:
                message = f"MATCH_RECOGNIZE has no `{name}`"
                return self.wrong("CEP208", message, node.span, _OF_OTHERS[name])
            case ast.KeyTest() | ast.OccursWithin():
                message = f"`{self.text(node)}` is not SQL"
                return self.wrong("CEP103", message, node.span)
            case _:
                return super().lower(node)

    # ── columns ──

    def _labels(self, name: str, span: ast.Span) -> frozenset[str] | None:
        labels = self.sets.get(name) or self.sets.get(name.upper())
        if labels is None:
            hint = did_you_mean(name.upper(), self.sets, f"labels are {listed(self.sets)}")
            self.findings.add("CEP611", f"the pattern has no label `{name}`", span, hint)
        return labels

    def _is_struct(self, name: str) -> bool:
        """Whether `name.x` is a field of a column: no label is called so."""
        if name in self.sets or name.upper() in self.sets:
            return False
        return self.schema.resolve(name) in self.schema.nested

    def _read(self, name: str, labels: Labels, span: ast.Span) -> Expr:
        column = self.schema.resolve(name)
        path = read_path(name) if column is None else None
        reached = None if path is None else reach(path, self.schema.nested)
        if isinstance(reached, Reached):
            attribute = Attribute("", str(reached.path), attribute_type(reached.type))
            return self._value(attribute, labels)
        if isinstance(reached, Missing):
            message, hint = missing_step(reached, self.schema)
            return self.wrong("CEP204", message, span, hint)
        if column is None:
            if labels is None and name.upper() in self.sets:
                hint = f"name a column: `{name}.x`"
                if self._frames and self._frames[-1].what == "count":
                    hint = f"count its rows with `count({name}.*)`"
                return self.wrong("CEP205", f"`{name}` is a label, not a value", span, hint)
            hint = did_you_mean(
                name, self.schema.columns, f"columns are {listed(self.schema.columns)}"
            )
            if name.lower() in ("classifier", "match_number"):
                hint = f"write `{name.upper()}()`"
            return self.wrong("CEP204", f"there is no column `{name}`", span, hint)
        return self._value(Attribute("", column, self.schema.columns[column]), labels)

    def _value(self, attribute: Attribute, labels: Labels) -> Expr:
        """A value of the row in the argument of a function; else of the last row so far."""
        if self._frames:
            self._frames[-1].read.add(labels)
            return attribute
        return self._leaf(Navigation(attribute, labels, final=self.final))

    def _leaf(self, leaf: Leaf) -> Expr:
        if leaf not in self.leaves:
            self.leaves.append(leaf)
        return leaf_attribute(self.leaves.index(leaf), leaf)

    def _classifier(self, node: ast.Call) -> Expr:
        labels: Labels = None
        match node.arguments:
            case ():
                pass
            case (ast.Name(name),):
                labels = self._labels(name, node.span)
                if labels is None:
                    return WRONG
            case _:
                return self.wrong("CEP209", "`CLASSIFIER` takes a label or nothing", node.span)
        return self._value(CLASSIFIER, labels)

    # ── functions over the rows of a match ──

    def _extent(self, node: ast.Call) -> Expr:
        word = node.name.upper()
        match node.arguments:
            case (ast.Call(name) as inner,) if name in _WITH_EXTENT:
                pass
            case given:
                written = [n.name if isinstance(n, ast.Call) else self.text(n) for n in given]
                instead = f", not with `{', '.join(written)}`" if written else ""
                message = f"{word} goes with FIRST, LAST and aggregates{instead}"
                return self.wrong("CEP618", message, node.span, f"as in `{word} LAST(A.x)`")
        if node.name == "final" and self.defines is not None:
            message = "FINAL can't stand in DEFINE: the match isn't complete there"
            return self.wrong("CEP618", message, node.span)
        final = node.name == "final" or self.final
        if inner.name in _NAVIGATIONS:
            return self._navigation(inner, final)
        return self._aggregate(inner, final)

    def _nested(self, node: ast.Call) -> Expr:
        outer = self._frames[-1].what.upper()
        message = f"`{node.name}` can't stand inside of {outer}"
        return self.wrong("CEP613", message, node.span)

    @contextmanager
    def _frame(self, node: ast.Call) -> Iterator[_Frame]:
        frame = _Frame(node.name)
        self._frames.append(frame)
        yield frame
        self._frames.pop()

    def _argument(self, node: ast.Call) -> tuple[Expr, Labels] | None:
        """The argument, and the labels of the rows that it is read from."""
        known = len(self.findings)
        with self._frame(node) as frame:
            argument = self.lower(node.arguments[0])
        if len(self.findings) > known:
            return None
        if len(frame.read) > 1:
            message = f"`{node.name}` reads rows of one label, not of several"
            self.wrong("CEP619", message, node.span, "use a SUBSET for both")
            return None
        if not frame.read:
            message = f"`{node.name}` needs a column, but `{self.text(node.arguments[0])}` has none"
            self.wrong("CEP619", message, node.span)
            return None
        return argument, next(iter(frame.read))

    def _offset(self, node: ast.Call, default: int) -> int | None:
        if len(node.arguments) == 1:
            return default
        match node.arguments[1:]:
            case (ast.Literal(int() as number),) if not isinstance(number, bool):
                return number
            case _:
                message = f"`{node.name}` takes a value and a number that isn't negative"
                self.wrong("CEP209", message, node.span)
                return None

    def _navigation(self, node: ast.Call, final: bool | None = None) -> Expr:
        if self._frames:
            return self._nested(node)
        if not 1 <= len(node.arguments) <= 2:
            return self.wrong("CEP209", f"`{node.name}` takes a value and a number", node.span)
        if node.name in ("prev", "next"):
            return self._physical(node)
        offset = self._offset(node, 0)
        read = self._argument(node)
        if offset is None or read is None:
            return WRONG
        ends = self.final if final is None else final
        return self._leaf(Navigation(*read, node.name == "last", offset, 0, ends))

    def _physical(self, node: ast.Call) -> Expr:
        """PREV and NEXT: rows of the partition before or after the one that is read."""
        steps = self._offset(node, 1)
        if steps is None:
            return WRONG
        shift = -steps if node.name == "prev" else steps
        inner = _inner_navigation(node.arguments[0])
        if inner is None:
            read = self._argument(node)
            if read is None:
                return WRONG
            return self._leaf(Navigation(*read, shift=shift, final=self.final))
        final = self.final
        if inner.name in ("running", "final"):
            final = final or inner.name == "final"
            (marked,) = inner.arguments
            assert isinstance(marked, ast.Call)
            inner = marked
        offset, read = self._offset(inner, 0), self._argument(inner)
        if offset is None or read is None:
            return WRONG
        return self._leaf(Navigation(*read, inner.name == "last", offset, shift, final))

    def _aggregate(self, node: ast.Call, final: bool | None = None) -> Expr:
        if self._frames:
            return self._nested(node)
        function = AGGREGATES[_AGGREGATES[node.name]]
        if len(node.arguments) != 1:
            return self.wrong("CEP209", f"`{node.name}` takes 1 argument", node.span)
        ends = self.final if final is None else final
        match node.arguments[0]:
            case ast.Star(None) if function.name == "count":
                return self._leaf(RowAggregate("count", None, None, Type.INTEGER, final=ends))
            case ast.Star(str() as label) if function.name == "count":
                labels = self._labels(label, node.span)
                return self._leaf(RowAggregate("count", None, labels, Type.INTEGER, final=ends))
            case ast.Star():
                return self.wrong("CEP213", f"`{node.name}` needs a column", node.span)
        read = self._argument(node)
        if read is None:
            return WRONG
        argument, labels = read
        if node.distinct and argument.type is Type.OTHER:
            message = f"`{node.name}(DISTINCT …)` needs a value that can be compared, but "
            message += f"`{self.text(node.arguments[0])}` is {described(argument)}"
            return self.wrong("CEP210", message, node.span)
        if argument.type is Type.NULL and function.operand in (Operand.AMOUNT, Operand.NUMBER):
            argument = cast(argument, Type.INTEGER)
        if not function.operand.accepts(argument.type):
            message = f"`{node.name}` needs {function.operand.value}, but "
            message += f"`{self.text(node.arguments[0])}` is {described(argument)}"
            return self.wrong("CEP210", message, node.span)
        decimal = argument.type is Type.DECIMAL and not function.chooses
        computes = decimal and function.operand is not Operand.ANY
        if computes or function.operand is Operand.NUMBER:
            argument = cast(argument, Type.FLOAT)
        type_ = function.type or argument.type
        return self._leaf(RowAggregate(function.name, argument, labels, type_, node.distinct, ends))


def _inner_navigation(node: ast.Expression) -> ast.Call | None:
    """FIRST or LAST inside of PREV or NEXT, perhaps with RUNNING or FINAL."""
    match node:
        case ast.Call("first" | "last"):
            return node
        case ast.Call("running" | "final", (ast.Call("first" | "last"),)):
            return node
        case _:
            return None
