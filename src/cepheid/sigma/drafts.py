"""A rule of Sigma becomes a draft of ours: what it is called, says of itself, and looks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from textwrap import wrap

from sigma.correlations import SigmaCorrelationRule
from sigma.rule import SigmaRule
from sigma.rule.attributes import SigmaStatus
from sigma.rule.base import SigmaRuleBase

from cepheid.language.attribute_paths import quoted_attribute
from cepheid.sigma.correlations import Selected, correlated, leaf, query_text, source_of
from cepheid.sigma.detections import UnsayableError, conditions
from cepheid.sigma.field_names import Mapped
from cepheid.sigma.marked_text import Wording

_OFF = (SigmaStatus.DEPRECATED, SigmaStatus.UNSUPPORTED)
_WIDTH = 96


@dataclass(frozen=True, slots=True)
class Draft:
    """A rule in our language. `carried` are the values of its header, and `about` its comments."""

    name: str
    carried: Mapping[str, str | bool]
    about: tuple[str, ...]
    query: Wording
    is_read: bool = False
    """Whether another rule reads its matches, by its name."""


def draft(
    rule: SigmaRuleBase, name: str, names: Callable[[SigmaRuleBase], str], mapped: Mapped
) -> Draft:
    """The draft of a rule. Raises UnsayableError if it has no counterpart."""
    match rule:
        case SigmaCorrelationRule():
            query = correlated(rule, names, mapped)
        case SigmaRule():
            query = _single(rule, mapped)
        case _:
            raise UnsayableError(f"a rule of pySigma's kind {type(rule).__name__}")
    is_read = any(isinstance(reader, SigmaCorrelationRule) for reader in rule._backreferences)
    is_read = is_read and isinstance(rule, SigmaCorrelationRule)
    return Draft(name, _carried(rule), _about(rule), query, is_read)


def _single(rule: SigmaRule, mapped: Mapped) -> Wording:
    """One event is a match. RETURN has the fields that the rule recommends to look at."""
    selected = Selected((source_of(rule, mapped),), lambda v: conditions(rule, v, mapped))
    columns = dict.fromkeys(map(mapped.column, rule.fields))
    returned = ", ".join(f"e.{quoted_attribute(column)}" for column in columns)
    clause = f"RETURN  {returned}" if columns else ""
    return query_text(f"PATTERN {leaf(selected, 'e')}", selected.conditions("e"), clause)


def _carried(rule: SigmaRuleBase) -> dict[str, str | bool]:
    values: dict[str, str | bool] = {"title": _line(rule.title)}
    if rule.level is not None:
        values["severity"] = str(rule.level)
    if rule.tags:
        values["tags"] = " ".join(map(str, rule.tags))
    if rule.id is not None:
        values["sigma_id"] = str(rule.id)
    if rule.status in _OFF:
        values["enabled"] = False
    return values


def _about(rule: SigmaRuleBase) -> tuple[str, ...]:
    """The comments above the query: what a person reads of it."""
    facts: list[tuple[str, str]] = [("", rule.description or "")]
    facts += [("False positives: ", "; ".join(rule.falsepositives or ()))]
    facts += [("Reference: ", reference) for reference in rule.references or ()]
    changed: date | None = rule.modified or rule.date
    by = [rule.author, None if changed is None else changed.isoformat(),
          None if rule.status is None else str(rule.status)]  # fmt: skip
    facts += [("Sigma: ", ", ".join(part for part in by if part))]
    if isinstance(rule, SigmaCorrelationRule):
        facts += [("Of: ", "; ".join(each.rule.title for each in rule.referenced_rules))]
    lines = (line for label, said in facts if _line(said)
             for line in wrap(label + _line(said), _WIDTH, break_on_hyphens=False))  # fmt: skip
    return tuple(lines)


def _line(text: str) -> str:
    return " ".join(text.split())


def name_of(rule: SigmaRuleBase) -> str:
    """The rule's own name, or one of its title.

    >>> from sigma.rule import SigmaLogSource
    >>> name_of(SigmaRule("Whoami.exe, as SYSTEM!", logsource=SigmaLogSource("test")))
    'whoami_exe_as_system'
    """
    if rule.name:
        return rule.name
    words = re.findall(r"\w+", rule.title.lower())
    name = "_".join(words) or "rule"
    return f"rule_{name}" if name[0].isdigit() else name


def header(draft: Draft) -> str:
    """The comments and the header of a written rule."""
    lines = [f"-- {line}" if not line.startswith("@") else f"-- '{line}" for line in draft.about]
    lines += [f"-- @{name}: {_header_value(value)}" for name, value in draft.carried.items()]
    return "".join(f"{line}\n" for line in lines)


def _header_value(value: str | bool) -> str:
    """In quotes, if the text would be something else without."""
    if isinstance(value, bool):
        return "true" if value else "false"
    plain = re.fullmatch(r"[^\W\d][^'\"]*", value) and value not in ("true", "false")
    return value if plain else f'"{value}"'
