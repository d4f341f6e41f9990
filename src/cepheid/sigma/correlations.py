"""A correlation of Sigma becomes a pattern, or a group over a sliding window.

Windows slide: any `timespan` in which the condition holds is found, wherever it begins. Systems
that cut time into buckets miss those that lie across a border.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from string import ascii_lowercase
from typing import TypeAlias

from sigma.correlations import (
    CorrelationConditionAND,
    CorrelationConditionItem,
    CorrelationConditionOR,
    SigmaCorrelationCondition,
    SigmaCorrelationConditionOperator,
    SigmaCorrelationRule,
    SigmaCorrelationType,
    SigmaExtendedCorrelationCondition,
    SigmaRuleReference,
)
from sigma.rule import SigmaRule
from sigma.rule.base import SigmaRuleBase

from cepheid.language.attribute_paths import quoted_attribute
from cepheid.language.names import quoted, quoted_field
from cepheid.sigma.detections import UnsayableError, conditions
from cepheid.sigma.field_names import Mapped
from cepheid.sigma.marked_text import MarkedValue, Wording, joined

_OPERATORS = {
    SigmaCorrelationConditionOperator.LT: "<",
    SigmaCorrelationConditionOperator.LTE: "<=",
    SigmaCorrelationConditionOperator.GT: ">",
    SigmaCorrelationConditionOperator.GTE: ">=",
    SigmaCorrelationConditionOperator.EQ: "=",
    SigmaCorrelationConditionOperator.NEQ: "<>",
}
_AGGREGATES = {
    SigmaCorrelationType.EVENT_COUNT: "count(*)",
    SigmaCorrelationType.VALUE_COUNT: "count(DISTINCT a.{})",
    SigmaCorrelationType.VALUE_SUM: "sum(a.{})",
    SigmaCorrelationType.VALUE_AVG: "avg(a.{})",
}
_AT_LEAST = (SigmaCorrelationConditionOperator.GTE, SigmaCorrelationConditionOperator.GT)
_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
_EVENTS = "events"
"""What events without a type are called beside the matches of other rules."""

_MOST_BRANCHES = 12
"""More combinations of rules than a person would keep."""


@dataclass(frozen=True, slots=True)
class Selected:
    """The events that a rule is about: their types, and the conditions on a variable.

    A type is None if the mapping doesn't say which events have the rule's log source.
    """

    types: tuple[str | None, ...]
    conditions: Callable[[str], tuple[Wording, ...]]


def source_of(rule: SigmaRule, mapped: Mapped) -> str | None:
    return mapped.type_of(rule.logsource)


def leaf(selected: Selected, variable: str, quantifier: str = "") -> str:
    """The events as a part of a pattern: `Security a`, `ANY(Login, Logon) a{3}`, or `a`."""
    types = list(dict.fromkeys(selected.types))
    if None in types:
        return f"{variable}{quantifier}"
    names = ", ".join(quoted(name) for name in types if name is not None)
    one = names if len(types) == 1 else f"ANY({names})"
    return f"{one} {variable}{quantifier}"


def correlated(
    rule: SigmaCorrelationRule, names: Callable[[SigmaRuleBase], str], mapped: Mapped
) -> Wording:
    """The query of a correlation. `names` are those of the rules that it may refer to."""
    correlation = _Correlation(rule, names, mapped)
    match rule.type:
        case SigmaCorrelationType.TEMPORAL | SigmaCorrelationType.TEMPORAL_ORDERED:
            return correlation.of_several()
        case kind if kind in _AGGREGATES:
            return correlation.of_one_kind()
        case kind:
            raise UnsayableError(f"`{kind.name.lower()}` has no counterpart")


@dataclass(frozen=True, slots=True)
class _Correlation:
    rule: SigmaCorrelationRule
    names: Callable[[SigmaRuleBase], str]
    mapped: Mapped

    # ── events ───────────────────────────────────────────────────────────────

    def selected(self, reference: SigmaRuleReference) -> Selected:
        match reference.rule:
            case SigmaCorrelationRule() as read:
                return Selected((self.names(read),), lambda variable: ())
            case SigmaRule() as read:
                type_ = source_of(read, self.mapped)
                if type_ is None and self._reads_matches():
                    type_ = _EVENTS
                return Selected((type_,), lambda name: conditions(read, name, self.mapped))

    def _reads_matches(self) -> bool:
        references = self.rule.referenced_rules
        return any(isinstance(each.rule, SigmaCorrelationRule) for each in references)

    def any_of(self, references: Sequence[SigmaRuleReference]) -> Selected:
        """An event that fits one of the rules."""
        parts = [self.selected(reference) for reference in references]
        if len(parts) == 1:
            return parts[0]
        if len({part.types for part in parts}) > 1:
            raise UnsayableError(
                f"`{self.rule.type.name.lower()}` counts events of several log sources together"
            )
        if any(isinstance(reference.rule, SigmaCorrelationRule) for reference in references):
            raise UnsayableError("it counts matches of several rules together")

        def either(variable: str) -> tuple[Wording, ...]:
            listed = [("(", *joined(" AND ", part.conditions(variable)), ")") for part in parts]
            return (("(", *joined(" OR ", listed), ")"),)

        return Selected(parts[0].types, either)

    def columns(self, reference: SigmaRuleReference) -> list[str]:
        """The columns of the rule's events by which the correlation groups."""
        fields = self.rule.group_by or ()
        if isinstance(reference.rule, SigmaCorrelationRule):
            return list(fields)  # its RETURN names them as the rules do
        return [self.mapped.column(self._alias(field, reference)) for field in fields]

    def _alias(self, field: str, reference: SigmaRuleReference) -> str:
        alias = self.rule.aliases.aliases.get(field)
        if alias is None:
            return field
        known = {each.reference: name for each, name in alias.mapping.items()}
        try:
            return known[reference.reference]
        except KeyError:
            raise UnsayableError(
                f"the alias `{field}` has no field of the rule `{reference.reference}`"
            ) from None

    # ── counts and sums: event_count, value_count, value_sum, value_avg ──────

    def of_one_kind(self) -> Wording:
        references = self.rule.referenced_rules
        columns = self.columns(references[0])
        if any(self.columns(other) != columns for other in references):
            raise UnsayableError("the rules that are counted together group by different fields")
        selected = self.any_of(references)
        threshold = self.rule.condition
        assert isinstance(threshold, SigmaCorrelationCondition)
        if self.rule.type is SigmaCorrelationType.EVENT_COUNT and threshold.op in _AT_LEAST:
            if not isinstance(threshold.count, int):
                raise UnsayableError("a number of events is a whole number")
            least = threshold.count + (threshold.op is SigmaCorrelationConditionOperator.GT)
            return self._run(selected, columns, max(least, 1))
        return self._group(selected, columns, threshold)

    def _run(self, selected: Selected, columns: Sequence[str], least: int) -> Wording:
        """At least n events are n of them in a row."""
        quantifier = f"{{{least}}}" if least > 1 else ""
        keys = ", ".join(map(quoted_attribute, columns))
        first = "FIRST({})" if least > 1 else "{}"
        fields = zip(columns, self.rule.group_by or (), strict=True)
        returned = [_named(first.format(f"a.{quoted_attribute(column)}"), field)
                    for column, field in fields]  # fmt: skip
        where = [(f"[{keys}]",)] if keys and least > 1 else []
        return query_text(
            f"PATTERN {leaf(selected, 'a', quantifier)}",
            [*where, *selected.conditions("a")],
            f"WITHIN  {self._timespan()}",
            _returned(returned),
        )

    def _group(
        self, selected: Selected, columns: Sequence[str], threshold: SigmaCorrelationCondition
    ) -> Wording:
        """A row for every event, about those of its group in the time before it."""
        if not isinstance(threshold.fieldref, str | None):
            raise UnsayableError("it counts combinations of several fields")
        field = "" if threshold.fieldref is None else self.mapped.column(threshold.fieldref)
        aggregate = _AGGREGATES[self.rule.type].format(quoted_attribute(field) if field else "")
        keys = [f"a.{quoted_attribute(column)}" for column in columns]
        returned = map(_named, keys, self.rule.group_by or ())
        groups = ", ".join([*keys, f"RANGE({self._timespan()})"])
        return (
            *query_text(f"FROM    {_from(selected)}", selected.conditions("a")),
            f"\nGROUP BY {groups}\nHAVING  {aggregate} {_OPERATORS[threshold.op]} ",
            MarkedValue(threshold.count, "limit"),
            f"\n{_returned([*returned, f'{aggregate} AS measured'])}",
        )

    # ── temporal and temporal_ordered ────────────────────────────────────────

    def of_several(self) -> Wording:
        """All of the rules have an event. In order, each first event has the first of the second
        rule after it, and so on; in any order, there is one match for each first event."""
        branches = self._branches()
        ordered = self.rule.type is SigmaCorrelationType.TEMPORAL_ORDERED
        letters = iter(ascii_lowercase)
        named = [[(next(letters), reference) for reference in branch] for branch in branches]
        parts = [self._pattern(branch, " -> " if ordered else " & ") for branch in named]
        parts = [f"({part})" if len(parts) > 1 and " " in part else part for part in parts]
        return query_text(
            f"PATTERN {' | '.join(parts)}",
            [*self._keys(named), *(condition for branch in named for name, reference in branch
                                   for condition in self.selected(reference).conditions(name))],
            f"WITHIN  {self._timespan()}",
            "" if ordered else "AFTER MATCH SKIP TO NEXT EVENT",
            self._returned_keys(named),
        )  # fmt: skip

    def _pattern(self, branch: _Branch, operator: str) -> str:
        return operator.join(leaf(self.selected(reference), name) for name, reference in branch)

    def _branches(self) -> list[list[SigmaRuleReference]]:
        """The rules of which all must have an event: one of these lists is enough."""
        match self.rule.condition:
            case SigmaExtendedCorrelationCondition(parsed=parsed):
                branches = self._alternatives(parsed)
            case SigmaCorrelationCondition(op=op, count=count):
                branches = self._choices(op, count)
        if len(branches) > _MOST_BRANCHES or sum(map(len, branches)) > len(ascii_lowercase):
            raise UnsayableError(f"it has {len(branches)} combinations of rules")
        return branches

    def _choices(
        self, op: SigmaCorrelationConditionOperator, count: float
    ) -> list[list[SigmaRuleReference]]:
        references = self.rule.referenced_rules
        least = int(count) + (op is SigmaCorrelationConditionOperator.GT)
        exact = op is SigmaCorrelationConditionOperator.EQ and least == len(references)
        if not (op in _AT_LEAST or exact) or not 1 <= least <= len(references):
            raise UnsayableError(
                f"`{op.name.lower()}: {count}` of {len(references)} rules has no counterpart"
            )
        if least < len(references) and self.rule.type is SigmaCorrelationType.TEMPORAL_ORDERED:
            raise UnsayableError("in order, all of the rules have to come")
        return [list(some) for some in combinations(references, least)]

    def _alternatives(
        self, tree: CorrelationConditionItem | SigmaRuleReference
    ) -> list[list[SigmaRuleReference]]:
        match tree:
            case SigmaRuleReference(reference=name):
                known = {each.reference: each for each in self.rule.referenced_rules}
                return [[known[name]]]
            case CorrelationConditionOR(args=arguments):
                return [branch for part in arguments for branch in self._alternatives(part)]
            case CorrelationConditionAND(args=arguments):
                choices = product(*map(self._alternatives, arguments))
                return [[each for part in choice for each in part] for choice in choices]
            case _:
                raise UnsayableError("`not` in a correlation's condition has no counterpart")

    def _keys(self, branches: Sequence[_Branch]) -> list[Wording]:
        """Events of a match agree in the fields of group-by, whatever these are called."""
        columns = {
            name: self.columns(reference) for branch in branches for name, reference in branch
        }
        if len(columns) < 2:
            return []
        equal, different = [], []
        for number in range(len(self.rule.group_by or ())):
            called = {each[number] for each in columns.values()}
            if len(called) == 1:
                equal.append(quoted_attribute(called.pop()))
            else:
                different += [
                    " = ".join(f"{name}.{quoted_attribute(columns[name][number])}"
                               for name, _ in branch)
                    for branch in branches if len(branch) > 1
                ]  # fmt: skip
        listed = [f"[{', '.join(equal)}]"] if equal else []
        return [(text,) for text in (*listed, *different)]

    def _returned_keys(self, branches: Sequence[_Branch]) -> str:
        firsts = [(branch[0][0], self.columns(branch[0][1])) for branch in branches]
        returned = []
        for number, field in enumerate(self.rule.group_by or ()):
            values = [f"{name}.{quoted_attribute(columns[number])}" for name, columns in firsts]
            value = values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"
            returned.append(_named(value, field))
        return _returned(returned)

    def _timespan(self) -> str:
        span = self.rule.timespan
        unit = _UNITS.get(span.unit)
        count = span.count if unit else span.seconds
        if span.unit == "w":
            unit, count = "day", 7 * span.count
        return f"{count} {unit or 'second'}{'' if count == 1 else 's'}"


_Branch: TypeAlias = Sequence[tuple[str, SigmaRuleReference]]


def _from(selected: Selected) -> str:
    if len(set(selected.types)) > 1:
        raise UnsayableError("it measures events of several log sources together")
    return leaf(selected, "a")


def query_text(start: str, conditions: Sequence[Wording], *clauses: str) -> Wording:
    """The clauses and the conditions, a line each."""
    listed = ("\nWHERE   ", *joined("\n  AND   ", conditions)) if conditions else ()
    return (start, *listed, *(f"\n{clause}" for clause in clauses if clause))


def _named(value: str, field: str) -> str:
    """The column of RETURN; an attribute of this name needs no other."""
    name = quoted_field(field)
    return value if value == f"a.{name}" else f"{value} AS {name}"


def _returned(columns: Sequence[str]) -> str:
    return f"RETURN  {', '.join(columns)}" if columns else ""
